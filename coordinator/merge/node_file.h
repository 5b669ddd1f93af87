// SPDX-License-Identifier: Apache-2.0
// A file of samples that a node of the recording has in evidence/.
#ifndef SYNCLINE_COORDINATOR_MERGE_NODE_FILE_H_
#define SYNCLINE_COORDINATOR_MERGE_NODE_FILE_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/recording/recording.h"

namespace syncline::merge {

struct NodeFile {
  const char* name;     // "code.txt"
  const char* lost;     // with it: "what the node's threads ran"
  const char* samples;  // what its lines are: "code samples"
};

// What `parse` makes of it. nullopt: recorded without, or unreadable, which is then a complaint;
// damaged lines are a note.
template <class Parse>
auto ReadNodeFile(const std::string& node, const NodeFile& file, Parse parse, OpenedInputs* inputs)
    -> std::optional<typename decltype(parse(std::string()))::value_type> {
  const recording::Layout layout(inputs->run);
  const auto text = ReadFile(layout.Evidence(node) / file.name);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  using Parsed = decltype(parse(std::string()));
  Parsed parsed = text.ok() ? parse(*text) : Parsed(text.status());
  if (!parsed.ok()) {
    inputs->incomplete = true;
    inputs->complaints.push_back(absl::StrCat(node, ": evidence/", file.name,
                                              " is skipped, and with it ", file.lost, ": ",
                                              parsed.status().message()));
    return std::nullopt;
  }
  if (parsed->damaged_lines > 0) {
    inputs->notes.push_back(absl::StrCat(node, ": ", parsed->damaged_lines,
                                         " damaged lines of its ", file.samples, " are skipped"));
  }
  return *std::move(parsed);
}

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_NODE_FILE_H_
