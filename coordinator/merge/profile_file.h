// SPDX-License-Identifier: Apache-2.0
// One file that a profiler wrote, whoever it was: PyTorch's JSON, an XSpace of TensorFlow or JAX;
// or a table of spans. What it is is told by its content; by its name only which files of a
// directory are looked at.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_PROFILE_FILE_H_
#define SYNCLINE_COORDINATOR_MERGE_PROFILE_FILE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/event_cursor.h"
#include "kineto/trace.h"
#include "timeline/node_input.h"

namespace syncline::merge {

// What a file says of one process.
struct ProfilePart {
  timeline::Profiler profiler = timeline::Profiler::kKineto;
  std::unique_ptr<TraceReader> reader;
  const kineto::Trace* kineto = nullptr;  // the reader, if it is one of PyTorch's profiles
  std::vector<Loss> losses;               // also those that the reader knows
  uint64_t events = 0;
  std::optional<timeline::ClockInterval> covered;  // CLOCK_REALTIME; nullopt: it does not say
  std::optional<int32_t> rank, world_size;         // of the job
  std::string node;                                // empty: it does not say
  int32_t pid = 0;
  std::string process_name;
};

struct ProfileFile {
  std::vector<ProfilePart> parts;  // at least one
  std::vector<std::string> notes;  // without the file's name
};

// Below a directory, sorted; links to directories are not followed. By their names: .json,
// .xplane.pb, and of .csv and .jsonl those that are tables of spans; each also packed with gzip
// (.gz) or zstd (.zst).
std::vector<std::filesystem::path> FindProfiles(const std::filesystem::path& directory);

// NotFound, PermissionDenied, ResourceExhausted (unpacked it is too large), InvalidArgument: it is
// nothing that is read here. Damage is no error, the readers' losses say it.
absl::StatusOr<ProfileFile> OpenProfileFile(const std::filesystem::path& path);

// Without what says that it is a profile: "vm" of "vm.xplane.pb".
std::string StemOf(const std::filesystem::path& path);

// 3 of "rank3.json", "job-rank_3.pt.trace.json.gz", "rank-003".
std::optional<int32_t> RankOfName(std::string_view name);
// By the file's name; of "logs/rank3/plugins/profile/TIME/HOST.xplane.pb", as JAX and TensorFlow
// lay out what they log, else by that of the directory they were told to log to.
std::optional<int32_t> RankOfPath(const std::filesystem::path& path);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_PROFILE_FILE_H_
