// SPDX-License-Identifier: Apache-2.0
#include "analysis/against/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/why/series.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::against {
namespace {

constexpr int64_t kMillion = 1'000'000;
constexpr double kFalse = 0.05;  // how often one of all rows may be named by chance
constexpr size_t kProgramsNamed = 3;

// Of parts of seconds: by how many times one may be longer than another.
constexpr double kPartsAlike = 1.1;

Summary SummaryOf(const Recording& recording) {
  Summary summary;
  summary.id = recording.id;
  summary.detail = recording.detail;
  summary.incomplete = recording.incomplete;
  summary.counted_ns = recording.counted_ns;
  summary.only_profiles = !recording.has_processes;
  summary.nodes = recording.nodes;
  summary.processes = recording.processes;
  summary.ranks = recording.has_ranks ? recording.members.size() : 0;
  if (recording.units.per == Per::kStep) {
    summary.steps = recording.units.size() * static_cast<size_t>(recording.units.steps);
  }
  return summary;
}

// Whether 0 lies outside of an interval that holds `confidence` of the difference of the means.
bool IsSure(std::span<const int64_t> before, std::span<const int64_t> now, int64_t clock_ns,
            double confidence) {
  const auto mean_of = [&](std::span<const int64_t> side) {
    return why::StudentMean(side, why::BlockOf(side.size()), confidence);
  };
  const why::MeanEstimate was = mean_of(before);
  const why::MeanEstimate is = mean_of(now);
  if (was.hi_ns == INT64_MAX || is.hi_ns == INT64_MAX) return false;
  const double half = std::hypot(static_cast<double>(was.hi_ns - was.est_ns),
                                 static_cast<double>(is.hi_ns - is.est_ns));
  return std::abs(static_cast<double>(is.est_ns - was.est_ns)) >
         half + static_cast<double>(clock_ns);
}

bool IsChange(const why::Change& change, int64_t limit_ppm, int64_t own_limit_ppm) {
  if (!change.certain() || std::abs(change.est_ppm) < limit_ppm) return false;
  return static_cast<double>(std::abs(change.change.est_ns)) * kMillion >=
         static_cast<double>(change.before_ns) * static_cast<double>(own_limit_ppm);
}

// All recordings before as one, one behind the other.
struct Pooled {
  std::vector<size_t> lengths;  // units of each
  size_t units = 0;
  double ones = 0;  // steps or seconds
  std::vector<int64_t> period_ns;
  std::map<RowName, Sums> rows;
};

std::vector<int64_t> PeriodsNs(const Units& units) {
  std::vector<int64_t> periods;
  for (const int64_t ns : units.lengths_ns) periods.push_back(units.PerOne(ns));
  return periods;
}

Pooled PooledOf(std::span<const Recording> recordings) {
  Pooled pooled;
  for (const Recording& recording : recordings) {
    for (const auto& [name, sums] : recording.rows) {
      Sums& all = pooled.rows[name];
      why::AppendSeries(sums.ns, pooled.units, &all.ns);
      all.calls += sums.calls;
      all.clock_ns = std::max(all.clock_ns, sums.clock_ns);
      all.member_ns.resize(std::max(all.member_ns.size(), sums.member_ns.size()));
      for (size_t i = 0; i < sums.member_ns.size(); ++i) all.member_ns[i] += sums.member_ns[i];
    }
    why::AppendSeries(PeriodsNs(recording.units), pooled.units, &pooled.period_ns);
    pooled.lengths.push_back(recording.units.size());
    pooled.units += recording.units.size();
    pooled.ones += recording.units.Ones();
  }
  for (auto& [name, sums] : pooled.rows) sums.ns.resize(pooled.units);
  return pooled;
}

class Comparer {
 public:
  Comparer(std::span<const Recording> before, const Recording& now, Comparison* comparison)
      : recordings_before_(before),
        recording_now_(now),
        before_(PooledOf(before)),
        now_(PooledOf(std::span(&now, 1))),
        comparison_(*comparison) {}

