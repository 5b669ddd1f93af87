// SPDX-License-Identifier: Apache-2.0
#include "kineto/collectives.h"

#include <algorithm>
#include <unordered_set>

#include "absl/strings/numbers.h"
#include "common/kineto_categories.h"
#include "common/text.h"
#include "kineto/launches.h"
#include "kineto/trace.h"

namespace syncline::kineto {
namespace {

constexpr char kNameField[] = "Collective name";
constexpr char kDescribes[] = "record_param_comms";

std::optional<int64_t> IntegerOf(std::string_view text) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(AbslView(text), &number) || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::string_view Trace::ArgumentOf(const Event& event, std::string_view name) const {
  for (uint32_t i = 0; i < event.of->arguments; ++i) {
    // The first field is the duration.
    if (event.of->event_class.fields[i + 1].name == name) {
      return arguments_[event.first_argument + i];
    }
  }
  return {};
}

std::vector<CollectiveKernel> Trace::collective_kernels() const {
  std::vector<CollectiveKernel> kernels;
  std::unordered_set<const Class*> name_it;
  for (const auto& [key, made] : classes_) {
    const EventClass& of = made->event_class;
    const bool named = std::any_of(of.fields.begin(), of.fields.end(), [](const FieldClass& field) {
      return field.name == kNameField;
    });
    if (named && IsKinetoKernel(of.attributes.at("category"))) name_it.insert(made.get());
  }
  if (name_it.empty()) return kernels;
  for (const Stream& stream : stream_events_) {
    if (stream.kind != Kind::kWork) continue;
    for (const uint32_t index : stream.events) {
      const Event& event = events_[index];
      if (!name_it.contains(event.of) || ArgumentOf(event, kNameField).empty()) continue;
      const auto text = [&](std::string_view key) { return std::string(ArgumentOf(event, key)); };
      const auto number = [&](std::string_view key) { return IntegerOf(ArgumentOf(event, key)); };
      CollectiveKernel& kernel = kernels.emplace_back();
      kernel.begin_ns = event.begin_ns;
      kernel.end_ns = event.begin_ns + event.duration_ns;
      kernel.name = text(kNameField);
      kernel.group = text("Process Group Name");
      kernel.description = text("Process Group Description");
      kernel.ranks = text("Process Group Ranks");
      kernel.comms_id = text("Comms Id");
      kernel.dtype = text("dtype");
      kernel.in_splits = text("In split size");
      kernel.out_splits = text("Out split size");
      kernel.sequence = number("Seq");
      kernel.group_size = number("Group size");
      kernel.in_elements = number("In msg nelems");
      kernel.out_elements = number("Out msg nelems");
      kernel.source = number("Src Rank");
      kernel.destination = number("Dst Rank");
      if (event.call != kNoEvent) {
        kernel.before_launch = event.begin_ns < events_[event.call].begin_ns;
      }
      if (event.operator_event == kNoEvent) continue;
      const Event& described = events_[event.operator_event];
      if (described.of->event_class.name == kDescribes) {
        kernel.root = IntegerOf(ArgumentOf(described, "Rank"));
      }
    }
  }
  return kernels;
}

}  // namespace syncline::kineto
