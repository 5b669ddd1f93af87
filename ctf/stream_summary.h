// SPDX-License-Identifier: Apache-2.0
// A stream file summed up from its packet headers alone: no event is decoded, and only the pages
// that hold headers are read. The agent uses it to report what a recording holds and what the
// tracer lost.
//
//   SYNCLINE_ASSIGN_OR_RETURN(auto found, ctf::FindTraces(root));
//   for (const auto& trace : found.traces) {
//     SYNCLINE_ASSIGN_OR_RETURN(auto metadata, ctf::LoadMetadata(trace));
//     SYNCLINE_ASSIGN_OR_RETURN(auto files, ctf::ListStreamFiles(trace));
//     for (const auto& file : files) {
//       ... ctf::SummarizeStream(*metadata, file);
//     }
//   }
//
// Thread-safe: no state.
#ifndef SYNCLINE_CTF_STREAM_SUMMARY_H_
#define SYNCLINE_CTF_STREAM_SUMMARY_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/loss.h"
#include "ctf/metadata.h"

namespace syncline::ctf {

struct StreamSummary {
  uint64_t file_bytes = 0;
  uint64_t packets = 0;
  uint64_t content_bytes = 0;          // headers and events, without padding
  uint64_t sequence_gaps = 0;          // packets missing between the first and the last one found
  uint64_t discarded_events = 0;       // grown between the packets found; exact unless not valid
  bool discarded_events_valid = true;  // false: the tracer's counter was damaged somewhere (bit 63)
  bool closed = true;                  // the last packet is complete; an empty file is closed
  std::optional<uint64_t> stream_id;   // the stream's class; nullopt without packets
  std::optional<uint64_t> stream_instance_id;
  // Numbers of the first packet and the last, if they never wrap, and the tracer's count of
  // discarded events at that.
  std::optional<uint64_t> first_sequence;
  std::optional<uint64_t> last_sequence;
  std::optional<uint64_t> last_discarded;
  std::optional<uint64_t> cpu_id;
  int64_t begin_ns = 0;  // trace clock, of the first and last packet; 0, 0 when empty
  int64_t end_ns = 0;
  // Whether the first packet says when it begins, and the last one when it ends. Where not, its
  // events tell, which are found from `resume_byte` on.
  bool begin_known = false;
  bool end_known = false;
  uint64_t resume_byte = 0;  // of the last packet that needs none before it to be read right
  std::vector<Loss> losses;  // in the trace clock; what the headers tell
};

// The same for callers that sum up many files of one trace: BuildPacketLayout(LoadMetadata(trace)).
struct TraceLayout;
absl::StatusOr<StreamSummary> SummarizeStream(const TraceLayout& layout,
                                              const std::filesystem::path& file);

// Walks the packet headers of `file`. Damage is in `losses`; an error means that the file cannot be
// read.
absl::StatusOr<StreamSummary> SummarizeStream(const Metadata& metadata,
                                              const std::filesystem::path& file);

struct FoundTraces {
  std::vector<std::filesystem::path> traces;  // sorted
  struct Unreadable {
    std::filesystem::path directory;
    std::string why;
  };
  std::vector<Unreadable> unreadable;        // there may be traces below; sorted
  std::vector<std::filesystem::path> links;  // out of the root, not followed; sorted
};

// Directories at or below `root` that hold a `metadata`, be it readable or not. All of LTTng's
// layouts: per user, per process, kernel, rotation archives. Links to traces are followed, other
// links are not.
absl::StatusOr<FoundTraces> FindTraces(const std::filesystem::path& root);

// The stream files of one trace directory, sorted: everything but directories, `metadata` and
// hidden files. What is no regular file is refused when it is opened. An error, never a part of
// them, when the directory cannot be listed: NotFound, ResourceExhausted (descriptors), ...
absl::StatusOr<std::vector<std::filesystem::path>> ListStreamFiles(
    const std::filesystem::path& trace);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_STREAM_SUMMARY_H_
