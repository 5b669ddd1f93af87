// SPDX-License-Identifier: Apache-2.0
#include "ctf/packet_index.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "ctf/bits.h"
#include "ctf/clocks.h"
#include "ctf/packet_walker.h"

namespace syncline::ctf {
namespace {

constexpr uint32_t kIndexMagic = 0xc1f1dcc1;
constexpr uint64_t kIndexHeaderBytes = 16;
constexpr uint64_t kEntryBytesMin = 56;    // of version 1.0
constexpr uint64_t kEntryBytesKnown = 72;  // of version 1.1
constexpr uint64_t kEntryBytesMax = 4096;  // far above any version's
constexpr size_t kPacketHeaderBytes = 512;
// Packets before the window that are read: the one whose events may reach into it, and one that
// tells how many events had been discarded before that.
constexpr uint64_t kPacketsBefore = 2;

}  // namespace

PacketIndex::PacketIndex(std::unique_ptr<ByteSource> source, uint64_t entry_bytes)
    : source_(std::move(source)),
      entry_bytes_(entry_bytes),
      size_((source_->size() - kIndexHeaderBytes) / entry_bytes) {}

absl::StatusOr<PacketIndex> PacketIndex::Open(std::unique_ptr<ByteSource> source) {
  SYNCLINE_ASSIGN_OR_RETURN(const auto bytes, source->Read(0, kIndexHeaderBytes));
  if (bytes.size() < kIndexHeaderBytes) {
    return absl::InvalidArgumentError("a packet index ends inside its header");
  }
  const auto word = [&bytes](size_t i) { return LoadBytes(bytes.data() + 4 * i, 4, true); };
  if (word(0) != kIndexMagic || word(1) != 1) {
    return absl::InvalidArgumentError("no packet index of version 1");
  }
  const uint64_t entry_bytes = word(3);
  if (entry_bytes < kEntryBytesMin || entry_bytes > kEntryBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a packet index with entries of ", entry_bytes, " bytes"));
  }
  return PacketIndex(std::move(source), entry_bytes);
}

std::optional<PacketIndex> PacketIndex::OfStream(const std::filesystem::path& stream) {
  const std::string name = stream.filename().string() + ".idx";
  auto source = FileReader::Open(stream.parent_path() / "index" / name);
  if (!source.ok()) return std::nullopt;
  auto index = Open(*std::move(source));
  if (!index.ok()) return std::nullopt;
  return *std::move(index);
}

absl::StatusOr<std::vector<IndexEntry>> PacketIndex::Read(uint64_t first, size_t count) {
  const uint64_t wanted = std::min<uint64_t>(count, size_ - std::min(first, size_));
  SYNCLINE_ASSIGN_OR_RETURN(
      const auto bytes,
      source_->Read(kIndexHeaderBytes + first * entry_bytes_, wanted * entry_bytes_));
  std::vector<IndexEntry> entries;
  for (size_t at = 0; at + entry_bytes_ <= bytes.size(); at += entry_bytes_) {
    const auto field = [&bytes, at](size_t i) {
      return LoadBytes(bytes.data() + at + 8 * i, 8, true);
    };
    IndexEntry& entry = entries.emplace_back(
        IndexEntry{field(0), field(1), field(2), field(3), field(4), field(6), {}, {}});
    if (entry_bytes_ < kEntryBytesKnown) continue;
    entry.stream_instance_id = field(7);
    entry.sequence = field(8);
  }
  return entries;
}

absl::StatusOr<IndexEntry> PacketIndex::At(uint64_t i) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::vector<IndexEntry> entries, Read(i, 1));
  if (entries.empty()) return absl::OutOfRangeError("behind the index's end");
  return entries[0];
}

absl::StatusOr<std::optional<PacketHeader>> IndexedStream::Verified(uint64_t i) {
  SYNCLINE_ASSIGN_OR_RETURN(const IndexEntry entry, index_.At(i));
  const uint64_t bytes = entry.packet_bits / 8;
  if (entry.offset >= stream_.size() || bytes > stream_.size() - entry.offset) return std::nullopt;
  SYNCLINE_ASSIGN_OR_RETURN(const auto head, stream_.Read(entry.offset, kPacketHeaderBytes));
  // A header with shortened times is not read right without those before it, and differs then.
  PacketHeader header;
  const HeaderState state = ReadPacketHeader(layout_, head, HeaderContext{}, &header);
  const bool same = state == HeaderState::kOk && header.packet_bits == entry.packet_bits &&
                    header.content_bits == entry.content_bits &&
                    header.begin_cycles == entry.begin_cycles &&
                    header.end_cycles == entry.end_cycles && header.stream->id == entry.stream_id;
  return same ? std::optional<PacketHeader>(header) : std::nullopt;
}

