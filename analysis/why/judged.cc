// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/judged.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "analysis/why/blocked.h"
#include "analysis/why/carried.h"
#include "analysis/why/judged_checks.h"
#include "analysis/why/parts.h"
#include "analysis/why/segments.h"
#include "analysis/why/statistics.h"
#include "analysis/why/taken_away.h"
#include "common/parallel.h"

namespace syncline::analysis::why {
namespace {

constexpr size_t kStepsWanted = 60;
constexpr int64_t kTransfersDivisor = 50;  // of all time: less waiting for transfers says nothing
// Less of the steps' time than this, and the samples say too little of the steps: a sampler that
// was killed, a full disk.
constexpr double kSampledMin = 0.9;
constexpr int64_t kLongSilenceNs = 1'000'000;

std::vector<Driver> FindDrivers(const JobInput& input, Judged* judged) {
  std::vector<Driver> drivers;
  bool launches = false;
  uint64_t transfers = 0;
  uint64_t steps = 0;
  for (const RankInput& rank : input.ranks) {
    const Driver driver = DriverOf(rank, judged->names);
    drivers.push_back(driver);
    launches |= driver.launches > 0;
    steps += driver.steps;
    transfers += static_cast<uint64_t>(std::count_if(
        rank.collectives.begin(), rank.collectives.end(), [&](const CollectiveEntry& one) {
          return one.transfer && !one.loose && driver.thread != nullptr &&
                 one.tid == driver.thread->tid;
        }));
    if (driver.thread == nullptr) {
      Refuse(Refusal::kNoPyTorchOperators,
             absl::StrCat(RankName(rank),
                          " recorded no PyTorch operator in the window: either it stands still "
                          "(it hangs, waits, or sets itself up), or it runs no PyTorch, or has a "
                          "profiler of its own; `syncline nodes` says what can be recorded there"),
             judged);
    } else if (driver.shared()) {
      Refuse(Refusal::kSecondLauncher,
             absl::StrCat(RankName(rank),
                          " launches collectives from more than one thread: which "
                          "thread's waits hold the job up is not known"),
             judged);
    }
  }
  // A transfer now and then does not tie steps together.
  launches |= transfers > 0 && transfers * 2 >= steps;
  judged->collective_job = launches && input.ranks.size() > 1;
  return drivers;
}

// Steps of all ranks that are not of the judged class, where they are few.
void TakeUnjudged(std::span<const std::vector<Step>> steps, Judged* judged) {
  std::vector<std::vector<size_t>> unjudged = judged->pairing.unlike;
  for (size_t i = 1; i < judged->pairing.classes.size(); ++i) {
    const auto& others = judged->pairing.classes[i].steps;
    unjudged.insert(unjudged.end(), others.begin(), others.end());
  }
  if (unjudged.size() * kFewDivisor > judged->steps()) return;
  std::sort(unjudged.begin(), unjudged.end());
  for (const std::vector<size_t>& of_ranks : unjudged) {
    judged->unjudged.push_back(of_ranks[0]);
    for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
      judged->ranks[rank].unjudged.push_back(steps[rank][of_ranks[rank]].interval);
    }
  }
}

// The judged class's steps of each rank, and the collectives that all of them have.
void TakeSteps(std::span<const std::vector<Step>> steps, const PairedSteps& judged_class,
               Judged* judged) {
  for (const std::vector<size_t>& of_ranks : judged_class.steps) {
    judged->numbers.push_back(of_ranks[0]);
    for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
      judged->ranks[rank].steps.push_back(steps[rank][of_ranks[rank]].interval);
    }
    // Those that all ranks entered.
    std::vector<std::pair<uint32_t, uint64_t>> common = steps[0][of_ranks[0]].collectives;
    for (size_t rank = 1; rank < of_ranks.size(); ++rank) {
      const auto& other = steps[rank][of_ranks[rank]].collectives;
      if (other == common) continue;
      const std::set<std::pair<uint32_t, uint64_t>> others(other.begin(), other.end());
      std::erase_if(common, [&](const auto& one) { return !others.contains(one); });
    }
    judged->collectives.push_back(std::move(common));
  }
}

size_t PairedOf(const Pairing& pairing) {
  size_t paired = 0;
  for (const PairedSteps& one : pairing.classes) paired += one.steps.size();
  return paired;
}