  void Run() {
    comparison_.per = recording_now_.units.per;
    comparison_.step_name = recording_now_.step_name;
    comparison_.own_limit_ppm = comparison_.drift_known() ? kDriftPpm : kOneDriftPpm;
    const bool same_members =
        std::all_of(recordings_before_.begin(), recordings_before_.end(),
                    [&](const Recording& one) { return one.members == recording_now_.members; });
    if (same_members) comparison_.members = recording_now_.members;
    AddSteps();
    AddConditions();
    std::vector<std::vector<Edge>> edges;
    for (const Recording& one : recordings_before_) edges.push_back(one.edges);
    comparison_.edges = CompareEdges(edges, recording_now_.edges);
    AddRows();
  }

 private:
  static const StepLengths* Find(const Recording& recording, const std::string& name) {
    const auto found = std::find_if(recording.steps.begin(), recording.steps.end(),
                                    [&](const StepLengths& one) { return one.name == name; });
    return found == recording.steps.end() ? nullptr : &*found;
  }

  void AddSteps() {
    for (const StepLengths& now : recording_now_.steps) {
      std::vector<int64_t> before;
      std::vector<size_t> lengths;
      for (const Recording& recording : recordings_before_) {
        const StepLengths* const steps = Find(recording, now.name);
        if (steps == nullptr) break;
        before.insert(before.end(), steps->ns.begin(), steps->ns.end());
        lengths.push_back(steps->ns.size());
      }
      if (lengths.size() == recordings_before_.size()) AddStep(now, before, lengths);
    }
  }

  void AddStep(const StepLengths& now, const std::vector<int64_t>& before,
               const std::vector<size_t>& lengths) {
    StepChange& change = comparison_.steps.emplace_back();
    change.name = now.name;
    change.marked_by = now.marked_by;
    change.steps_before = before.size();
    change.steps_now = now.ns.size();
    change.median_before_ns = why::MedianOf(before).value_or(0);
    change.median_now_ns = why::MedianOf(now.ns).value_or(0);
    why::Changes changes(lengths);
    changes.Add(before, now.ns);
    changes.Sample();
    change.length = changes.Of(0);
    change.has_interval = now.ns.size() >= kStepsLeast &&
                          *std::min_element(lengths.begin(), lengths.end()) >= kStepsLeast;
    change.changed = change.has_interval &&
                     IsChange(change.length, comparison_.limit_ppm, comparison_.own_limit_ppm) &&
                     IsSure(before, now.ns, 0, 1 - kFalse);
  }

  void AddConditions() {
    for (const Condition& now : recording_now_.conditions) {
      int64_t sum_ppm = 0;
      size_t found = 0;
      for (const Recording& before : recordings_before_) {
        for (const Condition& one : before.conditions) {
          if (one.kind != now.kind) continue;
          sum_ppm += one.ppm;
          ++found;
        }
      }
      if (found != recordings_before_.size()) continue;
      comparison_.conditions.push_back({now.kind, sum_ppm / static_cast<int64_t>(found), now.ppm});
    }
  }

  // Which have to be left out on both sides.
  bool IsLeftOut(const RowName& name) const {
    const bool both = before_.rows.contains(name) && now_.rows.contains(name);
    if (!both && redacted_) return true;
    return name.kind == RowKind::kTask && other_detail_;
  }

  int64_t DivisorOf(const RowName& name) const {
    return name.kind == RowKind::kAllIn ? 1 : static_cast<int64_t>(recording_now_.ranks());
  }

