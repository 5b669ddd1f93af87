// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/trace_files.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/recording/names.h"
#include "common/files.h"
#include "common/status.h"
#include "common/utf8.h"
#include "ctf/metadata.h"
#include "ctf/stream_summary.h"

namespace syncline::agent {
namespace {

constexpr uint64_t kNonceSearchBytesMax = 64 << 20;
constexpr const char* kMetadata = "metadata";
constexpr const char* kIndexDirectory = "index";  // LTTng's own, beside the streams

absl::Status CannotList(const std::filesystem::path& directory, const std::error_code& error) {
  return ErrnoStatus(error.value(), absl::StrCat("Cannot list \"", directory.string(), "\""));
}

// Calls `visit` for every regular file at any depth. What is removed meanwhile is no error.
absl::Status ForEachFile(
    const std::filesystem::path& directory,
    const std::function<absl::Status(const std::filesystem::directory_entry&)>& visit) {
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(directory, error);
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  for (const std::filesystem::recursive_directory_iterator end; !error && it != end;
       it.increment(error)) {
    std::error_code status_error;
    const auto status = it->symlink_status(status_error);
    if (!status_error && std::filesystem::is_regular_file(status)) {
      SYNCLINE_RETURN_IF_ERROR(visit(*it));
    }
  }
  return error ? CannotList(directory, error) : absl::OkStatus();
}

// 0 for a file that is gone by now.
absl::StatusOr<uint64_t> SizeOf(const std::filesystem::directory_entry& entry) {
  std::error_code error;
  const uint64_t size = entry.file_size(error);
  if (error == std::errc::no_such_file_or_directory) return uint64_t{0};
  if (!error) return size;
  return ErrnoStatus(error.value(), absl::StrCat("Cannot stat \"", entry.path().string(), "\""));
}

void Complain(std::string what, std::vector<v1::Complaint>* complaints) {
  v1::Complaint& complaint = complaints->emplace_back();
  complaint.set_severity(v1::Complaint::WARNING);
  complaint.set_what(std::move(what));
  complaint.set_fix("the file is kept as it is: merge reads what is readable");
}

// `metadata`: null when it cannot be read; then the streams' sizes are all there is to say.
absl::Status SummarizeDirectory(const std::filesystem::path& trace,
                                const std::filesystem::path& directory,
                                const ctf::Metadata* metadata, TraceSummary* summary) {
  SYNCLINE_ASSIGN_OR_RETURN(const auto files, ctf::ListStreamFiles(directory));
  for (const std::filesystem::path& file : files) {
    v1::StreamResult& result = summary->streams.emplace_back();
    result.set_path(file.lexically_relative(trace).string());
    std::error_code error;
    const uint64_t bytes = std::filesystem::file_size(file, error);
    if (!error) result.set_bytes(bytes);
    if (metadata == nullptr) continue;
    const auto stream = ctf::SummarizeStream(*metadata, file);
    if (absl::IsResourceExhausted(stream.status())) return stream.status();
    if (!stream.ok()) {
      Complain(absl::StrCat("Stream \"", file.string(), "\": ", stream.status().message()),
               &summary->complaints);
      continue;
    }
    result.set_bytes(stream->file_bytes);
    result.set_packets_count(stream->packets);
    result.set_sequence_gaps_count(stream->sequence_gaps);
    result.set_discarded_events_count(stream->discarded_events);
    result.set_closed(stream->closed);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint64_t> DirectoryBytes(const std::filesystem::path& directory) {
  uint64_t bytes = 0;
  SYNCLINE_RETURN_IF_ERROR(
      ForEachFile(directory, [&](const std::filesystem::directory_entry& entry) -> absl::Status {
        SYNCLINE_ASSIGN_OR_RETURN(const uint64_t size, SizeOf(entry));
        bytes += size;
        return absl::OkStatus();
      }));
  return bytes;
}

void RepairFileNames(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<std::filesystem::directory_entry> entries;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    entries.push_back(*it);
  }
  for (const std::filesystem::directory_entry& entry : entries) {
    std::error_code ignored;
    if (std::filesystem::is_directory(entry.symlink_status(ignored))) RepairFileNames(entry.path());
    const std::string name = entry.path().filename().string();
    const std::string repaired = RepairedUtf8(name);
    if (repaired == name || std::filesystem::exists(directory / repaired, ignored)) continue;
    std::filesystem::rename(entry.path(), directory / repaired, ignored);
  }
}

void RemoveTracesOf(const std::vector<uint32_t>& users, const std::filesystem::path& trace) {
  for (const uint32_t uid : users) {
    std::error_code ignored;
    std::filesystem::remove_all(trace / "ust" / "uid" / absl::StrCat(uid), ignored);
  }
}

absl::StatusOr<bool> TraceContains(const std::filesystem::path& trace, uint64_t nonce) {
  char needle[sizeof nonce];
  std::memcpy(needle, &nonce, sizeof nonce);
  bool found = false;
  SYNCLINE_RETURN_IF_ERROR(
      ForEachFile(trace, [&](const std::filesystem::directory_entry& entry) -> absl::Status {
        if (found || entry.path().filename() == kMetadata) return absl::OkStatus();
        SYNCLINE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(entry.path()));
        const auto bytes =
            file.bytes().first(std::min<size_t>(file.bytes().size(), kNonceSearchBytesMax));
        found = std::search(bytes.begin(), bytes.end(), std::begin(needle), std::end(needle),
                            [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }) !=
                bytes.end();
        return absl::OkStatus();
      }));
  return found;
}

absl::StatusOr<std::vector<std::filesystem::path>> TraceDirectories(
    const std::filesystem::path& trace) {
  std::set<std::filesystem::path> directories;
  SYNCLINE_RETURN_IF_ERROR(ForEachFile(trace, [&](const std::filesystem::directory_entry& entry) {
    const std::filesystem::path directory = entry.path().parent_path();
    if (directory.filename() != kIndexDirectory) directories.insert(directory);
    return absl::OkStatus();
  }));
  return std::vector<std::filesystem::path>(directories.begin(), directories.end());
}

absl::Status CheckMetadata(const std::filesystem::path& directory) {
  const auto metadata = ctf::LoadMetadata(directory);
  const auto unreadable = [&directory](absl::string_view why) {
    return absl::DataLossError(absl::StrCat("The events in \"", directory.string(),
                                            "\" cannot all be read: their metadata ", why));
  };
  if (absl::IsNotFound(metadata.status())) return unreadable("is missing");
  if (absl::IsResourceExhausted(metadata.status())) return metadata.status();
  if (!metadata.ok()) {
    return unreadable(absl::StrCat("is damaged: ", metadata.status().message()));
  }
  const auto& streams = (*metadata)->streams;  // text without any has one, of which nothing is said
  if (std::all_of(streams.begin(), streams.end(), [](const ctf::StreamType& stream) {
        return stream.event_header == nullptr && stream.packet_context == nullptr;
      })) {
    return unreadable("is empty or ends before the first stream");
  }
  if (!(*metadata)->warnings.empty()) {
    return unreadable(absl::StrCat("is not whole: ", (*metadata)->warnings.front()));
  }
  return absl::OkStatus();
}

absl::StatusOr<TraceSummary> SummarizeTrace(const std::filesystem::path& trace) {
  TraceSummary summary;
  SYNCLINE_ASSIGN_OR_RETURN(const auto directories, TraceDirectories(trace));
  for (const std::filesystem::path& directory : directories) {
    const absl::Status readable = CheckMetadata(directory);
    if (absl::IsResourceExhausted(readable)) return readable;
    if (!readable.ok()) {
      summary.readable = false;
      Complain(std::string(readable.message()), &summary.complaints);
    }
    const auto metadata = ctf::LoadMetadata(directory);
    SYNCLINE_RETURN_IF_ERROR(
        SummarizeDirectory(trace, directory, metadata.ok() ? metadata->get() : nullptr, &summary));
  }
  return summary;
}

absl::StatusOr<std::vector<v1::FileEntry>> ListFetchable(const std::filesystem::path& recording) {
  std::vector<v1::FileEntry> files;
  SYNCLINE_RETURN_IF_ERROR(
      ForEachFile(recording, [&](const std::filesystem::directory_entry& entry) -> absl::Status {
        const std::string path = entry.path().lexically_relative(recording).string();
        if (!IsFetchablePath(path)) return absl::OkStatus();
        SYNCLINE_ASSIGN_OR_RETURN(const uint64_t size, SizeOf(entry));
        v1::FileEntry& file = files.emplace_back();
        file.set_path(path);
        file.set_size_bytes(size);
        return absl::OkStatus();
      }));
  std::sort(files.begin(), files.end(),
            [](const v1::FileEntry& a, const v1::FileEntry& b) { return a.path() < b.path(); });
  return files;
}

}  // namespace syncline::agent
