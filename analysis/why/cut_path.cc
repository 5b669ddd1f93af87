// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/cut_path.h"

#include <algorithm>

namespace syncline::analysis::why {
namespace {

constexpr size_t kPiecesMax = 1'000'000;  // of one step

// The last of sorted `values` whose first is below `limit`, or at it if `at`.
template <class Values>
auto LastBelow(const Values& values, int64_t limit, bool at) {
  const auto behind = std::partition_point(values.begin(), values.end(), [&](const auto& value) {
    return at ? value.first <= limit : value.first < limit;
  });
  return behind == values.begin() ? values.end() : std::prev(behind);
}

}  // namespace

CutWay WayOf(const CutTransfer& transfer) {
  if (transfer.posted_recorded_ns.has_value()) {
    const int64_t waited_ns = transfer.received_recorded_ns - *transfer.posted_recorded_ns;
    const int64_t posted_ns = transfer.received_ns - waited_ns;
    if (posted_ns > transfer.sent_ns) return {posted_ns, true};
  }
  return {transfer.sent_ns, false};
}

CutPaths::CutPaths(const CutInput& input) : input_(input) {
  for (const CutPartition& given : input.partitions) {
    Partition& partition = partitions_.emplace_back();
    for (size_t lane = 0; lane < given.lanes.size(); ++lane) {
      std::vector<size_t>& outermost = partition.outermost.emplace_back();
      for (size_t i = 0; i < given.lanes[lane].size(); ++i) {
        const CutSpan& span = given.lanes[lane][i];
        if (span.depth == 0) outermost.push_back(i);
        if (span.kind == CutKind::kReady) partition.ready.emplace_back(span.begin_ns, lane);
        if (span.kind == CutKind::kOperator) partition.operators.insert(span.name);
        if (span.kind == CutKind::kAsked) {
          partition.asked[span.name].emplace_back(span.begin_ns, lane);
        }
        partition.lane_of_record.emplace_back(span.recorded_ns, lane);
      }
    }
    std::sort(partition.ready.begin(), partition.ready.end());
    std::sort(partition.lane_of_record.begin(), partition.lane_of_record.end());
    for (auto& [name, begins] : partition.asked) std::sort(begins.begin(), begins.end());
  }
  for (size_t i = 0; i < input.transfers.size(); ++i) {
    const CutTransfer& transfer = input.transfers[i];
    received_[{transfer.to, transfer.step, transfer.received_recorded_ns}] = i;
  }
}

std::optional<size_t> CutPaths::LaneOf(size_t partition, int64_t recorded_ns) const {
  const auto& records = partitions_[partition].lane_of_record;
  const auto found =
      std::lower_bound(records.begin(), records.end(), std::pair<int64_t, size_t>(recorded_ns, 0));
  if (found == records.end() || found->first != recorded_ns) return std::nullopt;
  return found->second;
}

const CutSpan* CutPaths::Outermost(const Place& place) const {
  const std::vector<CutSpan>& spans = input_.partitions[place.partition].lanes[place.lane];
  const std::vector<size_t>& outermost = partitions_[place.partition].outermost[place.lane];
  const auto behind = std::partition_point(outermost.begin(), outermost.end(), [&](size_t index) {
    return spans[index].begin_ns < place.at_ns;
  });
  return behind == outermost.begin() ? nullptr : &spans[*std::prev(behind)];
}

const CutTransfer* CutPaths::ReceivedAs(size_t partition, int64_t step, int64_t recorded_ns) const {
  const auto found = received_.find({partition, step, recorded_ns});
  return found == received_.end() ? nullptr : &input_.transfers[found->second];
}

// Goes back from one place, piece by piece.
class CutPaths::Walk {
 public:
  Walk(const CutPaths& paths, int64_t step) : paths_(paths), input_(paths.input_), step_(step) {
    const CutStepTimes* last = nullptr;
    for (size_t i = 0; i < input_.partitions.size(); ++i) {
      const auto found = input_.partitions[i].steps.find(step);
      if (found == input_.partitions[i].steps.end()) continue;
      const CutStepTimes& times = found->second;
      if (!times.end_ns.has_value() || (last != nullptr && *last->end_ns >= *times.end_ns)) {
        continue;
      }
      last = &times;
      place_ = {i, times.end_lane, *times.end_ns};
    }
    path_.end_ns = place_.at_ns;
  }

  CutPath Go() {
    while (path_.pieces.size() < kPiecesMax) {
      const int64_t begin_ns = BeginNs();
      if (place_.at_ns <= begin_ns) {
        path_.whole = true;
        break;
      }
      const CutSpan* span = paths_.Outermost(place_);
      const bool inside = span != nullptr && span->end_ns >= place_.at_ns;
      if (inside && span->kind == CutKind::kDone) {
        AddWork(*span, span->begin_ns);
        if (!BeforeDone(*span)) break;
        continue;
      }
      if (inside) {
        AddWork(*span, std::max(span->begin_ns, begin_ns));
        continue;
      }
      if (!Before(span, begin_ns)) break;
    }
    return std::move(path_);
  }

 private:
  int64_t BeginNs() const {
    const auto& steps = input_.partitions[place_.partition].steps;
    const auto found = steps.find(step_);
    // A partition that did not begin the step sends nothing in it.
    return found == steps.end() ? INT64_MAX : found->second.begin_ns;
  }

  void Add(CutPiece::Kind kind, int64_t duration_ns, NameId name = 0, size_t transfer = 0) {
    if (duration_ns == 0) return;
    path_.pieces.push_back({kind, place_.partition, name, transfer, duration_ns});
  }

