// SPDX-License-Identifier: Apache-2.0
#include "xspace/launches.h"

#include <algorithm>

namespace syncline::xspace {

void Launches::AddThread(std::vector<HostEvent> events) {
  std::stable_sort(events.begin(), events.end(), [](const HostEvent& a, const HostEvent& b) {
    if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
    return a.end_ns > b.end_ns;
  });
  std::vector<const HostEvent*> open;
  for (const HostEvent& event : events) {
    while (!open.empty() && open.back()->end_ns <= event.begin_ns) open.pop_back();
    if (event.is_call) {
      AddCall(event, open.empty() ? std::string_view() : open.back()->name);
    } else if (!event.is_step && event.end_ns > event.begin_ns) {
      open.push_back(&event);
    }
  }
  ++thread_;
}

void Launches::AddCall(const HostEvent& call, std::string_view inside) {
  if (call.correlation == 0) return;
  const auto [known, is_new] = calls_.try_emplace(
      call.correlation, Call{{call.begin_ns, inside}, thread_, call.end_ns, true});
  if (is_new) return;
  Call& other = known->second;
  other.known = other.known && other.thread == thread_ && call.begin_ns < other.end_ns;
}

const Launches::Launch* Launches::Find(uint64_t correlation) const {
  const auto found = calls_.find(correlation);
  return found == calls_.end() || !found->second.known ? nullptr : &found->second.launch;
}

}  // namespace syncline::xspace
