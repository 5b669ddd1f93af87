// SPDX-License-Identifier: Apache-2.0
#include "common/loss.h"

namespace syncline {

const char* LossReasonName(LossReason reason) {
  switch (reason) {
    case LossReason::kDiscardedEvents:
      return "discarded events";
    case LossReason::kLostPackets:
      return "lost packets";
    case LossReason::kCorruptPacket:
      return "corrupt packet";
    case LossReason::kTruncated:
      return "truncated";
    case LossReason::kUnreadable:
      return "unreadable";
    case LossReason::kSilent:
      return "silent loss";
    case LossReason::kNotCovered:
      return "not covered";
    case LossReason::kNodeMissing:
      return "node missing";
    case LossReason::kUnknownEvent:
      return "unknown event";
    case LossReason::kLostInProcess:
      return "lost in process";
  }
  return "unknown";
}

}  // namespace syncline