std::string WindowFor(const Judged& judged) {
  const PairedSteps& first = judged.pairing.classes[0];
  const auto ranks_steps = static_cast<int64_t>(first.steps.size() * judged.ranks.size());
  const int64_t step_ns = std::max<int64_t>(1, first.total_ns / std::max<int64_t>(1, ranks_steps));
  const int64_t seconds = static_cast<int64_t>(kStepsWanted) * step_ns * 5 / 4 / 1'000'000'000 + 1;
  return absl::StrCat(std::max<int64_t>(10, seconds), "s");
}

void PairUp(const JobInput& input, std::span<const Driver> drivers, Judged* judged) {
  using RanksSteps = std::vector<std::vector<Step>>;
  StepOptions options{.with_collectives = judged->collective_job};
  for (size_t rank = 0; rank < drivers.size(); ++rank) {
    const size_t optimizers = OptimizersPerBatch(*drivers[rank].thread, judged->names);
    if (rank > 0 && optimizers != options.optimizers) {
      options.optimizers = 1;  // ranks disagree
      break;
    }
    options.optimizers = optimizers;
  }
  judged->optimizers = options.optimizers;
  const auto steps_by = [&](bool by_transfers) {
    RanksSteps steps;
    options.by_transfers = by_transfers;
    for (size_t rank = 0; rank < input.ranks.size(); ++rank) {
      steps.push_back(
          StepsOf(*drivers[rank].thread, input.ranks[rank].collectives, judged->names, options));
    }
    return steps;
  };
  RanksSteps steps = steps_by(false);
  judged->pairing = PairSteps(steps, input.names);
  if (TransfersOf(input) > 0) {
    RanksSteps others = steps_by(true);
    Pairing pairing = PairSteps(others, input.names);
    if (PairedOf(pairing) > PairedOf(judged->pairing)) {
      steps = std::move(others);
      judged->pairing = std::move(pairing);
    }
  }
  const bool any = std::any_of(steps.begin(), steps.end(),
                               [](const std::vector<Step>& one) { return !one.empty(); });
  if (!any) {
    Refuse(Refusal::kNoSteps,
           judged->collective_job
               ? "no step was seen: none of PyTorch's optimizers ended twice in the window with a "
                 "collective in between; record for longer (`syncline why --for 60s`), or the job "
                 "stands still (`syncline stacks`)"
               : "no step was seen: none of PyTorch's optimizers ended twice in the window; record "
                 "for longer, e.g. `syncline why --for 60s`",
           judged);
  } else if (judged->pairing.classes.empty()) {
    Refuse(
        Refusal::kRanksDisagree,
        "no step has the same collectives on all ranks: ranks that run different programs "
        "(pipelines, parameter servers), or belong to other process groups, are not explained yet",
        judged);
  } else {
    TakeSteps(steps, judged->pairing.classes[0], judged);
    TakeUnjudged(steps, judged);
    if (judged->steps() < kStepsMin) {
      Refuse(Refusal::kTooFewSteps,
             absl::StrCat("only ", judged->steps(), " steps of one class were recorded, and ",
                          kStepsMin, " are needed: syncline why --for ", WindowFor(*judged)),
             judged);
    }
  }
}

// The collectives of the judged steps must be Gloo's.
void CheckCollectives(const JobInput& input, Judged* judged) {
  for (size_t rank = 0; rank < input.ranks.size(); ++rank) {
    const std::vector<OwnInterval>& steps = judged->ranks[rank].steps;
    if (steps.empty()) continue;
    uint64_t all = 0;
    uint64_t without_work = 0;
    for (const CollectiveEntry& entry : input.ranks[rank].collectives) {
      if (entry.entered_ns < steps.front().begin_ns || entry.entered_ns >= steps.back().end_ns) {
        continue;
      }
      if (entry.transfer) continue;
      ++all;
      without_work += entry.left_ns.has_value() ? 0 : 1;
    }
    if (without_work * 2 > all) {
      Refuse(Refusal::kGpuJob,
             absl::StrCat("the collectives of ", RankName(input.ranks[rank]),
                          " show no work of Gloo: they run on a GPU (NCCL: start the job with "
                          "`syncline run --kineto`) or in a backend whose ends are not recorded, "
                          "which is not explained yet"),
             judged);
    }
  }
}

