// SPDX-License-Identifier: Apache-2.0
// Who watches a recording being made: the terminal, or a test.
#ifndef SYNCLINE_COORDINATOR_RECORD_OBSERVER_H_
#define SYNCLINE_COORDINATOR_RECORD_OBSERVER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "coordinator/recording/recording.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::record {

struct NodeCounters {
  std::string node;
  bool reachable = false;
  v1::RecordingState state = v1::RECORDING_STATE_UNSPECIFIED;
  uint64_t events = 0;
  uint64_t lost = 0;
  uint64_t bytes = 0;
  uint32_t processes = 0;
};

// Called from several threads, one call at a time.
class Observer {
 public:
  virtual ~Observer() = default;
  // A phase begins: "preparing", "recording", ...
  virtual void OnPhase(std::string_view what) = 0;
  // What a node is and what can be traced there.
  virtual void OnNode(const std::string& node, const v1::DescribeResponse& description) = 0;
  // Something a person should know, and its remedy. Severity: note, warning, error.
  virtual void OnNote(std::string_view severity, const std::string& node, std::string_view what,
                      std::string_view fix) = 0;
  virtual void OnCounters(int64_t elapsed_ns, std::span<const NodeCounters> counters) = 0;
  virtual void OnFetched(const std::string& node, uint64_t done_bytes, uint64_t total_bytes) = 0;
};

}  // namespace syncline::record

#endif  // SYNCLINE_COORDINATOR_RECORD_OBSERVER_H_
