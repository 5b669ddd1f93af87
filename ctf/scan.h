// SPDX-License-Identifier: Apache-2.0
// Every event of some streams, in no particular order: several packets at a time (lanes.h), by
// several threads if wanted.
//
// The work is cut into parts, stretches of one stream each, so that a trace of one large stream
// keeps all lanes of all threads busy as well. A lane that is done with its part takes the next
// one.
#ifndef SYNCLINE_CTF_SCAN_H_
#define SYNCLINE_CTF_SCAN_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/event_cursor.h"
#include "ctf/layout.h"
#include "ctf/packet_walker.h"

namespace syncline::ctf {

struct ScanStream {
  const StreamInfo* info = nullptr;
  const std::filesystem::path* file = nullptr;
  uint64_t bytes = 0;
  StreamBefore before;
  bool is_indexed = false;
};

// See TraceReader::ScanShared.
absl::StatusOr<std::vector<Loss>> ScanStreams(std::shared_ptr<const TraceLayout> layout,
                                              std::span<const ScanStream> streams,
                                              std::span<const TraceReader::Visit> visits);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_SCAN_H_
