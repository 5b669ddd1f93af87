// SPDX-License-Identifier: Apache-2.0
#include "export/ctf/trace_copy.h"

#include <fcntl.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/parallel.h"
#include "common/status.h"
#include "ctf/ctf18_words.h"
#include "ctf/metadata.h"
#include "ctf/packet_index.h"
#include "ctf/stream_summary.h"
#include "ctf/tsdl_writer.h"
#include "export/ctf/stream_copy.h"

namespace syncline::ctf_export {
namespace {

// A name-based uuid (RFC 9562, version 5) below a namespace of our own: the same name, the same
// uuid.
ctf::Uuid UuidOf(const std::string& name) {
  static constexpr uuid_t kNamespace = {0x8f, 0x2c, 0x51, 0x0e, 0x47, 0x1a, 0x4b, 0x63,
                                        0x9d, 0x35, 0x6e, 0x10, 0xc8, 0xf4, 0x72, 0xb9};
  ctf::Uuid uuid{};
  uuid_generate_sha1(uuid.data(), kNamespace, name.data(), name.size());
  return uuid;
}

uint32_t AlignmentOf(const ctf::Node* node) {
  if (node == nullptr) return 1;
  uint32_t alignment = node->alignment;
  for (const ctf::Node& child : node->children)
    alignment = std::max(alignment, AlignmentOf(&child));
  return alignment;
}

absl::Status CheckLayout(const ctf::TraceLayout& layout) {
  for (const auto& stream : layout.streams) {
    if (stream->fast_header == ctf::FastHeader::kNone) {
      return absl::UnimplementedError("its events do not have LTTng's headers");
    }
    // Packets change their size, and times since 1970 take 61 bits.
    constexpr std::pair<ctf::Role, uint32_t> kNeeded[] = {{ctf::Role::kTimestampBegin, 64},
                                                          {ctf::Role::kTimestampEnd, 64},
                                                          {ctf::Role::kContentSize, 32},
                                                          {ctf::Role::kPacketSize, 32}};
    for (const auto& [role, bits] : kNeeded) {
      if (ctf::BitsOf(role, stream->nodes.root(ctf::Scope::kPacketContext)) >= bits) continue;
      return absl::UnimplementedError(
          "its packets do not store their times in 64 bits and their sizes in 32 bits, as LTTng's "
          "do");
    }
    for (const auto& [id, event] : stream->events) {
      for (const ctf::Scope scope :
           {ctf::Scope::kStreamContext, ctf::Scope::kEventContext, ctf::Scope::kPayload}) {
        if (AlignmentOf(event->nodes.root(scope)) > 8) {
          return absl::UnimplementedError(absl::StrCat("the fields of its event \"",
                                                       event->event_class.name,
                                                       "\" are aligned to more than bytes"));
        }
      }
    }
  }
  return absl::OkStatus();
}

// What the copy says of itself.
ctf::Metadata Corrected(const ctf::Metadata& metadata, const ctf::Uuid& uuid,
                        const CopyOptions& options) {
  ctf::Metadata corrected = metadata;
  corrected.uuid = uuid;
  corrected.environment["hostname"] = options.node;
  for (ctf::ClockClass& clock : corrected.clocks) {
    clock.uuid = ctf::UuidText(UuidOf(absl::StrCat("timeline ", options.epoch_unix_ns)));
    clock.description = "Syncline's timeline, ns since 1970";
    clock.frequency = 1'000'000'000;
    clock.offset_seconds = 0;
    clock.offset_cycles = 0;
  }
  return corrected;
}

// A clock value whose time lies before `begin`; kUnknownLo: nothing is known to.
int64_t BeforeWindow(timeline::Placement& placement, TimelineTime begin) {
  constexpr int64_t kSlackNs = 1000;  // the way back from the timeline rounds
  if (begin.ns == kUnknownLo) return kUnknownLo;
  int64_t clock_ns = 0;
  if (__builtin_sub_overflow(placement.ClockNs(begin), kSlackNs, &clock_ns)) return kUnknownLo;
  return placement.At(clock_ns) < begin ? clock_ns : kUnknownLo;
}

// Disk space for a file that is still empty: into what is set aside as a whole, the kernel takes
// bytes with less work. Given back is what was not needed. A file system that cannot do it, or a
// full disk, is none of its business: what is written will tell.
class SpaceAhead {
 public:
  SpaceAhead(const std::filesystem::path& file, uint64_t bytes)
      : file_(::open(file.c_str(), O_WRONLY | O_CLOEXEC)), bytes_(bytes) {
    const auto length = static_cast<off_t>(bytes);
    if (::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, 0, length) != 0) GiveBack(0);
  }
  // `bytes`: what the file is long now.
  void GiveBack(uint64_t bytes) {
    if (bytes >= bytes_) return;
    [[maybe_unused]] const int given = ::ftruncate(file_.get(), static_cast<off_t>(bytes));
  }