// Tids of threads that carry collectives out: Gloo's tasks are theirs.
std::vector<int32_t> WorkersOf(const RankInput& rank, const TaskNames& names) {
  std::vector<int32_t> tids;
  for (const ThreadInput& thread : rank.threads) {
    const bool works =
        std::any_of(thread.spans.begin(), thread.spans.end(),
                    [&](const TaskSpan& span) { return names.Is(span.name, Role::kTransfer); });
    if (works) tids.push_back(thread.tid);
  }
  return tids;
}

std::vector<OwnInterval> CollectionsOf(std::span<const TaskSpan> spans, const TaskNames& names) {
  std::vector<OwnInterval> collections;
  for (const TaskSpan& span : spans) {
    if (names.IsGarbageCollection(span)) collections.push_back({span.begin_ns, span.end_ns});
  }
  return collections;
}

std::vector<OwnInterval> IntervalsOf(std::span<const Wait> waits) {
  std::vector<OwnInterval> intervals;
  for (const Wait& wait : waits) intervals.push_back(wait.interval);
  return intervals;
}

// Where a critical path may enter or leave the rank's own work (path.h), or the rank may have seen
// that a collective was over (replay.h).
std::vector<int64_t> MarksOf(const RankInput& rank, std::span<const OwnInterval> waits,
                             std::vector<int64_t> marks) {
  for (const CollectiveEntry& entry : rank.collectives) {
    marks.push_back(entry.entered_ns);
    if (entry.left_ns.has_value()) marks.push_back(*entry.left_ns);
  }
  for (const OwnInterval& wait : waits) {
    marks.push_back(wait.begin_ns);
    marks.push_back(wait.end_ns);
  }
  return marks;
}

void AddOperators(std::span<const Piece> pieces, size_t rank, Judged* judged) {
  const auto add = [&](NameId name, size_t step, int64_t ns,
                       std::map<NameId, OperatorTime>* times) {
    OperatorTime& time = (*times)[name];
    time.step_ns.resize(judged->steps());
    time.rank_ns.resize(judged->ranks.size());
    time.step_ns[step] += ns;
    time.rank_ns[rank] += ns;
  };
  for (const Piece& piece : pieces) {
    if (piece.step < 0 || piece.part != Part::kCompute) continue;
    const auto step = static_cast<size_t>(piece.step);
    add(piece.leaf, step, piece.length_ns() - piece.taken_ns, &judged->operators.cut);
    add(piece.leaf, step, piece.length_ns(), &judged->operators.uncut);
  }
}

// By block of steps: of a thousand ranks the steps would be ten times as much to keep.
std::map<NameId, std::vector<int64_t>> OperatorBlocks(std::span<const Piece> pieces, size_t steps,
                                                      size_t names) {
  const size_t block = BlockOf(steps);
  std::vector<std::vector<int64_t>> times_ns(names);
  for (const Piece& piece : pieces) {
    if (piece.step < 0 || piece.part != Part::kCompute || piece.leaf >= names) continue;
    std::vector<int64_t>& of_name = times_ns[piece.leaf];
    if (of_name.empty()) of_name.resize((steps + block - 1) / block);
    of_name[static_cast<size_t>(piece.step) / block] += piece.length_ns() - piece.taken_ns;
  }
  std::map<NameId, std::vector<int64_t>> by_name;
  for (size_t name = 0; name < names; ++name) {
    if (!times_ns[name].empty()) by_name[static_cast<NameId>(name)] = std::move(times_ns[name]);
  }
  return by_name;
}

// A piece ends where a task does: it lies in one execution of a primitive, or in none.
void AddPrimitives(std::span<const Piece> pieces, std::span<const TaskSpan> spans,
                   JudgedRank* rank) {
  size_t next = 0;
  for (const Piece& piece : pieces) {
    if (piece.step < 0 || piece.part != Part::kCompute) continue;
    while (next < spans.size() &&
           (spans[next].shape == 0 || spans[next].end_ns <= piece.begin_ns)) {
      ++next;
    }
    if (next == spans.size()) return;
    const TaskSpan& span = spans[next];
    if (piece.begin_ns < span.begin_ns || piece.leaf != span.name) continue;
    std::vector<StepTime>& times = rank->primitives[{span.name, span.shape}];
    const auto step = static_cast<size_t>(piece.step);
    if (times.empty() || times.back().step != step) times.push_back({step, 0});
    times.back().ns += piece.length_ns() - piece.taken_ns;
  }
}

