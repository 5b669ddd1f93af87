// SPDX-License-Identifier: Apache-2.0
// The files of a recording with other names in them, kind by kind. Each is made anew from the
// fields of its schema: what the schema does not name is not written, so that nothing stays because
// nobody thought of it.
//
// Errors: what is damaged, or was not written by Syncline, is refused; nothing can be said of what
// is in it.
#ifndef SYNCLINE_COORDINATOR_PACK_REDACT_FILES_H_
#define SYNCLINE_COORDINATOR_PACK_REDACT_FILES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/pack/pseudonyms.h"
#include "coordinator/recording/recording.h"
#include "ctf/byte_source.h"
#include "ctf/layout.h"

namespace syncline::pack {

// Takes the next bytes of a file.
using Sink = std::function<absl::Status(std::span<const uint8_t>)>;

// A node keeps its name everywhere; "coordinator" is none.
std::string RedactNodeName(std::string_view node, Pseudonyms* names);
// The path of a file below a node's trace/.
std::string RedactTracePath(std::string_view path, Pseudonyms* names);

// recording.json, as values. Its sentences are left out.
recording::Recording RedactRecording(recording::Recording recording, Pseudonyms* names);
// clocks/models.json, *.samples and *.tuples.
absl::StatusOr<std::string> RedactModels(std::string_view json, Pseudonyms* names);
absl::StatusOr<std::string> RedactSamples(std::string_view bytes, Pseudonyms* names);
absl::StatusOr<std::string> RedactTuples(std::string_view bytes, Pseudonyms* names);

// A control block, and its names.
absl::StatusOr<std::string> RedactBlock(std::span<const uint8_t> bytes, Pseudonyms* names);
absl::StatusOr<std::string> RedactNames(std::span<const uint8_t> bytes, Pseudonyms* names);

// evidence/samples.txt.
absl::Status RedactEvidence(std::string_view text, Pseudonyms* names, const Sink& sink);

// A trace's metadata, as plain text. Unimplemented for metadata that says a word which is not one
// of LTTng's or Syncline's own: events of somebody else, contexts, CTF 2.
absl::StatusOr<std::string> RedactMetadata(const ctf::Metadata& metadata, Pseudonyms* names);

// One stream of a trace, packet by packet: as many bytes as it had. What lies in packets behind
// their events becomes zero: LTTng leaves parts of earlier events there.
absl::Status RedactStream(const std::shared_ptr<const ctf::TraceLayout>& layout,
                          ctf::ByteSource* source, Pseudonyms* names, const Sink& sink);

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_REDACT_FILES_H_
