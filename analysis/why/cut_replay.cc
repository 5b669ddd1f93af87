// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/cut_replay.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace syncline::analysis::why {
namespace {

// How much of [from, to) the intervals cover, which are apart and sorted.
int64_t Covered(std::span<const std::pair<int64_t, int64_t>> intervals, int64_t from_ns,
                int64_t to_ns) {
  auto next = std::partition_point(intervals.begin(), intervals.end(),
                                   [&](const auto& one) { return one.second <= from_ns; });
  int64_t sum_ns = 0;
  for (; next != intervals.end() && next->first < to_ns; ++next) {
    sum_ns += std::min(next->second, to_ns) - std::max(next->first, from_ns);
  }
  return sum_ns;
}

}  // namespace

CutReplay::CutReplay(const CutInput& input, const CutPaths& paths, int64_t step,
                     std::span<const size_t> transfers)
    : input_(input) {
  std::vector<std::set<int64_t>> received(input.partitions.size());
  for (const size_t index : transfers) {
    const CutTransfer& transfer = input.transfers[index];
    received[transfer.to].insert(transfer.received_ns);
    const CutWay way = WayOf(transfer);
    events_.push_back({way.begin_ns, way.asked ? Kind::kAsked : Kind::kSent,
                       way.asked ? transfer.to : transfer.from, index});
    events_.push_back({transfer.received_ns, Kind::kReceived, transfer.to, index});
  }
  for (size_t p = 0; p < input.partitions.size(); ++p) {
    std::optional<Partition>& partition = partitions_.emplace_back();
    const auto found = input.partitions[p].steps.find(step);
    if (found == input.partitions[p].steps.end()) continue;
    partition.emplace();
    partition->begin_ns = found->second.begin_ns;
    partition->busy = paths.Busy(p, found->second.begin_ns, *found->second.end_ns);
    int64_t since_ns = partition->begin_ns;
    for (const auto& [begin_ns, end_ns] : partition->busy) {
      if (begin_ns > since_ns && received[p].contains(begin_ns)) {
        partition->waits.emplace_back(since_ns, begin_ns);
      }
      since_ns = std::max(since_ns, end_ns);
    }
    events_.push_back({*found->second.end_ns, Kind::kEnd, p, 0});
  }
  std::erase_if(events_, [&](const Event& event) { return !partitions_[event.partition]; });
  std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
    return std::tie(a.at_ns, a.kind, a.partition, a.transfer) <
           std::tie(b.at_ns, b.kind, b.partition, b.transfer);
  });
}

// How long what the partition did between the two takes it, without waiting for tensors.
int64_t CutReplay::NextNs(size_t partition, int64_t from_ns, int64_t to_ns,
                          const CutChange& change) const {
  const Partition& own = *partitions_[partition];
  int64_t took_ns = to_ns - from_ns - Covered(own.waits, from_ns, to_ns);
  if (change.half_work == partition) took_ns -= Covered(own.busy, from_ns, to_ns) / 2;
  return took_ns;
}

int64_t CutReplay::EndWith(const CutChange& change) const {
  struct Now {
    int64_t was_ns = 0;  // of the last event
    int64_t is_ns = 0;
  };
  std::vector<Now> now(partitions_.size());
  for (size_t p = 0; p < partitions_.size(); ++p) {
    if (partitions_[p]) now[p] = {partitions_[p]->begin_ns, partitions_[p]->begin_ns};
  }
  std::map<size_t, int64_t> begun;  // ways of transfers
  int64_t end_ns = INT64_MIN;
  for (const Event& event : events_) {
    Now& own = now[event.partition];
    // What an earlier step's work did within this one is not moved.
    if (event.at_ns > own.was_ns) {
      own.is_ns += NextNs(event.partition, own.was_ns, event.at_ns, change);
      own.was_ns = event.at_ns;
    }
    switch (event.kind) {
      case Kind::kSent:
      case Kind::kAsked:
        begun[event.transfer] = own.is_ns;
        break;
      case Kind::kReceived: {
        const CutTransfer& transfer = input_.transfers[event.transfer];
        const auto way = begun.find(event.transfer);
        // By clocks that are not exact it may seem to come before it was sent.
        int64_t at_ns = event.at_ns;
        if (way != begun.end()) {
          const bool none =
              change.no_tensors || change.no_direction == std::pair(transfer.from, transfer.to);
          at_ns = way->second + (none ? 0 : transfer.received_ns - WayOf(transfer).begin_ns);
        }
        own.is_ns = std::max(own.is_ns, at_ns);
        break;
      }
      case Kind::kEnd:
        end_ns = std::max(end_ns, own.is_ns);
        break;
    }
  }
  return end_ns;
}

}  // namespace syncline::analysis::why
