// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/trace_files.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/recording/names.h"
#include "common/files.h"
#include "ctf/stream_summary.h"

namespace syncline::agent {
namespace {

constexpr uint64_t kNonceSearchBytesMax = 64 << 20;

void ForEachFile(const std::filesystem::path& directory,
                 const std::function<void(const std::filesystem::directory_entry&)>& visit) {
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(
      directory, std::filesystem::directory_options::skip_permission_denied, error);
  for (const std::filesystem::recursive_directory_iterator end; !error && it != end;
       it.increment(error)) {
    std::error_code status_error;
    const auto status = it->symlink_status(status_error);
    if (!status_error && std::filesystem::is_regular_file(status)) visit(*it);
  }
}

void Complain(std::string what, std::vector<v1::Complaint>* complaints) {
  v1::Complaint& complaint = complaints->emplace_back();
  complaint.set_severity(v1::Complaint::WARNING);
  complaint.set_what(std::move(what));
  complaint.set_fix("the file is kept as it is: merge reads what is readable");
}

}  // namespace

uint64_t DirectoryBytes(const std::filesystem::path& directory) {
  uint64_t bytes = 0;
  ForEachFile(directory, [&bytes](const std::filesystem::directory_entry& entry) {
    std::error_code error;
    const uint64_t size = entry.file_size(error);
    if (!error) bytes += size;
  });
  return bytes;
}

bool TraceContains(const std::filesystem::path& trace, uint64_t nonce) {
  char needle[sizeof nonce];
  std::memcpy(needle, &nonce, sizeof nonce);
  bool found = false;
  ForEachFile(trace, [&](const std::filesystem::directory_entry& entry) {
    if (found || entry.path().filename() == "metadata") return;
    const auto file = MappedFile::Open(entry.path());
    if (!file.ok()) return;
    const auto bytes =
        file->bytes().first(std::min<size_t>(file->bytes().size(), kNonceSearchBytesMax));
    found =
        std::search(bytes.begin(), bytes.end(), std::begin(needle), std::end(needle),
                    [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }) != bytes.end();
  });
  return found;
}

std::vector<v1::StreamResult> SummarizeTrace(const std::filesystem::path& trace,
                                             std::vector<v1::Complaint>* complaints) {
  std::vector<v1::StreamResult> results;
  const auto found = ctf::FindTraces(trace);
  if (!found.ok()) return results;  // nothing was recorded
  for (const std::filesystem::path& directory : found->traces) {
    const auto metadata = ctf::LoadMetadata(directory);
    if (!metadata.ok()) {
      Complain(absl::StrCat("The metadata of \"", directory.string(),
                            "\" cannot be read: ", metadata.status().message()),
               complaints);
    }
    for (const std::filesystem::path& file : ctf::ListStreamFiles(directory)) {
      v1::StreamResult& result = results.emplace_back();
      result.set_path(file.lexically_relative(trace).string());
      std::error_code error;
      const uint64_t bytes = std::filesystem::file_size(file, error);
      if (!error) result.set_bytes(bytes);
      if (!metadata.ok()) continue;
      const auto summary = ctf::SummarizeStream(**metadata, file);
      if (!summary.ok()) {
        Complain(absl::StrCat("Stream \"", file.string(), "\": ", summary.status().message()),
                 complaints);
        continue;
      }
      result.set_bytes(summary->file_bytes);
      result.set_packets_count(summary->packets);
      result.set_sequence_gaps_count(summary->sequence_gaps);
      result.set_discarded_events_count(summary->discarded_events);
      result.set_closed(summary->closed);
    }
  }
  return results;
}

std::vector<v1::FileEntry> ListFetchable(const std::filesystem::path& recording) {
  std::vector<v1::FileEntry> files;
  ForEachFile(recording, [&](const std::filesystem::directory_entry& entry) {
    const std::string path = entry.path().lexically_relative(recording).string();
    std::error_code error;
    const uint64_t size = entry.file_size(error);
    if (error || !IsFetchablePath(path)) return;
    v1::FileEntry& file = files.emplace_back();
    file.set_path(path);
    file.set_size_bytes(size);
  });
  std::sort(files.begin(), files.end(),
            [](const v1::FileEntry& a, const v1::FileEntry& b) { return a.path() < b.path(); });
  return files;
}

}  // namespace syncline::agent
