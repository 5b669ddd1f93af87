// SPDX-License-Identifier: Apache-2.0
// What was asked of TensorFlow's profilers in a recording and what came of it: the text of
// nodes/<node>/xspace/profiles.json (docs/recording-format.md). Written by the agent, read by
// merge. Pure.
#ifndef SYNCLINE_XSPACE_PROFILE_LIST_H_
#define SYNCLINE_XSPACE_PROFILE_LIST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace syncline::xspace {

enum class ProfileState {
  kComplete,  // all that was asked for
  kCut,       // ended early, because the recording was; what there was until then
  kEmpty,     // nothing ran
  kBusy,      // somebody else uses the profiler
  kMissing,   // the process has none
  kFailed,    // nothing came; `failure` says why
};

std::string_view ProfileStateName(ProfileState state);

// One piece of one process. Times are the host's CLOCK_REALTIME; 0, "": not known.
struct ProfileRecord {
  std::string file;  // beside profiles.json; empty: nothing came
  int32_t own_pid = 0;
  uint64_t pid_namespace_inode = 0;
  uint64_t start_ticks = 0;
  uint32_t port = 0;
  std::string address;
  std::string framework;  // "JAX"; empty: TensorFlow, or PyTorch in a list of Kineto's
  std::string task;
  std::string incarnation;
  std::string session;
  int32_t piece = 0;
  int32_t host_tracer_level = 0;
  int64_t asked_start_realtime_ns = 0;
  int64_t asked_duration_ns = 0;
  int64_t begin_realtime_ns = 0;  // by the agent's clock, around the call
  int64_t end_realtime_ns = 0;
  int64_t begin_monotonic_ns = 0;  // CLOCK_MONOTONIC, which nobody sets back; Kineto's only
  ProfileState state = ProfileState::kFailed;
  std::string failure;
  uint64_t bytes = 0;
};

// Whether it ran, and what it held did not come: a loss. (One that nobody could begin is none.)
bool WasLost(const ProfileRecord& record);

// In the order of processes and pieces, whatever order the records came in.
std::string FormatProfileList(std::vector<ProfileRecord> records);

// In the same order. InvalidArgument for text that is no list of a format_version this program
// reads. Keys that are missing or of another type keep what they stand at, and a state that is
// unknown here is a failure: a recording of a later version is read as far as it is understood.
// Times are cut to where the sum of two fits.
absl::StatusOr<std::vector<ProfileRecord>> ParseProfileList(std::string_view json);

}  // namespace syncline::xspace

#endif  // SYNCLINE_XSPACE_PROFILE_LIST_H_
