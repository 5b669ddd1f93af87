// SPDX-License-Identifier: Apache-2.0
// What was asked of one profiler and what came of it, while the recording is made. Pure.
#ifndef SYNCLINE_AGENT_TFPROFILER_PROFILE_ENTRY_H_
#define SYNCLINE_AGENT_TFPROFILER_PROFILE_ENTRY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agent/tfprofiler/profiler_finder.h"
#include "syncline/v1/agent.pb.h"
#include "xspace/profile_list.h"

namespace syncline::agent {

// A record of profiles.json, and its process as the agent sees it.
struct ProfileEntry {
  int32_t pid = 0;
  std::string process_name;
  bool left_alone = false;  // it serves a profiler, and was not asked for its own good
  xspace::ProfileRecord record;
};

// Whose it is and where it was found; nothing was asked yet.
ProfileEntry EntryOf(const FoundProfiler& worker);

std::string FormatEntries(const std::vector<ProfileEntry>& entries);  // profiles.json

inline constexpr char kCollectivesAreUnsafe[] =
    "it runs collectives, and TensorFlow's profiler crashes workers that do";
inline constexpr char kAskAllTheSame[] =
    "--tf-profiler-collectives records them: only where the job may crash";

// What the people of the recording must know: one complaint for each process that has a piece
// which is busy or failed, or that was left alone.
std::vector<v1::Complaint> ComplainOfProfiles(const std::vector<ProfileEntry>& entries);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_TFPROFILER_PROFILE_ENTRY_H_
