// SPDX-License-Identifier: Apache-2.0
// What is known of a job in which no step ended, for people: whether it moved, who stands behind,
// and the stacks of those who do. Pure.
#ifndef SYNCLINE_COORDINATOR_CLI_STANDSTILL_TEXT_H_
#define SYNCLINE_COORDINATOR_CLI_STANDSTILL_TEXT_H_

#include <cstddef>
#include <string>

#include "coordinator/stacks/standstill.h"

namespace syncline::cli {

struct StandstillOptions {
  size_t width = 80;
  bool stacks = true;  // false: the sentences alone
};

std::string StandstillText(const stacks::KeptLook& look, const StandstillOptions& options);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_STANDSTILL_TEXT_H_
