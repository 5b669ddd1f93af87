// SPDX-License-Identifier: Apache-2.0
// The analyses of Intel VTune that a recording can have beside it, and the knobs that they get.
// The knobs are those of Intel's recipe for TensorFlow (docs/vtune.md names it); a knob that is
// asked for replaces the recipe's one of the same name. Thread-safe: no state.
#ifndef SYNCLINE_VTUNE_ANALYSES_H_
#define SYNCLINE_VTUNE_ANALYSES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace syncline::vtune {

// What is asked of VTune for one recording.
struct Request {
  std::string analysis;            // VTune's name of it: "hotspots"
  std::vector<std::string> knobs;  // "NAME=VALUE"
  uint32_t data_limit_mb = 0;      // of one result; 0: VTune's own limit
  uint32_t ring_buffer_s = 0;      // keep only the last seconds; 0: everything
};

// "hotspots", "threading", ...
std::vector<std::string> AnalysisNames();

// InvalidArgument: the analysis is not one of these, or a knob is not NAME=VALUE in letters, digits
// and ".,:_-". Which knobs an analysis has, the installed VTune knows.
absl::Status CheckRequest(const Request& request);

// All knobs of the request: the recipe's first, then the others.
std::vector<std::string> KnobsOf(const Request& request);

}  // namespace syncline::vtune

#endif  // SYNCLINE_VTUNE_ANALYSES_H_
