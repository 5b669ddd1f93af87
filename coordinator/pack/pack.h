// SPDX-License-Identifier: Apache-2.0
// `syncline pack` without its command line: one file of a recording, to send. Who gets it unpacks
// it with `tar x`, and every command works on what comes out.
#ifndef SYNCLINE_COORDINATOR_PACK_PACK_H_
#define SYNCLINE_COORDINATOR_PACK_PACK_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/pack/members.h"
#include "coordinator/pack/pseudonyms.h"
#include "coordinator/pack/redact_run.h"

namespace syncline::pack {

struct Progress {
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;
};

struct PackOptions {
  std::filesystem::path run;
  // Empty: NAME.tar.gz here, by the recording's directory, or redacted-ID.tar.gz.
  std::filesystem::path output;
  std::function<void(const Progress&)> progress;
  bool redact = false;  // other names (docs/decisions/0017); the directory in it has no name
  std::stop_token interrupt;
  Pseudonyms::Random random = Pseudonyms::SystemRandom();  // another one in tests
};

struct PackResult {
  std::filesystem::path file;
  uint64_t bytes = 0;           // of the file
  uint64_t unpacked_bytes = 0;  // of what is in it
  size_t files = 0;
  std::vector<LeftOut> left_out;
  std::vector<std::string> still_on_nodes;  // nodes whose data was not fetched
  // Redacted:
  std::vector<KindLeftOut> kinds_left_out;  // as is meant
  size_t replaced = 0;                      // different texts that others stand for
  size_t sought = 0;                        // of these, looked for in the finished file: none found
};

// Cancelled after an interrupt; nothing is left behind then, nor after any other error. Redacted:
// Unimplemented, DataLoss or NotFound where a trace cannot be, Internal where a name was found in
// the finished file.
absl::StatusOr<PackResult> Pack(const PackOptions& options);

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_PACK_H_
