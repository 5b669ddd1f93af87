// SPDX-License-Identifier: Apache-2.0
#include "timeline/id_fields.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace syncline::timeline {
namespace {

constexpr std::string_view kNames[] = {"domain",      "name",  "key",    "text",  "group",
                                       "description", "ranks", "device", "queue", "source"};
static_assert(std::size(kNames) == std::size(kNameFields));

}  // namespace

IdKind IdKindOf(EventKind kind, const FieldClass& field) {
  const bool ours = kind != EventKind::kForeign && kind != EventKind::kCanary;
  if (!ours || IsAnnouncement(kind)) return IdKind::kNone;
  // Where a name travels in the event itself, the field is a text.
  if (field.scope != FieldScope::kPayload || field.type != FieldType::kUnsigned) {
    return IdKind::kNone;
  }
  if (field.name == "thread") return IdKind::kThread;
  if (field.name == "process") return IdKind::kProcess;
  const bool is_name =
      std::find(std::begin(kNames), std::end(kNames), field.name) != std::end(kNames);
  return is_name ? IdKind::kName : IdKind::kNone;
}

bool HasIds(const EventClass& event_class) {
  const EventKind kind = KindOf(event_class.name);
  return std::any_of(
      event_class.fields.begin(), event_class.fields.end(),
      [kind](const FieldClass& field) { return IdKindOf(kind, field) != IdKind::kNone; });
}

}  // namespace syncline::timeline