  void AddRows() {
    for (const Recording& one : recordings_before_) {
      redacted_ |= one.redacted;
      other_detail_ |= one.detail != recording_now_.detail;
    }
    redacted_ |= recording_now_.redacted;
    std::set<RowName> names;
    for (const Pooled* side : {&before_, &now_}) {
      for (const auto& [name, sums] : side->rows) {
        if (!IsLeftOut(name)) names.insert(name);
      }
    }
    why::Changes changes(before_.lengths);
    const size_t period = changes.Add(before_.period_ns, now_.period_ns);
    struct Tested {
      RowName name;
      Sums before;
      Sums now;
      size_t row = 0;
    };
    std::vector<Tested> tested;
    for (const RowName& name : names) {
      Tested one{name, SumsOf(before_, name), SumsOf(now_, name), 0};
      if (!IsLarge(one.before.ns, name) && !IsLarge(one.now.ns, name)) {
        comparison_.rows.push_back(Small(name, one.before, one.now));
        continue;
      }
      one.row = changes.Add(one.before.ns, one.now.ns, DivisorOf(name));
      tested.push_back(std::move(one));
    }
    changes.Sample();
    comparison_.period = changes.Of(period);
    comparison_.tested = tested.size();
    const size_t tests = (comparison_.per == Per::kSecond ? 2 : 1) * tested.size();
    confidence_ = 1 - kFalse / static_cast<double>(std::max<size_t>(1, tests));
    for (const Tested& one : tested) {
      RowChange change = Small(one.name, one.before, one.now);
      const int64_t clock_ns = one.before.clock_ns + one.now.clock_ns;
      change.time = changes.Of(one.row, clock_ns);
      change.where = WhereOf(one.before, one.now, change.time.change.est_ns);
      if (IsChange(change.time, comparison_.limit_ppm, comparison_.own_limit_ppm) &&
          !MayBeALoss(change.time) && IsSure(one.before.ns, one.now.ns, clock_ns, confidence_)) {
        change.state = StateOf(one.before, one.now);
      }
      AddCall(&change);
      comparison_.rows.push_back(std::move(change));
    }
    Sort();
  }

  // What a recording lost took no time there.
  bool MayBeALoss(const why::Change& change) const {
    const bool less_before =
        std::any_of(recordings_before_.begin(), recordings_before_.end(),
                    [](const Recording& recording) { return recording.incomplete; });
    return change.change.est_ns < 0 ? recording_now_.incomplete : less_before;
  }

  void AddCall(RowChange* row) const {
    std::vector<int64_t> before;
    std::vector<size_t> lengths;
    for (const Recording& recording : recordings_before_) {
      const auto found = recording.rows.find(row->name);
      if (found == recording.rows.end() || found->second.call_ns.size() < kStepsLeast) return;
      // The mean of a part depends on how long a part is, where a name has short and long calls.
      const double ratio = static_cast<double>(recording.units.part_ns) /
                           static_cast<double>(recording_now_.units.part_ns);
      if (ratio > kPartsAlike || ratio < 1 / kPartsAlike) return;
      const std::vector<int64_t>& call_ns = found->second.call_ns;
      before.insert(before.end(), call_ns.begin(), call_ns.end());
      lengths.push_back(call_ns.size());
    }
    const auto found = recording_now_.rows.find(row->name);
    if (found == recording_now_.rows.end() || found->second.call_ns.size() < kStepsLeast) return;
    const std::vector<int64_t>& now = found->second.call_ns;
    why::Changes changes(lengths);
    changes.Add(before, now);
    changes.Sample();
    row->call = changes.Of(0);
    row->call_changed = IsChange(*row->call, comparison_.limit_ppm, comparison_.own_limit_ppm) &&
                        IsSure(before, now, 0, confidence_);
  }

  static Sums SumsOf(const Pooled& side, const RowName& name) {
    const auto found = side.rows.find(name);
    if (found != side.rows.end()) return found->second;
    Sums none;
    none.ns.resize(side.units);
    return none;
  }

  bool IsLarge(const std::vector<int64_t>& ns, const RowName& name) const {
    return static_cast<double>(why::MeanOf(ns)) / static_cast<double>(DivisorOf(name)) * kMillion >=
           static_cast<double>(why::MeanOf(before_.period_ns)) *
               static_cast<double>(comparison_.limit_ppm);
  }

