// SPDX-License-Identifier: Apache-2.0
#include "kineto/launches.h"

namespace syncline::kineto {
namespace {

// What Kineto writes where there was no call.
bool IsNone(std::string_view correlation) {
  return correlation.empty() || correlation == "0" || correlation.front() == '-';
}

}  // namespace

void Launches::CloseBefore(int64_t begin_ns) {
  while (!open_.empty() && open_.back().end_ns <= begin_ns) open_.pop_back();
}

void Launches::OnOperator(uint32_t event, int64_t begin_ns, int64_t end_ns) {
  CloseBefore(begin_ns);
  open_.push_back({event, end_ns});
}

void Launches::OnCall(uint32_t event, int64_t begin_ns, std::string_view correlation) {
  if (IsNone(correlation)) return;
  CloseBefore(begin_ns);
  launches_.try_emplace(correlation, Launch{event, open_.empty() ? kNoEvent : open_.back().event});
}

Launches::Launch Launches::Find(std::string_view correlation) const {
  if (IsNone(correlation)) return {};
  const auto found = launches_.find(correlation);
  return found == launches_.end() ? Launch{} : found->second;
}

}  // namespace syncline::kineto
