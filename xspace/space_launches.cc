// SPDX-License-Identifier: Apache-2.0
// The threads' side of a space, for what devices did.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "xspace/launches.h"
#include "xspace/space.h"
#include "xspace/stat.h"

namespace syncline::xspace {
namespace {

uint64_t NumberOf(std::span<const uint8_t> event, const StatKey& key) {
  Fields fields(event);
  while (fields.Next()) {
    if (fields.number() != event_field::kStat) continue;
    const Stat stat = ReadStat(fields.bytes());
    if (StatKey{stat.id, stat.kind} == key) return stat.bits;
  }
  return 0;
}

}  // namespace

// Of a thread that launched something all events are wanted; which do is known by their names only
// when all have been seen.
void Space::FindLaunches() {
  const auto is_launched = [this](const Line& line) {
    const auto& classes = ClassesOf(line).by_id;
    return line.is_queue && std::any_of(classes.begin(), classes.end(), [](const auto& entry) {
             return entry.second->correlation.has_value();
           });
  };
  if (std::none_of(lines_.begin(), lines_.end(), is_launched)) return;
  // Calls of a driver may have a plane of their own, whose lines have the threads' ids.
  std::map<int64_t, std::vector<HostEvent>> threads;
  for (const Line& line : lines_) {
    if (planes_[line.plane]->device.empty()) AddHostEvents(line, &threads[line.id]);
  }
  for (auto& [id, events] : threads) launches_.AddThread(std::move(events));
}

void Space::AddHostEvents(const Line& line, std::vector<HostEvent>* events) const {
  Fields fields(line.bytes);
  while (fields.Next()) {
    if (fields.number() != kLineEvent || fields.clipped()) continue;
    const Head head = ReadHead(fields.bytes());
    const Class* const found = ClassesOf(line).Find(head.metadata_id);
    if (!head.whole || !head.timed || found == nullptr) continue;
    HostEvent event;
    event.begin_ns = TimeNs(line, head.offset_ps);
    event.end_ns = SaturatingSum(event.begin_ns, head.duration_ps / 1000);
    event.name = found->name;
    event.is_call = found->correlation.has_value();
    event.is_step = found->step_number.has_value();
    if (event.is_call)
      event.correlation = NumberOf(fields.bytes(), found->stats[*found->correlation]);
    events->push_back(event);
  }
}

}  // namespace syncline::xspace
