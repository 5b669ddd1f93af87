// What was asked of the profilers in a recording and what came of it: xspace/profiles.json
// (docs/recording-format.md). Pure.
#ifndef SYNCLINE_AGENT_TFPROFILER_PROFILE_LIST_H_
#define SYNCLINE_AGENT_TFPROFILER_PROFILE_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agent/tfprofiler/profiler_finder.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

enum class ProfileState {
  kComplete,  // all that was asked for
  kCut,       // ended early, because the recording was; what there was until then
  kEmpty,     // nothing ran
  kBusy,      // somebody else uses the profiler
  kMissing,   // the process has none
  kFailed,    // nothing came; `failure` says why
};

// One piece of one process.
struct ProfileEntry {
  FoundProfiler worker;
  std::string file;  // beside profiles.json; empty: nothing came
  std::string session;
  int piece = 0;
  int host_tracer_level = 0;
  int64_t asked_start_realtime_ns = 0;
  int64_t asked_duration_ns = 0;
  int64_t begin_realtime_ns = 0;  // by the agent's clock, around the call
  int64_t end_realtime_ns = 0;
  ProfileState state = ProfileState::kFailed;
  std::string failure;
  uint64_t bytes = 0;
};

const char* ProfileStateName(ProfileState state);

// The file's text; entries in the order of processes and pieces, whatever order they came in.
std::string FormatProfiles(std::vector<ProfileEntry> entries);

// What the people of the recording must know: one complaint for each process that has a piece
// which is busy or failed.
std::vector<v1::Complaint> ComplainOfProfiles(const std::vector<ProfileEntry>& entries);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_TFPROFILER_PROFILE_LIST_H_
