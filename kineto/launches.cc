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

void Launches::OnCall(uint32_t event, int64_t begin_ns, int64_t end_ns,
                      std::string_view correlation) {
  if (IsNone(correlation)) return;
  CloseBefore(begin_ns);
  const Launch launch{event, open_.empty() ? kNoEvent : open_.back().event};
  const auto [known, is_new] = calls_.try_emplace(correlation, Call{launch, thread_, end_ns});
  Call& call = known->second;
  if (!is_new && (call.thread != thread_ || begin_ns >= call.end_ns)) call.launch = {};
}

Launches::Launch Launches::Find(std::string_view correlation) const {
  if (IsNone(correlation)) return {};
  const auto found = calls_.find(correlation);
  return found == calls_.end() ? Launch{} : found->second.launch;
}

}  // namespace syncline::kineto
