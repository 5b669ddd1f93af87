// What the events of PyTorch's hook (syncline_torch) mean on the timeline.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text.h"
#include "timeline/node_builder.h"

namespace syncline::timeline {
namespace {

constexpr uint8_t kTransferGroup = 5;  // AsyncSpans::Key::group

}  // namespace

void NodeBuilder::OnTransfer(EventKind kind, const Here& here) {
  AsyncSpans& async = *ProcessAt(here.process).async;
  const AsyncSpans::Key key{kTransferGroup, 0, event_.Id()};
  AsyncSpans::Label label;
  label.group_name = "sends and receives";
  label.category = emitter_->Text("torch.distributed");
  if (kind == EventKind::kTorchTransferEnd) {
    // What it ends with has no name: without its begin it cannot be told.
    if (async.IsOpen(key)) async.End(key, label, here.moment);
    return;
  }
  const auto peer = static_cast<int32_t>(event_.U64(Field::kPeer));
  const std::string_view name = tables_.processes()[here.process].Name(event_.U32(Field::kName));
  label.name = emitter_->Text(
      peer < 0 ? absl::StrCat(AbslView(name), " from any")
               : absl::StrCat(AbslView(name), name == "send" ? " to " : " from ", peer));
  Span* span = async.Begin(key, label, here.moment);
  const auto add = [&](std::string_view text, Argument argument) {
    argument.key = emitter_->Text(text);
    span->arguments.push_back(argument);
  };
  Argument argument;
  argument.kind = Argument::Kind::kText;
  argument.text = NameText(here.process, event_.U32(Field::kGroup));
  add("group", argument);
  argument.kind = Argument::Kind::kInt;
  argument.i = static_cast<int32_t>(event_.U64(Field::kTag));
  add("tag", argument);
  argument.i = static_cast<int64_t>(event_.U64(Field::kBytes));
  add("bytes", argument);
}

}  // namespace syncline::timeline