  // Without an interval, and its change as it is.
  RowChange Small(const RowName& name, const Sums& before, const Sums& now) const {
    RowChange change;
    change.name = name;
    const int64_t divisor = DivisorOf(name);
    change.time.before_ns = why::MeanOf(before.ns) / divisor;
    change.time.now_ns = why::MeanOf(now.ns) / divisor;
    change.time.change.est_ns = change.time.now_ns - change.time.before_ns;
    change.time.change.lo_ns = INT64_MIN;
    change.time.change.hi_ns = INT64_MAX;
    // A collective is one call of all its ranks.
    const double callers = name.kind == RowKind::kCollective ? 1 : static_cast<double>(divisor);
    change.calls_before = static_cast<double>(before.calls) / before_.ones / callers;
    change.calls_now = static_cast<double>(now.calls) / now_.ones / callers;
    return change;
  }

  static RowChange::State StateOf(const Sums& before, const Sums& now) {
    if (before.calls == 0) return RowChange::State::kAppeared;
    return now.calls == 0 ? RowChange::State::kVanished : RowChange::State::kChanged;
  }

  Where WhereOf(const Sums& before, const Sums& now, int64_t mean_ns) const {
    Where where;
    const auto of = [](const Sums& sums, size_t i, double ones) {
      return i < sums.member_ns.size() ? static_cast<double>(sums.member_ns[i]) / ones : 0;
    };
    if (comparison_.members.empty() || (before.member_ns.empty() && now.member_ns.empty())) {
      return where;
    }
    where.of = comparison_.members.size();
    const double mean = static_cast<double>(mean_ns) /
                        (recording_now_.has_ranks ? 1 : static_cast<double>(where.of));
    const double sign = mean < 0 ? -1 : 1;
    double most = 0;
    for (size_t i = 0; i < where.of; ++i) {
      const double change = of(now, i, now_.ones) - of(before, i, before_.ones);
      if (change * sign >= std::abs(mean) / 2) ++where.changed;
      if (change * sign <= most * sign) continue;
      most = change;
      where.most = i;
      where.most_ns = std::llround(change);
    }
    return where;
  }

  void Sort() {
    const auto rank = [](const RowChange& one) {
      return std::tuple(one.state == RowChange::State::kSame, -std::abs(one.time.change.est_ns),
                        -std::max(one.time.before_ns, one.time.now_ns), one.name);
    };
    std::sort(comparison_.rows.begin(), comparison_.rows.end(),
              [&](const RowChange& a, const RowChange& b) { return rank(a) < rank(b); });
  }