 private:
  Descriptor file_;
  uint64_t bytes_;
};

// The streams of one trace, several at a time.
class StreamCopier {
 public:
  // All outlive it.
  StreamCopier(const ctf::TraceLayout& layout, const ctf::Uuid& uuid, const CopyOptions& options,
               const std::filesystem::path& out)
      : layout_(layout), uuid_(uuid), options_(options), out_(out) {}

  // What became of each of `files`.
  std::vector<absl::StatusOr<CopyResult>> CopyAll(std::span<const std::filesystem::path> files,
                                                  timeline::Placement& placement) const {
    std::vector<absl::StatusOr<CopyResult>> copied(files.size(), CopyResult{});
    std::vector<std::unique_ptr<timeline::Placement>> clones;
    std::vector<Worker> workers(1);
    workers[0].placement = &placement;
    while (workers.size() < std::min<size_t>(options_.threads, files.size())) {
      clones.push_back(placement.Clone());
      if (clones.back() == nullptr) break;
      workers.emplace_back().placement = clones.back().get();
    }
    std::atomic<bool> failed = false;
    InParallelByThread(files.size(), workers.size(), [&](size_t i, size_t thread) {
      if (failed) return;  // what has begun is finished
      copied[i] = Copy(files[i], workers[thread]);
      if (!copied[i].ok()) failed = true;
    });
    return copied;
  }

 private:
  // What one thread needs.
  struct Worker {
    timeline::Placement* placement = nullptr;
    ctf::AheadReader::Room read;
    std::vector<uint8_t> room;  // for packets
  };

  absl::StatusOr<CopyResult> Copy(const std::filesystem::path& file, Worker& worker) const {
    auto source = ctf::AheadReader::Open(file, &worker.read);
    if (!source.ok()) return CopyResult{};  // the reader has said so
    std::ofstream to(out_ / file.filename(), std::ios::binary | std::ios::trunc);
    SYNCLINE_ASSIGN_OR_RETURN(
        const uint64_t begin_byte,
        ctf::SeekStream(layout_, file, BeforeWindow(*worker.placement, options_.window.begin)));
    ctf::PacketRange range{.begin = begin_byte};
    const auto before = options_.before.find(file.filename().string());
    if (before != options_.before.end()) range.before = before->second;
    const bool whole =
        options_.window.begin.ns == kUnknownLo && options_.window.end.ns == kUnknownHi;
    SpaceAhead space(out_ / file.filename(), whole ? (*source)->size() : 0);
    StreamCopy copy(layout_, **source, uuid_, *worker.placement, options_, range, worker.room);
    SYNCLINE_RETURN_IF_ERROR(copy.Run(to));
    to.close();
    if (to.fail()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot write ", (out_ / file.filename()).string(), ": is the disk full?"));
    }
    space.GiveBack(copy.bytes());
    return CopyResult{1, copy.events(), copy.bytes()};
  }

  const ctf::TraceLayout& layout_;
  const ctf::Uuid& uuid_;
  const CopyOptions& options_;
  const std::filesystem::path& out_;
};

}  // namespace

absl::StatusOr<CopyResult> CopyTrace(const std::filesystem::path& trace,
                                     const std::filesystem::path& out,
                                     timeline::Placement& placement, const CopyOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(auto metadata, ctf::LoadMetadata(trace));
  const auto context = [&trace](absl::Status status) {
    return WithContext(std::move(status), absl::StrCat("cannot copy \"", trace.string(), "\""));
  };
  auto in_words = ctf::InCtf18Words(metadata);  // what we write is CTF 1.8
  if (!in_words.ok()) return context(in_words.status());
  metadata = *std::move(in_words);
  const ctf::Uuid uuid = UuidOf(
      absl::StrCat(metadata->uuid ? ctf::UuidText(*metadata->uuid) : "none", " ", options.label));
  SYNCLINE_ASSIGN_OR_RETURN(const auto layout, ctf::BuildLayout(metadata));
  if (absl::Status status = CheckLayout(*layout); !status.ok()) return context(status);
  SYNCLINE_ASSIGN_OR_RETURN(const std::string text,
                            ctf::WriteTsdl(Corrected(*metadata, uuid, options)));
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(out));
  SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(out / "metadata", text));
  SYNCLINE_ASSIGN_OR_RETURN(const auto files, ctf::ListStreamFiles(trace));
  const StreamCopier copier(*layout, uuid, options, out);
  CopyResult result;
  for (const absl::StatusOr<CopyResult>& copied : copier.CopyAll(files, placement)) {
    if (!copied.ok()) return context(copied.status());
    result.streams += copied->streams;
    result.events += copied->events;
    result.bytes += copied->bytes;
  }
  return result;
}

}  // namespace syncline::ctf_export
