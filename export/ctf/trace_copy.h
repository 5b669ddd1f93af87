// SPDX-License-Identifier: Apache-2.0
// A CTF trace again, with its timestamps on the timeline: for babeltrace2, Trace Compass and
// whatever else reads CTF. One directory per input trace, one stream per input stream; every event
// keeps its id and fields, bit for bit, and gets its corrected time.
//
// The copy is sound even where the original is not: what cannot be decoded is left out (the merge's
// report says what), packets that were never closed are closed, truncated files end whole.
//
// Clock of the copies: one for all nodes (same uuid), in ns since 1970, placed there by the
// recording's epoch, which is for display. Metadata is written anew as plain TSDL (tsdl_writer.h);
// `hostname` in its environment is the node's name, because tools tell hosts apart by it.
//
// For traces whose events have LTTng's headers and lie on byte boundaries, which is what LTTng
// writes on x86-64 and 64-bit Arm.
#ifndef SYNCLINE_EXPORT_CTF_TRACE_COPY_H_
#define SYNCLINE_EXPORT_CTF_TRACE_COPY_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "ctf/packet_walker.h"
#include "timeline/cut_sink.h"
#include "timeline/placement.h"

namespace syncline::ctf_export {

struct CopyOptions {
  std::string node;   // its name
  std::string label;  // tells the traces of one merge apart, e.g. "worker-0/ust/uid/0/64-bit"
  int64_t epoch_unix_ns = 0;                              // of timeline zero
  timeline::Interval window{{kUnknownLo}, {kUnknownHi}};  // only events in it
  unsigned threads = 1;  // at most; what is written does not depend on it
  // Of files, by name: what they go on from (ctf/stream_chain.h).
  std::map<std::string, ctf::StreamBefore> before;
};

struct CopyResult {
  uint64_t streams = 0;
  uint64_t events = 0;
  uint64_t bytes = 0;
};

// Writes `trace` anew into the directory `out`, which is made. `placement` is of the trace's clock.
// The same inputs give the same bytes. Unimplemented when the trace is laid out otherwise, NotFound
// and InvalidArgument as ctf::OpenTrace; an error while writing leaves `out` half written.
absl::StatusOr<CopyResult> CopyTrace(const std::filesystem::path& trace,
                                     const std::filesystem::path& out,
                                     timeline::Placement& placement, const CopyOptions& options);

}  // namespace syncline::ctf_export

#endif  // SYNCLINE_EXPORT_CTF_TRACE_COPY_H_
