// SPDX-License-Identifier: Apache-2.0
// Which threads of a process have a task with some id open: for what is said of a task by another
// thread than its own.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_OPEN_IDS_H_
#define SYNCLINE_TIMELINE_OPEN_IDS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "timeline/schema.h"

namespace syncline::timeline {

class OpenIds {
 public:
  void Add(IttId id, uint32_t thread) { open_.emplace(id, thread); }
  // One of those that were added.
  void Remove(IttId id, uint32_t thread) {
    const auto found = open_.find({id, thread});
    if (found != open_.end()) open_.erase(found);
  }
  // The one with the least number.
  std::optional<uint32_t> FirstThread(IttId id) const {
    const auto found = open_.lower_bound({id, 0});
    if (found == open_.end() || found->first != id) return std::nullopt;
    return found->second;
  }
  // Each once.
  std::vector<uint32_t> Threads(IttId id) const {
    std::vector<uint32_t> threads;
    for (auto at = open_.lower_bound({id, 0}); at != open_.end() && at->first == id; ++at) {
      if (threads.empty() || threads.back() != at->second) threads.push_back(at->second);
    }
    return threads;
  }

 private:
  std::multiset<std::pair<IttId, uint32_t>> open_;  // a thread may have two tasks of one id
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_OPEN_IDS_H_
