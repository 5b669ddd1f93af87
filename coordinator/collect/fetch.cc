// SPDX-License-Identifier: Apache-2.0
#include "coordinator/collect/fetch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/checksum.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/collect/incoming_file.h"

namespace syncline::collect {
namespace {

constexpr int kFilesMax = 1'000'000;
constexpr uint64_t kReserveBytes = 1 << 20;  // for recording.json and models.json
// A transfer brings so many bytes in such a time, or it is broken off: chunks that bring next to
// nothing are no silence. (An agent sends 256 KiB in a chunk, and may be silent for 15 s.)
constexpr int64_t kPaceNs = 60'000'000'000;
constexpr uint64_t kPaceBytes = 64 << 10;
// What counts as progress over some attempts: a hundredth of all, between these. A node that sends
// a few bytes, breaks, and does so for ever is given up; a large recording over a link that breaks
// twice a minute is not.
constexpr uint64_t kProgressParts = 100;
constexpr uint64_t kProgressBytesMin = 64 << 10;
constexpr uint64_t kProgressBytesMax = 64 << 20;

// Files that the agent may still be writing: always brought whole.
bool IsLive(std::string_view path) { return path == "agent.log" || path == "node.json"; }

absl::Status BadPath(std::string_view path) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the agent offers a file by a name that no recording may have: \"", AbslView(path), "\""));
}

// One stream of chunks: the list, then each file's data and end, one file after the other. What it
// writes is bounded by the list, for which there is room, whatever the node sends.
class Transfer {
 public:
  Transfer(const recording::Layout& layout, const FetchOptions& options,
           std::map<std::string, uint64_t> resume, const host::Clock* clock)
      : layout_(layout),
        options_(options),
        resume_(std::move(resume)),
        clock_(*clock),
        paced_at_ns_(clock->RawNs()) {}

  absl::Status OnChunk(v1::FetchChunk& chunk) {
    SYNCLINE_RETURN_IF_ERROR(CheckPace(chunk.data().data().size()));
    switch (chunk.kind_case()) {
      case v1::FetchChunk::kList:
        return OnList(chunk.list());
      case v1::FetchChunk::kData:
        return OnData(chunk.data());
      case v1::FetchChunk::kEnd:
        return OnEnd(chunk.end());
      case v1::FetchChunk::KIND_NOT_SET:
        break;
    }
    return absl::OkStatus();  // of a newer agent
  }

  absl::Status Complete() const {
    if (!listed_) return absl::UnavailableError("the agent sent no list of files");
    if (!waiting_.empty()) {
      return absl::UnavailableError(
          absl::StrCat("the transfer ended before \"", waiting_.begin()->first, "\" was complete"));
    }
    return absl::OkStatus();
  }
  uint64_t total_bytes() const { return total_bytes_; }

 private:
  absl::Status CheckPace(uint64_t bytes) {
    paced_bytes_ += bytes;
    const int64_t now_ns = clock_.RawNs();
    if (now_ns - paced_at_ns_ < kPaceNs) return absl::OkStatus();
    if (paced_bytes_ < kPaceBytes) {
      return absl::DeadlineExceededError(absl::StrCat("the agent sent ", paced_bytes_, " bytes in ",
                                                      (now_ns - paced_at_ns_) / 1'000'000'000,
                                                      " s"));
    }
    paced_at_ns_ = now_ns;
    paced_bytes_ = 0;
    return absl::OkStatus();
  }