// The tasks of a rank's driver, unpacked, and its time by them. Each thread has them of one rank at
// a time, in the same memory: of all ranks it would be a hundred times what is made of it.
struct DriverTime {
  std::vector<TaskSpan> spans;
  std::vector<Segment> segments;
  std::vector<Piece> pieces;

  void Read(const Driver& driver, const TaskNames& names) {
    spans = driver.thread->spans.Unpack(std::move(spans));
    segments = SegmentsOf(spans, names, std::move(segments));
  }
  OwnInterval whole() const { return {segments.front().begin_ns, segments.back().end_ns}; }
};

// Where ranks wait, as all of them together show.
struct WaitSites {
  std::vector<std::vector<Silence>> silences;  // by rank
  std::set<Site> blocking;
  std::set<Site> rare;

  RankSilences Of(const JobInput& input, size_t rank) const {
    return {silences[rank], input.ranks[rank].collectives};
  }
};

struct Parts {
  const JobInput& input;
  const JudgeOptions& options;
  std::span<const Driver> drivers;
  std::vector<DriverTime> times;  // by thread
  int64_t total_ns = 0;           // of all drivers
};

WaitSites FindSites(Parts* parts, const TaskNames& names) {
  const JobInput& input = parts->input;
  const size_t ranks = input.ranks.size();
  WaitSites sites;
  sites.silences.resize(ranks);
  std::vector<int64_t> lengths_ns(ranks);
  InParallelByThread(ranks, parts->times.size(), [&](size_t i, size_t thread) {
    DriverTime& time = parts->times[thread];
    time.Read(parts->drivers[i], names);
    sites.silences[i] = SilencesOf(time.segments, input.ranks[i].collectives);
    lengths_ns[i] = time.whole().length_ns();
  });
  parts->total_ns = std::accumulate(lengths_ns.begin(), lengths_ns.end(), int64_t{0});
  std::vector<RankSilences> pooled;
  for (size_t i = 0; i < ranks; ++i) pooled.push_back(sites.Of(input, i));
  const bool all_said =
      !names.waits_unsaid() && std::all_of(pooled.begin(), pooled.end(), SaysWaits);
  sites.blocking = BlockingSites(pooled, parts->total_ns, all_said, &sites.rare);
  return sites;
}

void AddSamples(const RankInput& rank, const OwnInterval& within, const TaskNames& names,
                std::vector<Piece>* pieces, JudgedRank* of_rank) {
  RankSamples& samples = of_rank->samples;
  samples = SamplesOf(rank, of_rank->driver_tid, within, WorkersOf(rank, names));
  if (samples.measured()) {
    of_rank->sampled = SampledPart(of_rank->steps, samples.driver);
    if (of_rank->sampled < kSampledMin) samples = RankSamples{};
  }
  if (!samples.measured()) return;
  SetJudged(of_rank->steps, &samples.growths);
  // What was blocked first: where it was is known better.
  of_rank->sleep =
      CutBlocked({&rank, of_rank->driver_tid, &samples, of_rank->steps}, pieces, &of_rank->tables);
  of_rank->unplaced_ns = TakeAway(samples.growths, pieces, &of_rank->tables).judged_ns;
}

