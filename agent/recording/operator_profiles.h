// The seam to profilers that training processes bring along: asked for the operators that ran
// during the recording. They only add to it: whatever happens to one of them, the recording goes
// on.
#ifndef SYNCLINE_AGENT_RECORDING_OPERATOR_PROFILES_H_
#define SYNCLINE_AGENT_RECORDING_OPERATOR_PROFILES_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

struct ProfileWindow {
  std::string recording_id;
  std::filesystem::path directory;  // of the recording
  int64_t start_raw_ns = 0;         // 0, or in the past: at once
  int64_t length_ns = 0;            // 0: until End
  int host_tracer_level = 0;        // 0: the default
  bool collectives_too = false;     // also processes that the profiler may crash
};

class OperatorProfiles {
 public:
  virtual ~OperatorProfiles() = default;

  // Looks for profilers; bounded. Nothing is asked of them yet.
  virtual void Find() = 0;
  // Profiles what was found, from the start of the window on. Returns at once; a second call does
  // nothing.
  virtual void Begin(const ProfileWindow& window) = 0;
  // Instead of Begin, when an agent that was killed had begun it: Collect is to take what there is.
  virtual void Adopt(const ProfileWindow&) {}
  // The recording is over: asks for what there is, and gives the profilers back. Returns at once.
  virtual void End() = 0;
  // After End: waits, bounded, until everything is on the disk. What is missing, and why.
  virtual std::vector<v1::Complaint> Collect() = 0;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_OPERATOR_PROFILES_H_
