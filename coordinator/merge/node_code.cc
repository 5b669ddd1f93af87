// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/node_code.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "coordinator/recording/recording.h"

namespace syncline::merge {
namespace {

// nullopt: recorded without, or unreadable, which is then a complaint.
std::optional<evidence::CodeSamples> ReadNode(const std::string& node, OpenedInputs* inputs) {
  const recording::Layout layout(inputs->run);
  const auto text = ReadFile(layout.Evidence(node) / evidence::kCodeFileName);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  auto parsed = text.ok() ? evidence::ParseCodeSamples(*text)
                          : absl::StatusOr<evidence::CodeSamples>(text.status());
  if (!parsed.ok()) {
    inputs->incomplete = true;
    inputs->complaints.push_back(absl::StrCat(node, ": evidence/", evidence::kCodeFileName,
                                              " is skipped, and with it what the node's threads "
                                              "ran: ",
                                              parsed.status().message()));
    return std::nullopt;
  }
  if (parsed->damaged_lines > 0) {
    inputs->notes.push_back(absl::StrCat(node, ": ", parsed->damaged_lines,
                                         " damaged lines of its code samples are skipped"));
  }
  return *std::move(parsed);
}

}  // namespace

std::vector<analysis::HotInput> ReadCodeSamples(timeline::Interval counted, OpenedInputs* inputs) {
  std::vector<analysis::HotInput> all;
  if (inputs->run.empty()) return all;
  for (size_t i = 0; i < inputs->nodes.size(); ++i) {
    auto code = ReadNode(inputs->nodes[i].name, inputs);
    const timeline::Placement* placement = inputs->facts[i].placement;
    if (!code.has_value() || placement == nullptr) continue;
    analysis::HotInput& one = all.emplace_back();
    one.node = static_cast<uint32_t>(i);
    one.code = *std::move(code);
    one.begin_ns = placement->ClockNs(counted.begin);
    one.end_ns = placement->ClockNs(counted.end);
  }
  return all;
}

}  // namespace syncline::merge
