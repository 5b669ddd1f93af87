#include "coordinator/merge/write_ctf.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "export/ctf/trace_copy.h"

namespace syncline::merge {
namespace {

// A directory's name: a node may be called anything, by the command line or by its trace.
std::string DirectoryOf(std::string node) {
  std::replace(node.begin(), node.end(), '/', '_');
  return node.starts_with('.') ? absl::StrCat("_", node) : node;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> WriteCtf(const OpenedInputs& inputs,
                                                  timeline::Interval shown,
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
        DirectoryOf(node->name) / trace.path.lexically_relative(root);
    const ctf_export::CopyOptions options{node->name, below.string(), inputs.epoch_unix_ns, shown};
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
