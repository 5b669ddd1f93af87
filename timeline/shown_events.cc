// SPDX-License-Identifier: Apache-2.0
#include "timeline/shown_events.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "common/text.h"

namespace syncline::timeline {
namespace {

using Kinds = std::initializer_list<EventKind>;

// What is shown whole.
const Kinds kTogether[] = {
    {EventKind::kTaskBegin, EventKind::kTaskEnd},
    {EventKind::kTaskBeginOverlapped, EventKind::kTaskEndOverlapped},
    {EventKind::kFrameBegin, EventKind::kFrameEnd},
    {EventKind::kEventStart, EventKind::kEventEnd},
    {EventKind::kCounter, EventKind::kCounterMetadata},
    {EventKind::kMetadata, EventKind::kMetadataF64, EventKind::kMetadataText,
     EventKind::kMetadataName},
    {EventKind::kConnection, EventKind::kConnectionState, EventKind::kSend, EventKind::kReceive,
     EventKind::kSendUnplaced, EventKind::kReceiveUnplaced, EventKind::kDoubt},
    {EventKind::kTorchGroup, EventKind::kTorchCollective, EventKind::kTorchRoot,
     EventKind::kTorchTransferBegin, EventKind::kTorchTransferEnd},
    {EventKind::kDeviceLaunch, EventKind::kDeviceWork, EventKind::kDeviceCollectiveCall,
     EventKind::kDeviceCollective, EventKind::kDeviceTracing, EventKind::kDeviceLost},
};

constexpr EventKind kAlwaysHeeded[] = {EventKind::kForeign, EventKind::kOn,
                                       EventKind::kOff,     EventKind::kPause,
                                       EventKind::kResume,  EventKind::kTorchOperators};

}  // namespace

ShownEvents::ShownEvents(const EventPatterns& wanted) {
  const auto at = [](EventKind kind) { return static_cast<size_t>(kind); };
  shown_[at(EventKind::kForeign)] = true;  // those that are not wanted do not come here
  for (const abi::EventRow& row : abi::kEvents) {
    bool& shown = shown_[at(row.kind)];
    shown = shown || wanted.Matches(absl::StrCat(AbslView(row.provider), ":", AbslView(row.name)));
  }
  for (const Kinds& together : kTogether) {
    const bool any = std::any_of(together.begin(), together.end(),
                                 [this](EventKind kind) { return Shows(kind); });
    for (const EventKind kind : together) shown_[at(kind)] = any;
  }
  heeded_ = shown_;
  for (const EventKind kind : kAlwaysHeeded) heeded_[at(kind)] = true;
  // Collectives are found in tasks.
  if (!Shows(EventKind::kTorchCollective)) return;
  heeded_[at(EventKind::kTaskBegin)] = heeded_[at(EventKind::kTaskEnd)] = true;
}

}  // namespace syncline::timeline
