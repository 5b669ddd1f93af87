// SPDX-License-Identifier: Apache-2.0
// How much detail a recording has, as the recorded processes are told it.
#ifndef SYNCLINE_AGENT_RECORDING_LEFT_OUT_H_
#define SYNCLINE_AGENT_RECORDING_LEFT_OUT_H_

#include <cstdint>

#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

// What processes do not record.
struct LeftOut {
  uint32_t operators_least_us = 0;  // operators inside of others that mostly take less
  bool messages = false;

  bool operator==(const LeftOut&) const = default;
};

inline LeftOut LeftOutOf(v1::Detail detail) {
  switch (detail) {
    case v1::DETAIL_NORMAL:
      return {.operators_least_us = 100};
    case v1::DETAIL_LOW:
      return {.operators_least_us = 500, .messages = true};
    default:
      return {};
  }
}

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_LEFT_OUT_H_
