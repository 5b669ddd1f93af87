// SPDX-License-Identifier: Apache-2.0
// Which files of a recording's directory belong to the recording: those that
// docs/recording-format.md names, of the nodes that recording.json names. A pack takes these and
// nothing else, so that what somebody else put there (a key, notes, a core dump) is not sent by
// accident.
#ifndef SYNCLINE_COORDINATOR_PACK_MEMBERS_H_
#define SYNCLINE_COORDINATOR_PACK_MEMBERS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/recording/recording.h"

namespace syncline::pack {

enum class MemberKind : uint8_t {
  kRecordingJson,
  kStacks,   // stacks.json
  kModels,   // clocks/models.json
  kProbes,   // clocks/probes.json
  kSamples,  // clocks/*.samples
  kTuples,   // clocks/*.tuples
  kNodeJson,
  kAgentLog,
  kMetadata,  // of a trace
  kStream,
  kIndex,
  kBlock,  // a control block...
  kNames,  // ...and its table of names
  kEvidence,
  kCode,         // evidence/code.txt
  kDevices,      // evidence/devices.txt
  kConnections,  // evidence/connections.txt
  kScheduling,   // evidence/scheduling.txt
  kProfileList,  // profiles.json
  kXSpace,
  kKineto,
  kVtune,  // below vtune/
};

struct Member {
  MemberKind kind = MemberKind::kStream;
  std::string path;  // relative to the recording's directory, '/' between its parts
  uint64_t bytes = 0;
};

struct LeftOut {
  std::string path;
  std::string reason;
};

struct Members {
  std::vector<Member> members;  // by path
  std::vector<LeftOut> left_out;
};

// What is below `run`; out/ is passed over without a word: it can be made again. Links are never
// followed.
absl::StatusOr<Members> FindMembers(const std::filesystem::path& run,
                                    const recording::Recording& recording);

// Whether `bytes` hold the first line of a key or a certificate in PEM.
bool HoldsPem(std::string_view bytes);

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_MEMBERS_H_