  absl::Status OnList(const v1::FileList& list) {
    if (listed_) return absl::DataLossError("the agent sent its list of files twice");
    if (list.files_size() > kFilesMax) return absl::DataLossError("the agent lists too many files");
    listed_ = true;
    for (const v1::FileEntry& entry : list.files()) {
      SYNCLINE_ASSIGN_OR_RETURN(const std::filesystem::path path,
                                LocalPath(layout_, options_.node, entry.path()));
      if (!waiting_.emplace(entry.path(), Listed{path, entry.size_bytes()}).second) {
        return absl::DataLossError(absl::StrCat("the agent lists \"", path.string(), "\" twice"));
      }
      if (entry.size_bytes() > std::numeric_limits<uint64_t>::max() / 2 - total_bytes_) {
        return absl::DataLossError("the agent lists more bytes than there can be");
      }
      total_bytes_ += entry.size_bytes();
      const auto prefix = resume_.find(entry.path());
      if (prefix == resume_.end()) continue;
      if (prefix->second > entry.size_bytes()) {
        // Not this file's beginning, whatever it is: the next attempt starts it anew.
        IncomingFile::Remove(path);
        return absl::DataLossError(
            absl::StrCat("\"", path.string(), "\" was longer than the node's"));
      }
      done_bytes_ += prefix->second;
    }
    const uint64_t needed = total_bytes_ - std::min(total_bytes_, done_bytes_);
    const uint64_t free = options_.free_bytes(layout_.root());
    if (needed + kReserveBytes > free) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "this machine's disk is too full: ", needed, " bytes must still be transferred, ", free,
          " bytes are free in \"", layout_.root().string(), "\""));
    }
    return absl::OkStatus();
  }

  absl::Status Switch(const std::string& path) {
    if (file_ != nullptr && path == path_) return absl::OkStatus();
    if (file_ != nullptr) {
      return absl::DataLossError(
          absl::StrCat("the agent begins \"", path, "\" before the end of \"", path_, "\""));
    }
    const auto found = waiting_.find(path);
    if (found == waiting_.end()) return BadPath(path);
    const bool resumed = resume_.count(path) != 0;
    SYNCLINE_ASSIGN_OR_RETURN(file_, IncomingFile::Open(found->second.local, !resumed));
    path_ = path;
    size_bytes_ = found->second.bytes;
    return absl::OkStatus();
  }

  absl::Status OnData(const v1::FileData& data) {
    SYNCLINE_RETURN_IF_ERROR(Switch(data.path()));
    if (data.offset_bytes() != file_->size_bytes()) {
      return absl::DataLossError(absl::StrCat("\"", data.path(), "\" continues at ",
                                              data.offset_bytes(), " instead of ",
                                              file_->size_bytes()));
    }
    if (data.data().size() > size_bytes_ - std::min(size_bytes_, file_->size_bytes())) {
      return absl::DataLossError(absl::StrCat("the agent sends more of \"", data.path(),
                                              "\" than the ", size_bytes_,
                                              " bytes that it listed"));
    }
    if (Crc32c(data.data()) != data.crc32c()) {
      return absl::DataLossError(absl::StrCat("a chunk of \"", data.path(), "\" arrived damaged"));
    }
    SYNCLINE_RETURN_IF_ERROR(file_->Append(data.data()));
    done_bytes_ += data.data().size();
    if (options_.on_progress) options_.on_progress(done_bytes_, total_bytes_);
    return absl::OkStatus();
  }

  absl::Status OnEnd(const v1::FileEnd& end) {
    SYNCLINE_RETURN_IF_ERROR(Switch(end.path()));
    const absl::Status finished = file_->Finish(end.size_bytes(), end.sha256());
    file_.reset();
    path_.clear();
    if (finished.ok()) waiting_.erase(end.path());
    return finished;
  }

  struct Listed {
    std::filesystem::path local;
    uint64_t bytes = 0;
  };

  const recording::Layout& layout_;
  const FetchOptions& options_;
  const std::map<std::string, uint64_t> resume_;  // agent's path -> bytes that are here
  const host::Clock& clock_;
  int64_t paced_at_ns_;
  uint64_t paced_bytes_ = 0;  // since then
  std::map<std::string, Listed> waiting_;
  // The file that is on its way, if any: its path and size, as listed.
  std::unique_ptr<IncomingFile> file_;
  std::string path_;
  uint64_t size_bytes_ = 0;
  bool listed_ = false;
  uint64_t total_bytes_ = 0;
  uint64_t done_bytes_ = 0;
};

// What is here of a node already, by the agent's paths.
std::map<std::string, uint64_t> FindPrefixes(const recording::Layout& layout,
                                             const std::string& node) {
  std::map<std::string, uint64_t> prefixes;
  const auto note = [&](const std::string& agent_path, const std::filesystem::path& local) {
    const uint64_t bytes = IncomingFile::PrefixBytes(local);
    if (bytes > 0) prefixes[agent_path] = bytes;
  };
  const std::filesystem::path root = layout.Node(node);
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(root, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    if (!entry->is_regular_file(error)) continue;
    std::filesystem::path path = entry->path();
    if (path.extension() == ".part") path.replace_extension();
    const std::string agent_path = path.lexically_relative(root).generic_string();
    if (!IsLive(agent_path)) note(agent_path, path);
  }
  note("clock.tuples", layout.Tuples(node));
  return prefixes;
}

uint64_t FreeBytes(const std::filesystem::path& directory) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  return error ? ~uint64_t{0} : space.available;
}

// Whether attempts go on: counts those in a row that brought too little.
class Patience {
 public:
  Patience(int attempts_max, uint64_t kept_bytes)
      : attempts_max_(attempts_max), mark_bytes_(kept_bytes) {}

  // After an attempt: what is here of the node now, and what it said there is. False: give up.
  bool GoOn(uint64_t kept_bytes, uint64_t listed_bytes) {
    const uint64_t all = std::max(listed_bytes, kept_bytes);
    const uint64_t progress =
        std::clamp(all / kProgressParts, kProgressBytesMin, kProgressBytesMax);
    if (kept_bytes >= mark_bytes_ + progress) {
      mark_bytes_ = kept_bytes;
      attempts_ = 0;
      return true;
    }
    return ++attempts_ < attempts_max_;
  }

 private:
  const int attempts_max_;
  uint64_t mark_bytes_;  // that were kept when attempts were last counted from anew
  int attempts_ = 0;
};

