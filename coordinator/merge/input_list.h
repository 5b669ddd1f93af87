// SPDX-License-Identifier: Apache-2.0
// What the words of a command line mean before anything is opened: which INPUT is a recording,
// which are trace directories, which are profiles, which name stands for which, and whether the
// output may lie where it was asked to. All of it is refused here, before any work, with what to
// write instead.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_INPUT_LIST_H_
#define SYNCLINE_COORDINATOR_MERGE_INPUT_LIST_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncline::merge {

struct Input {
  std::string text;  // as given
  std::string name;  // of "NAME=DIR"; empty: none was given
  // Exists; without "." and a slash at the end. Of a profile: the one that it lies in.
  std::filesystem::path directory;
  std::vector<std::filesystem::path> profiles;  // files; empty: a recording, or CTF traces
  bool is_file = false;                         // one profile was named, not its directory
};

struct InputList {
  std::vector<Input> inputs;       // at least one
  bool is_recording = false;       // then there is one
  bool is_profiles = false;        // then all are
  std::vector<std::string> notes;  // hints for people
};

// NotFound: no such file or directory, or a recording without recording.json. InvalidArgument: a
// recording among others or with a name, profiles among traces, a name given twice or unfit.
absl::StatusOr<InputList> ListInputs(const std::vector<std::string>& texts);

// Text from outside as a node's name: control characters and what is not UTF-8 become "?".
std::string AsName(std::string_view text);

// FailedPrecondition when writing to `out` would change an input or somebody's recording, whose
// out/ alone is ours to replace.
absl::Status CheckOutput(const std::filesystem::path& out, const InputList& list);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_INPUT_LIST_H_
