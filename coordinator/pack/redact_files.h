// SPDX-License-Identifier: Apache-2.0
// The files of a recording with other names in them, kind by kind. Each function knows every field
// of its kind that can hold a name; a text in a field that it does not know is replaced, too.
//
// Errors: what cannot be read cannot be redacted, and is refused.
#ifndef SYNCLINE_COORDINATOR_PACK_REDACT_FILES_H_
#define SYNCLINE_COORDINATOR_PACK_REDACT_FILES_H_

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/pack/pseudonyms.h"
#include "ctf/layout.h"

namespace syncline::pack {

// What stands where sentences stood that were written for people: they may hold any name.
inline constexpr std::string_view kRemovedText = "removed by syncline pack --redact";

// Any JSON of a recording. Its keys are added to `words`, which no name is looked for in.
absl::StatusOr<std::string> RedactJson(std::string_view json, Pseudonyms* names,
                                       std::set<std::string, std::less<>>* words);

// clocks/*.samples and *.tuples.
absl::Status RedactSamples(std::span<uint8_t> bytes, Pseudonyms* names);
absl::Status RedactTuples(std::span<uint8_t> bytes, Pseudonyms* names);

// Control blocks and their names.
absl::Status RedactBlock(std::span<uint8_t> bytes, Pseudonyms* names);
absl::Status RedactNames(std::span<uint8_t> bytes, Pseudonyms* names);

// evidence/samples.txt.
absl::StatusOr<std::string> RedactEvidence(std::string_view text, Pseudonyms* names);

// xspace/*.pb: a profile of TensorFlow's. Names of stats are added to `words`.
absl::Status RedactXSpace(std::span<uint8_t> bytes, Pseudonyms* names,
                          std::set<std::string, std::less<>>* words);
// The types of operators in it, for Pseudonyms::KeepOperatorTypes().
void AddOperatorTypes(std::span<const uint8_t> xspace, std::set<std::string, std::less<>>* types);

// kineto/*.json: a profile of PyTorch's. Its keys are added to `words`.
absl::Status RedactKineto(std::span<uint8_t> bytes, Pseudonyms* names,
                          std::set<std::string, std::less<>>* words);

// The path of a file below a node's trace/: a trace per process is called after its program.
std::string RedactTracePath(std::string_view path, Pseudonyms* names);
// A trace's metadata, as plain text. What it calls events and fields is added to `words`.
absl::StatusOr<std::string> RedactMetadata(std::string_view file, Pseudonyms* names,
                                           std::set<std::string, std::less<>>* words);
// One stream of a trace, where it stands. What lies in packets behind their events becomes zero:
// LTTng leaves parts of earlier events there.
absl::Status RedactStream(const std::shared_ptr<const ctf::TraceLayout>& layout,
                          std::span<uint8_t> bytes, Pseudonyms* names);

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_REDACT_FILES_H_
