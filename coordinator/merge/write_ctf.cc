// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/write_ctf.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "export/ctf/trace_copy.h"
#include "export/output_file.h"

namespace syncline::merge {

absl::StatusOr<std::vector<std::string>> WriteCtf(const OpenedInputs& inputs,
                                                  timeline::Interval shown, unsigned threads,
                                                  const std::filesystem::path& out) {
  std::vector<std::string> complaints;
  for (const OpenedInputs::TraceAt& trace : inputs.traces) {
    const auto node =
        std::find_if(inputs.nodes.begin(), inputs.nodes.end(),
                     [&trace](const timeline::NodeInput& one) { return one.name == trace.node; });
    const std::filesystem::path root = inputs.recording.has_value()
                                           ? recording::Layout(inputs.run).Trace(node->name)
                                           : std::filesystem::path(node->root);
    const std::filesystem::path below =
        FileNameOf(node->name) / trace.path.lexically_relative(root);
    const ctf_export::CopyOptions options{node->name, below.string(), inputs.epoch_unix_ns,
                                          shown,      threads,        trace.before};
    const auto copied = ctf_export::CopyTrace(trace.path, out / below, *node->placement, options);
    if (absl::IsUnimplemented(copied.status()) || absl::IsInvalidArgument(copied.status())) {
      complaints.push_back(absl::StrCat(node->name, ": ", copied.status().message()));
    } else if (!copied.ok()) {
      return copied.status();
    }
  }
  return complaints;
}

}  // namespace syncline::merge
