// SPDX-License-Identifier: Apache-2.0
#include "timeline/kineto_observer.h"

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

std::string_view TextOf(std::span<const FieldValue> values, std::string_view field) {
  const FieldValue* value = Find(values, field);
  return value == nullptr ? std::string_view() : value->text;
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
                                .collective = TextOf(event.values, "Collective name"),
                                .operator_name = TextOf(event.values, "operator"),
                                .begin = event.begin,
                                .end = event.end,
                                .launched = std::nullopt};
  const FieldValue* launched = Find(event.values, "_launched_ns");
  if (launched != nullptr) seen.launched = placement_->At(launched->s);
  work_.OnEvent(seen);
}

uint64_t KinetoObserver::OnShown(const Event& event, TrackId track) {
  const std::string_view correlation = TextOf(event.values, "correlation");
  if (correlation.empty()) return 0;
  if (event.device.empty()) {
    if (!IsKinetoCall(event.category)) return 0;
    const auto [call, is_new] = calls_.try_emplace(KeyOf(correlation, event.begin));
    if (is_new) call->second = {track, emitter_->NewFlowId()};
    return is_new ? call->second.arrow : 0;
  }
  const FieldValue* launched = Find(event.values, "_launched_ns");
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