uint64_t SumOf(const std::map<std::string, uint64_t>& prefixes) {
  uint64_t bytes = 0;
  for (const auto& [path, size] : prefixes) bytes += size;
  return bytes;
}

bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsDataLoss(status) || absl::IsAborted(status);
}

// Of all files below the directory but metadata. 0 where there is none.
absl::StatusOr<uint64_t> StreamBytes(const std::filesystem::path& trace) {
  uint64_t bytes = 0;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(trace, error);
  if (error == std::errc::no_such_file_or_directory) return uint64_t{0};
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    if (!entry->is_regular_file(error) || entry->path().filename() == "metadata") continue;
    const uint64_t size = entry->file_size(error);
    if (!error) bytes += size;
  }
  if (error)
    return ErrnoStatus(error.value(), absl::StrCat("Cannot list \"", trace.string(), "\""));
  return bytes;
}

}  // namespace

absl::Status VerifyFetched(const recording::Layout& layout, const recording::NodeRecord& node) {
  for (const recording::StreamRecord& stream : node.streams) {
    SYNCLINE_ASSIGN_OR_RETURN(const std::filesystem::path path,
                              LocalPath(layout, node.name, absl::StrCat("trace/", stream.path)));
    std::error_code error;
    const uint64_t bytes = std::filesystem::file_size(path, error);
    if (error == std::errc::no_such_file_or_directory && stream.bytes > 0) {
      return absl::DataLossError(absl::StrCat("\"", path.string(), "\" did not come"));
    }
    if (!error && bytes < stream.bytes) {
      return absl::DataLossError(
          absl::StrCat("of \"", path.string(), "\" ", bytes, " of ", stream.bytes, " bytes came"));
    }
    if (error && stream.bytes > 0) {
      return ErrnoStatus(error.value(), absl::StrCat("Cannot stat \"", path.string(), "\""));
    }
  }
  uint64_t events = 0;
  for (const recording::ProcessRecord& process : node.processes) events += process.events;
  // A node that says itself that events are lost has been looked through there.
  if (events == 0 || !node.stop.complete) return absl::OkStatus();
  SYNCLINE_ASSIGN_OR_RETURN(const uint64_t bytes, StreamBytes(layout.Trace(node.name)));
  if (bytes > 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("its processes counted ", events,
                                          events == 1 ? " event" : " events", ", and none came"));
}

absl::Status SyncToDisk(const recording::Layout& layout) {
  const int fd = ::open(layout.root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "Cannot open the recording's directory");
  const int synced = ::syncfs(fd);
  const int error_number = errno;
  ::close(fd);
  return synced == 0 ? absl::OkStatus() : ErrnoStatus(error_number, "Cannot sync the disk");
}

absl::StatusOr<std::filesystem::path> LocalPath(const recording::Layout& layout,
                                                std::string_view node, std::string_view path) {
  if (path == "clock.tuples") return layout.Tuples(node);
  // A name that is unknown here is of a newer agent: its file is kept where it belongs, unread.
  std::filesystem::path relative;
  size_t depth = 0;
  for (absl::string_view component : absl::StrSplit(AbslView(path), '/')) {
    const bool plain = !component.empty() && component != "." && component != ".." &&
                       component.size() <= 255 && component.find('\0') == component.npos;
    if (!plain || ++depth > 32) return BadPath(path);
    relative /= std::string(component);
  }
  if (relative.extension() == ".part") return BadPath(path);
  return layout.Node(node) / relative;
}

absl::StatusOr<uint64_t> FetchNode(fleet::AgentClient* client, const recording::Layout& layout,
                                   const FetchOptions& given, host::Clock* clock,
                                   const std::stop_token& stop) {
  FetchOptions options = given;
  if (!options.free_bytes) options.free_bytes = &FreeBytes;
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(layout.Clocks()));
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(layout.Node(options.node)));
  std::map<std::string, uint64_t> here = FindPrefixes(layout, options.node);
  Patience patience(options.attempts_max, SumOf(here));
  for (;;) {
    v1::FetchRequest request;
    request.set_recording_id(options.recording_id);
    for (const auto& [path, offset] : here) {
      v1::FetchResume* const entry = request.add_resume();
      entry->set_path(path);
      entry->set_offset_bytes(offset);
    }
    Transfer transfer(layout, options, std::move(here), clock);
    absl::Status status = client->Fetch(request, options.silence, [&](v1::FetchChunk& chunk) {
      return stop.stop_requested() ? absl::CancelledError("interrupted") : transfer.OnChunk(chunk);
    });
    if (status.ok()) status = transfer.Complete();
    if (status.ok()) return transfer.total_bytes();
    if (stop.stop_requested()) return absl::CancelledError("interrupted");
    if (!MayPass(status)) return status;
    here = FindPrefixes(layout, options.node);
    if (!patience.GoOn(SumOf(here), transfer.total_bytes())) return status;
    clock->Wait(options.attempt_pause_ns, stop);
  }
}

}  // namespace syncline::collect
