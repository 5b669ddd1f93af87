// SPDX-License-Identifier: Apache-2.0
// Loss is data: what was not recorded, as an interval, with its reason.
#ifndef SYNCLINE_COMMON_LOSS_H_
#define SYNCLINE_COMMON_LOSS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace syncline {

// Part of the recording format (recording.json, out/): never renumber or rename.
enum class LossReason : uint8_t {
  kDiscardedEvents = 0,  // the tracer's buffers were full; counted per stream and packet interval
  kLostPackets = 1,      // a gap in a stream's packet sequence numbers
  kCorruptPacket = 2,    // bytes that do not decode
  kTruncated = 3,        // the file ends inside a packet
  kUnreadable = 4,       // a whole stream, trace or node could not be read
  kSilent = 5,           // the process counted more events than were found
  kNotCovered = 6,     // the process was not recording then (started late, stopped, paused, killed)
  kNodeMissing = 7,    // the node took no part
  kUnknownEvent = 8,   // an event whose class the metadata does not describe
  kLostInProcess = 9,  // calls that the process counted and could not hand to the tracer
};

// What is lost in [begin_ns, end_ns] of the clock that the owner of this record declares.
struct Loss {
  LossReason reason = LossReason::kDiscardedEvents;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::optional<uint64_t> count;  // events or packets; nullopt: unknown
  std::string source;             // stream, file, process or node, for people
  std::string detail;             // what was found and, where there is one, the remedy
};

// "discarded events", "lost packets", ... for people and for JSON.
const char* LossReasonName(LossReason reason);

}  // namespace syncline

#endif  // SYNCLINE_COMMON_LOSS_H_
