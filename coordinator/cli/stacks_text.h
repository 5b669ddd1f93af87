// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline stacks` for people: who stands behind, then every rank with its groups
// and the stacks of its threads. Pure.
#ifndef SYNCLINE_COORDINATOR_CLI_STACKS_TEXT_H_
#define SYNCLINE_COORDINATOR_CLI_STACKS_TEXT_H_

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "coordinator/stacks/verdict.h"

namespace syncline::cli {

struct TextOptions {
  size_t width = 80;
  bool all = false;  // also the stacks of a rank's further processes: loader's workers and the like
  const std::set<const v1::ProcessStacks*>* only = nullptr;  // not given: all processes
  bool main_threads_only = false;
};

// "BEHIND     ...", wrapped; all lines of this kind have one column of text.
std::string LabelledText(std::string label, const std::string& text, size_t width);
// Who stands behind, a paragraph for each group.
std::string VerdictsText(const std::vector<stacks::GroupVerdict>& verdicts, size_t width);
// The processes with their groups and stacks.
std::string ProcessesText(const std::vector<stacks::NodeLook>& looks, const TextOptions& options);

// All of it.
std::string StacksText(const std::vector<stacks::NodeLook>& looks,
                       const std::vector<stacks::GroupVerdict>& verdicts,
                       const TextOptions& options);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_STACKS_TEXT_H_