// Of one rank; `operators` guards Judged::operators, to which all add. Returns how long the rank
// waited for transfers.
int64_t FillRank(const Parts& parts, const WaitSites& sites, size_t i, std::mutex* operators,
                 DriverTime* memory, Judged* judged) {
  const RankInput& rank = parts.input.ranks[i];
  const JudgeOptions& options = parts.options;
  JudgedRank& of_rank = judged->ranks[i];
  DriverTime& time = *memory;
  time.Read(parts.drivers[i], judged->names);
  of_rank.driver_tid = parts.drivers[i].thread->tid;
  const RankSilences silences = sites.Of(parts.input, i);
  std::vector<Wait> found = WaitsOf(silences, sites.blocking, of_rank.driver_tid);
  const std::vector<OwnInterval> waits = IntervalsOf(found);
  int64_t transfers_ns = 0;
  for (const Wait& wait : found) {
    if (rank.collectives[wait.awaited].transfer) transfers_ns += wait.interval.length_ns();
  }
  const std::vector<OwnInterval> collections = CollectionsOf(time.spans, judged->names);
  if (options.stretches && !of_rank.unjudged.empty()) {
    time.pieces = PiecesOf({time.segments, waits, rank.holes, collections, of_rank.unjudged},
                           std::move(time.pieces));
    of_rank.unjudged_tables = TablesOf(time.pieces, of_rank.unjudged.size());
  }
  time.pieces = PiecesOf({time.segments, waits, rank.holes, collections, of_rank.steps},
                         std::move(time.pieces));
  std::vector<Piece>& pieces = time.pieces;
  of_rank.tables = TablesOf(pieces, of_rank.steps.size());
  of_rank.uncut = of_rank.tables;
  AddSamples(rank, time.whole(), judged->names, &pieces, &of_rank);
  if (options.stretches) {
    for (const TaskSpan& span : time.spans) {
      if (judged->names.Is(span.name, Role::kStep)) of_rank.optimizer_ns.push_back(span.begin_ns);
    }
    of_rank.stretches = StretchesOf(pieces, MarksOf(rank, waits, of_rank.optimizer_ns));
    of_rank.waits = std::move(found);
    of_rank.pending_ns = PendingNs(silences, sites.rare);
    of_rank.operators_ns = OperatorBlocks(pieces, of_rank.steps.size(), parts.input.names.size());
    for (const Silence& silence : silences.silences) {
      const bool may_wait = !silence.pending.empty() && !sites.blocking.contains(silence.site);
      if (!may_wait) continue;
      const int64_t entered_ns = rank.collectives[silence.pending.front()].entered_ns;
      const OwnInterval pending = {std::max(silence.begin_ns, entered_ns), silence.end_ns};
      if (pending.length_ns() >= kLongSilenceNs) of_rank.perhaps_waits.push_back(pending);
    }
  }
  if (options.operators) {
    const std::lock_guard lock(*operators);
    AddOperators(pieces, i, judged);
    of_rank.unblocked = of_rank.tables;
    PutBackBlocked(pieces, &of_rank.unblocked);
  }
  judged->places[i] = CountPlaces(rank, of_rank.driver_tid, pieces);
  of_rank.work = WorkOf(time.spans, of_rank.steps, judged->names);
  AddPrimitives(pieces, time.spans, &of_rank);
  return transfers_ns;
}

void FillParts(Parts parts, Judged* judged) {
  const size_t ranks = parts.input.ranks.size();
  parts.times.resize(std::min(ranks, std::max<size_t>(1, parts.options.threads)));
  const WaitSites sites = FindSites(&parts, judged->names);
  judged->places.resize(ranks);
  std::vector<int64_t> transfers_ns(ranks);
  std::mutex operators;
  InParallelByThread(ranks, parts.times.size(), [&](size_t i, size_t thread) {
    transfers_ns[i] = FillRank(parts, sites, i, &operators, &parts.times[thread], judged);
  });
  const int64_t all_ns = std::accumulate(transfers_ns.begin(), transfers_ns.end(), int64_t{0});
  judged->transfers =
      parts.input.waits_unknown || (all_ns * kTransfersDivisor >= parts.total_ns && all_ns > 0);
}

}  // namespace

int64_t OwnWorkOf(const PartTable& table) {
  return std::accumulate(table.begin(), table.end(), int64_t{0}) -
         table[static_cast<size_t>(Part::kWaitAndTransfer)] -
         table[static_cast<size_t>(Part::kNotCovered)];
}

int64_t JudgedRank::OwnWork(size_t step) const { return OwnWorkOf(tables[step]); }

Judged Judge(const JobInput& input, const JudgeOptions& options) {
  Judged judged{.names = TaskNames(input.names)};
  for (const RankInput& rank : input.ranks) judged.ranks.emplace_back().input = &rank;
  CheckAccelerators(input, &judged);
  CheckEnds(input, &judged);
  const std::vector<Driver> drivers = FindDrivers(input, &judged);
  if (judged.refusal != Refusal::kNone) return judged;
  PairUp(input, drivers, &judged);
  if (judged.pairing.classes.empty()) return judged;
  CheckCoverage(input, &judged);
  if (judged.collective_job) CheckCollectives(input, &judged);
  if (judged.refusal == Refusal::kNone) FillParts({input, options, drivers, {}}, &judged);
  return judged;
}

}  // namespace syncline::analysis::why