  // From here back to `from_ns`, within the outermost span of the lane.
  void AddWork(const CutSpan& outer, int64_t from_ns) {
    const std::vector<CutSpan>& spans = input_.partitions[place_.partition].lanes[place_.lane];
    struct Open {
      int64_t end_ns;
      std::optional<NameId> name;  // of the innermost operator
    };
    std::vector<Open> open;
    int64_t done_ns = from_ns;
    const auto take_until = [&](int64_t until_ns) {
      const int64_t at_ns = std::min(until_ns, place_.at_ns);
      if (at_ns <= done_ns) return;
      const bool in_operator = !open.empty() && open.back().name.has_value();
      Add(in_operator ? CutPiece::Kind::kOperator : CutPiece::Kind::kExecutor, at_ns - done_ns,
          in_operator ? *open.back().name : 0);
      done_ns = at_ns;
    };
    const auto close_until = [&](int64_t until_ns) {
      while (!open.empty() && open.back().end_ns <= until_ns) {
        take_until(open.back().end_ns);
        open.pop_back();
      }
    };
    for (size_t i = static_cast<size_t>(&outer - spans.data()); i < spans.size(); ++i) {
      const CutSpan& span = spans[i];
      if (span.begin_ns >= place_.at_ns) break;
      close_until(span.begin_ns);
      take_until(span.begin_ns);
      std::optional<NameId> name;
      if (!open.empty()) name = open.back().name;
      if (span.kind == CutKind::kOperator) name = span.name;
      open.push_back({span.end_ns, name});
    }
    close_until(place_.at_ns);
    take_until(place_.at_ns);
    place_.at_ns = from_ns;
  }

  // What is done did not hold a thread: a tensor was received, or an operator waited for something.
  bool BeforeDone(const CutSpan& done) {
    const CutTransfer* transfer = paths_.ReceivedAs(place_.partition, step_, done.recorded_ns);
    if (transfer != nullptr) return Cross(*transfer);
    const Partition& partition = paths_.partitions_[place_.partition];
    if (input_.receives[done.name] || !partition.operators.contains(done.name)) return false;
    const auto asked = partition.asked.find(done.name);
    if (asked == partition.asked.end()) return false;
    const auto begin = LastBelow(asked->second, place_.at_ns, /*at=*/true);
    if (begin == asked->second.end() || begin->first < BeginNs()) return false;
    Add(CutPiece::Kind::kOperator, place_.at_ns - begin->first, done.name);
    place_ = {place_.partition, begin->second, begin->first};
    return true;
  }

  // To where the tensor came from; false: that was not recorded.
  bool Cross(const CutTransfer& transfer) {
    const CutWay way = WayOf(transfer);
    const size_t from = way.asked ? transfer.to : transfer.from;
    const std::optional<size_t> lane =
        paths_.LaneOf(from, way.asked ? *transfer.posted_recorded_ns : transfer.sent_recorded_ns);
    if (!lane.has_value()) return false;
    Add(way.asked ? CutPiece::Kind::kAsked : CutPiece::Kind::kTensor, place_.at_ns - way.begin_ns,
        0, static_cast<size_t>(&transfer - input_.transfers.data()));
    place_ = {from, *lane, way.begin_ns};
    return true;
  }

  // To what was last before: what the lane did, or where something was made ready. `last`: what the
  // lane did; nullptr: nothing. False: nothing within the step.
  bool Before(const CutSpan* last, int64_t begin_ns) {
    std::optional<int64_t> until_ns;
    if (last != nullptr && last->end_ns > begin_ns) until_ns = last->end_ns;
    const auto& ready = paths_.partitions_[place_.partition].ready;
    const auto made = LastBelow(ready, place_.at_ns, /*at=*/false);
    const bool by_ready =
        made != ready.end() && made->first > begin_ns && made->first > until_ns.value_or(INT64_MIN);
    if (!by_ready && !until_ns.has_value()) return false;
    const int64_t to_ns = by_ready ? made->first : *until_ns;
    Add(CutPiece::Kind::kIdle, place_.at_ns - to_ns);
    place_.at_ns = to_ns;
    if (by_ready) place_.lane = made->second;
    return true;
  }

  const CutPaths& paths_;
  const CutInput& input_;
  const int64_t step_;
  Place place_;
  CutPath path_;
};

CutPath CutPaths::Of(int64_t step) const { return Walk(*this, step).Go(); }

std::vector<std::pair<int64_t, int64_t>> CutPaths::Busy(size_t partition, int64_t begin_ns,
                                                        int64_t end_ns) const {
  std::vector<std::pair<int64_t, int64_t>> busy;
  const CutPartition& given = input_.partitions[partition];
  for (size_t lane = 0; lane < given.lanes.size(); ++lane) {
    const std::vector<size_t>& outermost = partitions_[partition].outermost[lane];
    auto next = std::partition_point(outermost.begin(), outermost.end(), [&](size_t index) {
      return given.lanes[lane][index].end_ns <= begin_ns;
    });
    for (; next != outermost.end() && given.lanes[lane][*next].begin_ns < end_ns; ++next) {
      const CutSpan& span = given.lanes[lane][*next];
      busy.emplace_back(std::max(span.begin_ns, begin_ns), std::min(span.end_ns, end_ns));
    }
  }
  std::sort(busy.begin(), busy.end());
  std::vector<std::pair<int64_t, int64_t>> apart;
  for (const auto& one : busy) {
    if (apart.empty() || one.first > apart.back().second) {
      apart.push_back(one);
    } else {
      apart.back().second = std::max(apart.back().second, one.second);
    }
  }
  return apart;
}

}  // namespace syncline::analysis::why
