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
  xspace::ProfileRecord record;
};

// Whose it is and where it was found; nothing was asked yet.
ProfileEntry EntryOf(const FoundProfiler& worker);

std::string FormatEntries(const std::vector<ProfileEntry>& entries);  // profiles.json

// What the people of the recording must know: one complaint for each process that has a piece
// which is busy or failed.
std::vector<v1::Complaint> ComplainOfProfiles(const std::vector<ProfileEntry>& entries);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_TFPROFILER_PROFILE_ENTRY_H_
