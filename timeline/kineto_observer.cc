// SPDX-License-Identifier: Apache-2.0
#include "timeline/kineto_observer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/kineto_categories.h"
#include "common/text.h"

namespace syncline::timeline {
namespace {

const FieldValue* Find(std::span<const FieldValue> values, std::string_view field) {
  for (const FieldValue& value : values) {
    if (value.field->name == field) return &value;
  }
  return nullptr;
}

// Of a device, in a table of spans.
constexpr std::string_view kTableCollective = "collective";

std::string_view TextOf(std::span<const FieldValue> values, std::string_view field) {
  const FieldValue* value = Find(values, field);
  return value == nullptr ? std::string_view() : value->text;
}

// Columns of tables may have any name.
const FieldValue* Launched(std::span<const FieldValue> values) {
  const FieldValue* found = Find(values, "_launched_ns");
  return found != nullptr && found->type == FieldType::kSigned ? found : nullptr;
}

// An instruction of XLA's, "all-reduce-start.1", whatever the kernel is called that does it.
bool IsCollective(std::string_view instruction) {
  constexpr std::string_view kKinds[] = {
      "all-reduce",         "all-gather",           "reduce-scatter",   "all-to-all",
      "collective-permute", "collective-broadcast", "ragged-all-to-all"};
  return std::any_of(std::begin(kKinds), std::end(kKinds),
                     [&](std::string_view kind) { return instruction.starts_with(kind); });
}

// As a text in Kineto's profiles, as a number in XSpaces. Empty: none.
std::string CorrelationOf(std::span<const FieldValue> values) {
  if (const FieldValue* text = Find(values, "correlation")) return std::string(text->text);
  const FieldValue* number = Find(values, "correlation_id");
  return number == nullptr || number->u == 0 ? "" : absl::StrCat(number->u);
}

// Of a call. A later profile of the process may count its ids from the same number on.
std::string KeyOf(std::string_view correlation, TimelineTime begin) {
  return absl::StrCat(AbslView(correlation), "@", begin.ns);
}

}  // namespace

void KinetoObserver::OnEvent(const Event& event) {
  DeviceWorkBuilder::Event seen{.category = event.category,
                                .name = event.name,
                                .device = event.device,
                                .collective = "",
                                .operator_name = "",
                                .step = std::nullopt,
                                .begin = event.begin,
                                .end = event.end,
                                .launched = std::nullopt};
  if (!event.device.empty()) Describe(event.values, &seen);
  work_.OnEvent(seen);
}

// What the event says of a device's work.
void KinetoObserver::Describe(std::span<const FieldValue> values, DeviceWorkBuilder::Event* seen) {
  seen->collective = TextOf(values, "Collective name");
  seen->operator_name = TextOf(values, "operator");
  seen->grid = TextOf(values, "grid");
  seen->block = TextOf(values, "block");
  const std::string_view instruction = TextOf(values, "hlo_op");
  seen->is_collective = IsCollective(instruction.empty() ? seen->name : instruction);
  if (seen->category == kTableCollective) {
    seen->category = "kernel";
    seen->is_collective = true;
  }
  if (const FieldValue* launched = Launched(values)) seen->launched = placement_->At(launched->s);
  const FieldValue* step = Find(values, "step");  // of a table of spans
  if (step != nullptr && step->type == FieldType::kSigned) seen->step = step->s;
}

void KinetoObserver::OnStep(const Event& event, int64_t number) {
  work_.OnMark({.name = event.name,
                .number = number,
                .device = event.device,
                .begin = event.begin,
                .end = event.end});
}

uint64_t KinetoObserver::OnShown(const Event& event, TrackId track) {
  if (event.device.empty() && !IsKinetoCall(event.category)) return 0;
  const std::string correlation = CorrelationOf(event.values);
  if (correlation.empty()) return 0;
  if (event.device.empty()) {
    const auto [call, is_new] = calls_.try_emplace(KeyOf(correlation, event.begin));
    if (is_new) call->second = {track, emitter_->NewFlowId()};
    return is_new ? call->second.arrow : 0;
  }
  const FieldValue* launched = Launched(event.values);
  if (launched == nullptr) return 0;
  const std::optional<TimelineTime> sent = placement_->At(launched->s);
  if (!sent.has_value()) return 0;
  const auto call = calls_.find(KeyOf(correlation, *sent));
  if (call == calls_.end()) return 0;  // it is not shown
  Flow flow;
  flow.id = emitter_->NewFlowId();
  flow.from = call->second.track;
  flow.to = track;
  flow.sent = *sent;
  flow.received = event.begin;
  flow.name = emitter_->Text("launch");
  flow.between_begins = true;
  emitter_->Push(flow);
  return call->second.arrow;
}

}  // namespace syncline::timeline
