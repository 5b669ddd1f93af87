// SPDX-License-Identifier: Apache-2.0
// The seam to what adds to a recording beside the tracer: profilers that training processes bring
// along, and samples of what the kernel says of the node. They only add to it: whatever happens to
// one of them, the recording goes on.
#ifndef SYNCLINE_AGENT_EVIDENCE_EVIDENCE_SOURCE_H_
#define SYNCLINE_AGENT_EVIDENCE_EVIDENCE_SOURCE_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

struct EvidenceWindow {
  std::string recording_id;
  std::filesystem::path directory;  // of the recording
  int64_t start_raw_ns = 0;         // 0, or in the past: at once
  int64_t length_ns = 0;            // 0: until End
  int host_tracer_level = 0;        // 0: the default
  int device_tracer_level = 0;      // 0: devices are left alone
  bool collectives_too = false;     // also processes that the profiler may crash
};

// What Collect says of a source that adds less than it should, each with the same advice.
inline std::vector<v1::Complaint> Warnings(const std::vector<std::string>& said, const char* fix) {
  std::vector<v1::Complaint> warnings;
  for (const std::string& what : said) {
    v1::Complaint& warning = warnings.emplace_back();
    warning.set_severity(v1::Complaint::WARNING);
    warning.set_what(what);
    warning.set_fix(fix);
  }
  return warnings;
}

class EvidenceSource {
 public:
  virtual ~EvidenceSource() = default;

  // Whether the recording is to have it; else nothing below is called.
  virtual bool IsWanted(const v1::PrepareRequest&) const { return true; }
  // What is asked for, before Find.
  virtual void Configure(const v1::PrepareRequest&) {}
  // Looks for whom it can ask, except processes of users who are `left_out`; bounded. Nothing is
  // recorded of them yet.
  virtual void Find(const std::vector<uint32_t>& left_out) = 0;
  // Begins with what was found, from the start of the window on. Returns at once; a second call
  // does nothing.
  virtual void Begin(const EvidenceWindow& window) = 0;
  // Instead of Begin, when an agent that was killed had begun it: Collect is to take what there is.
  virtual void Adopt(const EvidenceWindow&) {}
  // The recording is over: asks for what there is, and lets go. Returns at once.
  virtual void End() = 0;
  // After End: waits, bounded, until everything is on the disk. What is missing, and why.
  virtual std::vector<v1::Complaint> Collect() = 0;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_EVIDENCE_SOURCE_H_