  std::span<const Recording> recordings_before_;
  const Recording& recording_now_;
  const Pooled before_;
  const Pooled now_;
  Comparison& comparison_;
  bool redacted_ = false;
  bool other_detail_ = false;
  double confidence_ = 0;  // of the test of each row
};

void Refuse(Mismatch mismatch, std::string text, Comparison* comparison) {
  if (comparison->mismatch != Mismatch::kNone) return;
  comparison->mismatch = mismatch;
  comparison->mismatch_text = "not comparable: " + std::move(text);
}

std::string RanksText(const Recording& recording) {
  if (!recording.has_ranks) return "no ranks";
  return absl::StrCat(recording.members.size(), recording.members.size() == 1 ? " rank" : " ranks");
}

std::string ProgramsText(const Recording& recording) {
  const size_t named = std::min(kProgramsNamed, recording.programs.size());
  std::string text = absl::StrJoin(std::span(recording.programs).first(named), ", ");
  if (recording.programs.size() > named) absl::StrAppend(&text, " and others");
  return text.empty() ? "unknown" : text;
}

// Of what takes time now, the part (0 to 1) that has the same name before.
double SharedOf(const Recording& before, const Recording& now) {
  double all = 0;
  double shared = 0;
  for (const auto& [name, sums] : now.rows) {
    const auto ns = static_cast<double>(why::MeanOf(sums.ns));
    all += ns;
    if (before.rows.contains(name)) shared += ns;
  }
  if (all > 0) return shared / all;
  // Nothing takes time now: of what did before, nothing is there.
  const bool any = std::any_of(before.rows.begin(), before.rows.end(),
                               [](const auto& row) { return why::MeanOf(row.second.ns) > 0; });
  return any ? 0 : 1;
}

void Check(const Recording& before, const Recording& now, Comparison* comparison) {
  if (before.has_ranks != now.has_ranks || before.ranks() != now.ranks()) {
    Refuse(Mismatch::kOtherRanks,
           absl::StrCat(RanksText(now), " now, ", RanksText(before), " before"), comparison);
  }
  // What they did is added up, and there is nothing that tells which of them did what.
  if (!before.has_processes && !now.has_processes && before.processes != now.processes) {
    Refuse(Mismatch::kOtherRanks,
           absl::StrCat(now.processes, now.processes == 1 ? " profile now, " : " profiles now, ",
                        before.processes, " before"),
           comparison);
  }
  const size_t least = std::min(before.units.size(), now.units.size());
  if (least < kStepsLeast) {
    Refuse(Mismatch::kTooShort,
           "nothing of a side was recorded for long enough to see how it varies", comparison);
  }
  const bool names = !before.redacted && !now.redacted;
  const double shared = SharedOf(before, now);
  if (names && shared == 0) {
    Refuse(Mismatch::kOtherProgram,
           absl::StrCat("nothing that takes time now has a name that was there before: ",
                        ProgramsText(now), " now, ", ProgramsText(before), " before"),
           comparison);
  }
  const auto note = [&](bool differs, std::string text) {
    const auto& notes = comparison->notes;
    if (differs && std::find(notes.begin(), notes.end(), text) == notes.end()) {
      comparison->notes.push_back(std::move(text));
    }
  };
  note(
      names && shared > 0 && shared < 0.5,
      absl::StrCat("only ", std::llround(shared * 100),
                   " % of the time now has names that were there before: is it the same program?"));
  note(!before.redacted && !now.redacted && before.programs != now.programs,
       absl::StrCat("other programs: ", ProgramsText(now), " now, ", ProgramsText(before),
                    " before"));
  note(before.nodes != now.nodes,
       absl::StrCat("other nodes: ", now.nodes, " now, ", before.nodes, " before"));
  note(before.processes != now.processes,
       absl::StrCat("other processes: ", now.processes, " now, ", before.processes, " before"));
  note(before.detail != now.detail,
       absl::StrCat("--detail ", now.detail, " now, ", before.detail,
                    " before: operators are not compared, and steps of one paid more for being "
                    "recorded"));
  note(before.redacted || now.redacted,
       "names were replaced in a redacted recording: what only one side has is not compared");
  note(before.names_left_out || now.names_left_out,
       absl::StrCat("there are more than ", kNamesMax, " names: the rest is not compared"));
}

}  // namespace

const char* MismatchJsonName(Mismatch mismatch) {
  switch (mismatch) {
    case Mismatch::kOtherRanks:
      return "other_ranks";
    case Mismatch::kOtherProgram:
      return "other_program";
    case Mismatch::kTooShort:
      return "too_short";
    case Mismatch::kNone:
      break;
  }
  return "";
}

bool Comparison::incomplete() const {
  return now.incomplete || std::any_of(befores.begin(), befores.end(),
                                       [](const Summary& one) { return one.incomplete; });
}

size_t Comparison::changed() const {
  return static_cast<size_t>(std::count_if(rows.begin(), rows.end(), [](const RowChange& one) {
    return one.state != RowChange::State::kSame;
  }));
}

Comparison Compare(const std::vector<Recording>& before, const Recording& now) {
  Comparison comparison;
  comparison.now = SummaryOf(now);
  for (const Recording& one : before) {
    comparison.befores.push_back(SummaryOf(one));
    Check(one, now, &comparison);
  }
  if (comparison.mismatch == Mismatch::kNone) Comparer(before, now, &comparison).Run();
  return comparison;
}

}  // namespace syncline::analysis::against
