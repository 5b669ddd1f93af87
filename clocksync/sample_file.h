// SPDX-License-Identifier: Apache-2.0
// The bytes of clocks/<edge>.samples and clocks/<node>.tuples: versioned, little endian,
// appendable. Encoding and decoding only; who has the file reads and writes it. A truncated tail is
// tolerated (the writer may have been killed) and counted; damaged records are passed over and
// counted, and what is before and behind them is kept. A header that cannot be read is
// InvalidArgument.
#ifndef SYNCLINE_CLOCKSYNC_SAMPLE_FILE_H_
#define SYNCLINE_CLOCKSYNC_SAMPLE_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "clocksync/samples.h"

namespace syncline::clocksync {

// Header of a samples file: magic, version, names of the edge.
std::string EncodeSamplesHeader(std::string_view local, std::string_view remote);
// One sample; at most 40 bytes.
void AppendSample(const ProbeSample& sample, std::string* bytes);
absl::StatusOr<Edge> DecodeSamples(std::string_view bytes);
// How many samples a file of this size has, without reading it; 0 for one that is too short.
uint64_t SamplesInFile(std::string_view local, std::string_view remote, uint64_t file_bytes);

std::string EncodeTuplesHeader(std::string_view node);
void AppendTuple(const ClockTuple& tuple, std::string* bytes);
absl::StatusOr<HostClocks> DecodeTuples(std::string_view bytes);

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_SAMPLE_FILE_H_