absl::StatusOr<uint64_t> IndexedStream::Seek(int64_t begin_ns) {
  if (begin_ns == kUnknownLo || index_.size() == 0) return 0;
  SYNCLINE_ASSIGN_OR_RETURN(const auto first, Verified(0));
  if (!first) return 0;
  const ClockClass* const clock = first->stream->clock;
  SYNCLINE_ASSIGN_OR_RETURN(const uint64_t found, index_.FirstWhere([&](const IndexEntry& entry) {
    return CyclesToNs(clock, entry.end_cycles) >= begin_ns;
  }));
  if (found <= kPacketsBefore) return 0;
  // All of them must be what they are said to be, one behind the other, and end before the window.
  uint64_t start = 0;
  uint64_t expected = 0;
  for (uint64_t i = found - kPacketsBefore; i < std::min(found + 1, index_.size()); ++i) {
    SYNCLINE_ASSIGN_OR_RETURN(const auto header, Verified(i));
    SYNCLINE_ASSIGN_OR_RETURN(const IndexEntry entry, index_.At(i));
    if (!header || header->stream->clock != clock) return 0;
    if (i == found - kPacketsBefore) {
      start = entry.offset;
    } else if (entry.offset != expected) {
      return 0;
    }
    if (i < found && CyclesToNs(clock, *header->end_cycles) >= begin_ns) return 0;
    expected = entry.offset + entry.packet_bits / 8;
  }
  return start;
}

absl::StatusOr<std::optional<IndexedExtent>> IndexedStream::Extent() {
  if (index_.size() == 0) return std::nullopt;
  SYNCLINE_ASSIGN_OR_RETURN(const IndexEntry first_entry, index_.At(0));
  SYNCLINE_ASSIGN_OR_RETURN(const auto first, Verified(0));
  if (first_entry.offset != 0 || !first) return std::nullopt;
  SYNCLINE_ASSIGN_OR_RETURN(const uint64_t beyond, index_.FirstWhere([&](const IndexEntry& entry) {
    return entry.offset >= stream_.size();
  }));
  // The last one that is whole: behind it may be one that was cut, or some that are not listed.
  for (uint64_t last = beyond; last-- > 0 && last + 2 >= beyond;) {
    SYNCLINE_ASSIGN_OR_RETURN(const auto header, Verified(last));
    if (!header) continue;
    const ClockClass* const clock = first->stream->clock;
    IndexedExtent extent;
    extent.packets = last - std::min<uint64_t>(last, 2);
    extent.cpu_id = first->cpu_id;
    extent.first = *first;
    extent.begin_ns = extent.end_ns = CyclesToNs(clock, *first->begin_cycles);
    // With those before it: a single packet's count of discarded events may be odd.
    const uint64_t from = last - std::min<uint64_t>(last, 2);
    SYNCLINE_ASSIGN_OR_RETURN(const IndexEntry entry, index_.At(from));
    SYNCLINE_ASSIGN_OR_RETURN(const IndexEntry verified, index_.At(last));
    extent.resume_byte = verified.offset;
    PacketWalker walker(layout_, stream_, "", {.begin = entry.offset});
    for (;;) {
      SYNCLINE_ASSIGN_OR_RETURN(const auto packet, walker.Next());
      if (!packet) break;
      ++extent.packets;
      extent.end_ns = std::max(extent.end_ns, packet->end_ns.value_or(packet->begin_ns));
      extent.end_known = packet->latest_ns().has_value();
    }
    extent.last_sequence = walker.last_sequence();
    extent.last_discarded = walker.last_discarded();
    extent.beyond = index_.size() - beyond;
    if (extent.beyond > 0) {
      SYNCLINE_ASSIGN_OR_RETURN(const IndexEntry missing, index_.At(index_.size() - 1));
      extent.beyond_end_ns = std::max(extent.end_ns, CyclesToNs(clock, missing.end_cycles));
    }
    return extent;
  }
  return std::nullopt;
}

absl::StatusOr<UnheldPackets> FindUnheld(const TraceLayout& layout, const StreamSummary& summary,
                                         PacketIndex* index) {
  UnheldPackets unheld;
  for (uint64_t i = 0; i < index->size(); ++i) {
    SYNCLINE_ASSIGN_OR_RETURN(const IndexEntry entry, index->At(i));
    const StreamLayout* const stream = layout.FindStream(entry.stream_id);
    if (stream == nullptr || entry.packet_bits == 0) continue;
    if (summary.packets > 0) {
      const bool of_it = entry.stream_id == summary.stream_id && entry.stream_instance_id &&
                         entry.stream_instance_id == summary.stream_instance_id;
      if (!of_it || !summary.first_sequence || !summary.last_sequence) continue;
      if (*entry.sequence >= *summary.first_sequence && *entry.sequence <= *summary.last_sequence) {
        continue;
      }
    }
    ++unheld.packets;
    unheld.begin_ns = std::min(unheld.begin_ns, CyclesToNs(stream->clock, entry.begin_cycles));
    unheld.end_ns = std::max(unheld.end_ns, CyclesToNs(stream->clock, entry.end_cycles));
  }
  return unheld;
}

absl::StatusOr<uint64_t> SeekStream(const TraceLayout& layout, const std::filesystem::path& stream,
                                    int64_t begin_ns) {
  if (begin_ns == kUnknownLo) return 0;
  std::optional<PacketIndex> index = PacketIndex::OfStream(stream);
  if (!index) return 0;
  SYNCLINE_ASSIGN_OR_RETURN(const auto source, FileReader::Open(stream));
  return IndexedStream(layout, *source, *index).Seek(begin_ns);
}

}  // namespace syncline::ctf
