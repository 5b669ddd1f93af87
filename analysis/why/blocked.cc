// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/blocked.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "analysis/why/scheduled_taker.h"
#include "analysis/why/steal.h"

namespace syncline::analysis::why {
namespace {

using evidence::Pause;
using evidence::Turn;

constexpr double kNormal95 = 1.96;    // of the normal distribution: the middle 95 %
constexpr uint64_t kBlockedMin = 10;  // samples that find it blocked: fewer say little
constexpr double kKnownShare = 0.9;   // less of the steps, and a trace is not used

// The piece at that time; nullptr: none.
const Piece* PieceAt(std::span<const Piece> pieces, int64_t at_ns) {
  const auto after =
      std::upper_bound(pieces.begin(), pieces.end(), at_ns,
                       [](int64_t at, const Piece& piece) { return at < piece.begin_ns; });
  if (after == pieces.begin() || (after - 1)->end_ns <= at_ns) return nullptr;
  return &*(after - 1);
}

// Calls back with the index of each piece of own work that overlaps [begin, end), and by how much.
template <class Take>
void ForEachOwn(std::span<const Piece> pieces, int64_t begin_ns, int64_t end_ns, Take take) {
  auto piece = std::partition_point(pieces.begin(), pieces.end(),
                                    [&](const Piece& one) { return one.end_ns <= begin_ns; });
  for (; piece != pieces.end() && piece->begin_ns < end_ns; ++piece) {
    const int64_t inside_ns = std::min(piece->end_ns, end_ns) - std::max(piece->begin_ns, begin_ns);
    if (piece->own_work() && inside_ns > 0) {
      take(static_cast<size_t>(piece - pieces.begin()), inside_ns);
    }
  }
}

// ---- by the scheduler's trace

// Turns of the driver, if they cover its steps.
struct Turns {
  std::vector<const Turn*> all;
  int64_t unknown_ns = 0;  // of the time of the steps
};

Turns TurnsOf(const BlockedInput& input) {
  Turns turns{DriverTurns(*input.rank, input.driver_tid), 0};
  int64_t known_ns = 0;
  for (const Turn* const turn : turns.all) {
    const bool paused = turn->pause != Pause::kUnknown;
    const int64_t from_ns = paused ? turn->from_ns() : turn->ready_from_ns();
    const int64_t begin_ns = std::max(from_ns, input.steps.front().begin_ns);
    const int64_t end_ns = std::min(turn->until_ns, input.steps.back().end_ns);
    known_ns += std::max<int64_t>(0, end_ns - begin_ns);
  }
  const int64_t all_ns = input.steps.back().end_ns - input.steps.front().begin_ns;
  turns.unknown_ns = std::max<int64_t>(0, all_ns - known_ns);
  if (static_cast<double>(known_ns) < kKnownShare * static_cast<double>(all_ns)) turns.all.clear();
  return turns;
}

// Of a step.
int64_t SleptIn(const Turns& turns, std::span<const Piece> pieces, size_t steps) {
  int64_t slept_ns = 0;
  for (const Turn* const turn : turns.all) {
    if (turn->pause != Pause::kSlept && turn->pause != Pause::kUninterruptible) continue;
    ForEachOwn(pieces, turn->from_ns(), turn->ready_from_ns(), [&](size_t i, int64_t inside_ns) {
      if (pieces[i].step >= 0) slept_ns += inside_ns;
    });
  }
  return slept_ns / static_cast<int64_t>(steps);
}

void CutTurns(std::span<const Turn* const> turns, std::vector<Piece>* pieces,
              std::vector<PartTable>* tables) {
  for (const Turn* const turn : turns) {
    if (turn->pause != Pause::kUninterruptible) continue;
    ForEachOwn(*pieces, turn->from_ns(), turn->ready_from_ns(), [&](size_t i, int64_t inside_ns) {
      Piece& piece = (*pieces)[i];
      Cut(&piece, std::min(inside_ns, piece.length_ns() - piece.taken_ns), Part::kBlocked, tables);
    });
  }
}

// ---- by samples

// By a signal or a debugger.
bool IsStopped(char state) { return state == 'T' || state == 't'; }

// How often samples in the judged steps find the driver so, by part.
struct Found {
  uint64_t own = 0;     // in own work
  uint64_t asleep = 0;  // of that; blocked or not
  uint64_t blocked = 0;
  std::array<uint64_t, kParts> looked_at{};
  std::array<uint64_t, kParts> asleep_in{};
  std::array<uint64_t, kParts> slept_in{};  // of that: not stopped
  std::array<uint64_t, kParts> blocked_in{};

  double Rate(const std::array<uint64_t, kParts>& found, Part part) const {
    const auto at = static_cast<size_t>(part);
    if (looked_at[at] == 0) return 0;
    return static_cast<double>(found[at]) / static_cast<double>(looked_at[at]);
  }
  double Blocked(Part part) const { return Rate(blocked_in, part); }
  double Asleep(Part part) const { return Rate(asleep_in, part); }
  // Of a step's own work, by how often it was found so.
  double TimeNs(const std::array<uint64_t, kParts>& found, std::span<const Piece> pieces,
                size_t steps) const {
    double time_ns = 0;
    for (const Piece& piece : pieces) {
      if (piece.step < 0 || !piece.own_work()) continue;
      time_ns += Rate(found, piece.part) * static_cast<double>(piece.length_ns());
    }
    return time_ns / static_cast<double>(steps);
  }
};

Found FoundIn(std::span<const Reading> readings, std::span<const Piece> pieces) {
  Found found;
  for (const Reading& reading : readings) {
    const Piece* const piece = reading.state == 0 ? nullptr : PieceAt(pieces, reading.at_ns);
    if (piece == nullptr || piece->step < 0) continue;
    const auto part = static_cast<size_t>(piece->part);
    // Stopped, too: all but running and ready to.
    const uint64_t asleep = reading.state != kRunningState ? 1 : 0;
    const uint64_t blocked = reading.state == kBlockedState ? 1 : 0;
    ++found.looked_at[part];
    found.asleep_in[part] += asleep;
    found.slept_in[part] += IsStopped(reading.state) ? 0 : asleep;
    found.blocked_in[part] += blocked;
    if (!piece->own_work()) continue;
    ++found.own;
    found.asleep += asleep;
    found.blocked += blocked;
  }
  return found;
}

// Own work between two readings, and how much of it the driver slept: neither ran nor was ready to.
struct Slept {
  OwnInterval interval;
  double asleep_ns = 0;  // at first what counters leave: that, and what a hypervisor took
  double judged = 0;     // of the interval, the part in judged steps
  Stolen stolen;         // of the interval
};

// Between the readings, in order.
std::vector<Slept> LeftOf(const RankSamples& samples, const Found& found,
                          std::span<const Piece> pieces, const CpuSteal& steal) {
  std::vector<Slept> left;
  for (size_t i = 1; i < samples.driver.size(); ++i) {
    const Reading& before = samples.driver[i - 1];
    const Reading& now = samples.driver[i];
    Slept one{{before.at_ns, now.at_ns}, 0, samples.growths[i - 1].judged, {}};
    int64_t own_ns = 0;
    ForEachOwn(pieces, before.at_ns, now.at_ns,
               [&](size_t, int64_t inside_ns) { own_ns += inside_ns; });
    // A driver also runs a little while it waits for others.
    const double in_waits_ns = (1 - found.Asleep(Part::kWaitAndTransfer)) *
                               static_cast<double>(one.interval.length_ns() - own_ns);
    const int64_t ran_ns = now.on_cpu_ns - before.on_cpu_ns;
    const int64_t queued_ns = now.run_queue_ns - before.run_queue_ns;
    one.asleep_ns =
        static_cast<double>(own_ns - ran_ns - queued_ns) +
        (found.looked_at[static_cast<size_t>(Part::kWaitAndTransfer)] > 0 ? in_waits_ns : 0);
    if (steal.known()) {
      one.stolen = {
          steal.LostIn(one.interval, static_cast<double>(ran_ns), static_cast<double>(queued_ns)),
          steal.MostIn(one.interval)};
    }
    left.push_back(one);
  }
  return left;
}

// `found_ns`: how long it slept in all judged steps, by how often samples find it so; nullopt: they
// do not tell.
void TakeOffStolen(std::optional<double> found_ns, std::vector<Slept>* slept) {
  double left_ns = 0;
  Stolen stolen;
  for (const Slept& one : *slept) {
    left_ns += one.asleep_ns * one.judged;
    stolen.likely_ns += one.stolen.likely_ns * one.judged;
    stolen.most_ns += one.stolen.most_ns * one.judged;
  }
  if (stolen.most_ns <= 0) return;
  const double taken_ns = std::max(0.0, left_ns) - SleptOf(left_ns, stolen, found_ns);
  for (Slept& one : *slept) one.asleep_ns -= one.stolen.most_ns * taken_ns / stolen.most_ns;
}

// Time in which it was ready is booked when it runs again, and looks like sleep until then: an
// interval with less than none is one with that before.
std::vector<Slept> JoinedOf(std::span<const Slept> intervals) {
  std::vector<Slept> slept;
  for (const Slept& one : intervals) {
    slept.push_back(one);
    while (slept.size() > 1 && slept.back().asleep_ns < 0) {
      const Slept last = slept.back();
      slept.pop_back();
      Slept& joined = slept.back();
      const auto length_ns = static_cast<double>(joined.interval.length_ns());
      const auto more_ns = static_cast<double>(last.interval.length_ns());
      joined.judged = (joined.judged * length_ns + last.judged * more_ns) / (length_ns + more_ns);
      joined.interval.end_ns = last.interval.end_ns;
      joined.asleep_ns += last.asleep_ns;
    }
  }
  return slept;
}

// Of an interval's sleep the part in which it was blocked: as samples find it in the parts of the
// step of which the interval is made.
void CutInterval(const Slept& slept, const Found& found, std::vector<Piece>* pieces,
                 std::vector<PartTable>* tables) {
  double asleep = 0;
  double blocked = 0;
  const auto weight = [&](double rate, int64_t ns) { return rate * static_cast<double>(ns); };
  ForEachOwn(*pieces, slept.interval.begin_ns, slept.interval.end_ns, [&](size_t i, int64_t ns) {
    asleep += weight(found.Asleep((*pieces)[i].part), ns);
    blocked += weight(found.Blocked((*pieces)[i].part), ns);
  });
  if (slept.asleep_ns <= 0 || blocked <= 0) return;
  const double blocked_ns = slept.asleep_ns * blocked / asleep;
  ForEachOwn(*pieces, slept.interval.begin_ns, slept.interval.end_ns, [&](size_t i, int64_t ns) {
    Piece& piece = (*pieces)[i];
    const double part = weight(found.Blocked(piece.part), ns) / blocked;
    const auto wanted_ns = static_cast<int64_t>(part * blocked_ns);
    Cut(&piece, std::min({wanted_ns, ns, piece.length_ns() - piece.taken_ns}), Part::kBlocked,
        tables);
  });
}

// Wilson's interval of the share of sleep in which the driver was blocked.
std::pair<double, double> ShareInterval(const Found& found) {
  if (found.asleep == 0) return {0, 1};
  const auto n = static_cast<double>(found.asleep);
  const double share = static_cast<double>(found.blocked) / n;
  const double z2 = kNormal95 * kNormal95;
  const double middle = share + z2 / (2 * n);
  const double half = kNormal95 * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n));
  return {std::max(0.0, (middle - half) / (1 + z2 / n)),
          std::min(1.0, (middle + half) / (1 + z2 / n))};
}

int64_t BlockedIn(std::span<const PartTable> tables) {
  int64_t sum_ns = 0;
  for (const PartTable& table : tables) sum_ns += table[static_cast<size_t>(Part::kBlocked)];
  return sum_ns;
}

// What samples leave open. Sleep is what counters leave, and may be other time that no counter has
// (a hypervisor's), or hide behind time on a CPU within waits: so how often it is found blocked,
// without the counters, has to be within the interval, too.
void SetOpen(const Found& found, double asleep_ns, std::span<const Piece> pieces,
             std::span<const PartTable> tables, BlockedSleep* sleep) {
  const auto steps = static_cast<double>(tables.size());
  const double direct_ns = found.TimeNs(found.blocked_in, pieces, tables.size());
  const double cut_ns = static_cast<double>(BlockedIn(tables)) / steps;
  const auto [least, most] = ShareInterval(found);
  const double share = found.asleep == 0
                           ? 0
                           : static_cast<double>(found.blocked) / static_cast<double>(found.asleep);
  const double noise =
      found.blocked == 0 ? 0 : kNormal95 / std::sqrt(static_cast<double>(found.blocked));
  const double lo_ns =
      std::min(cut_ns - (share - least) * asleep_ns, direct_ns * std::max(0.0, 1 - noise));
  const double hi_ns = std::max(cut_ns + (most - share) * asleep_ns, direct_ns * (1 + noise));
  if (BlockedIn(tables) == 0) sleep->uncut_ns = static_cast<int64_t>(direct_ns);
  sleep->less_ns = static_cast<int64_t>(cut_ns - std::max(0.0, std::min(lo_ns, cut_ns)));
  sleep->more_ns = static_cast<int64_t>(std::max(hi_ns, cut_ns) - cut_ns);
}

void BySamples(const BlockedInput& input, std::vector<Piece>* pieces,
               std::vector<PartTable>* tables, BlockedSleep* sleep) {
  const Found found = FoundIn(input.samples->driver, *pieces);
  sleep->asleep = found.asleep;
  sleep->blocked = found.blocked;
  std::vector<Slept> intervals = LeftOf(*input.samples, found, *pieces, CpuSteal(*input.rank));
  std::optional<double> slept_ns;  // of all steps
  if (found.own > 0) {
    sleep->slept_ns =
        static_cast<int64_t>(found.TimeNs(found.slept_in, *pieces, input.steps.size()));
    slept_ns = static_cast<double>(*sleep->slept_ns) * static_cast<double>(input.steps.size());
  }
  TakeOffStolen(slept_ns, &intervals);
  double asleep_ns = 0;  // of a step
  for (const Slept& slept : JoinedOf(intervals)) {
    asleep_ns +=
        std::max(0.0, slept.asleep_ns) * slept.judged / static_cast<double>(input.steps.size());
    // So few may be chance: that time stays where it is.
    if (found.blocked >= kBlockedMin) CutInterval(slept, found, pieces, tables);
  }
  SetOpen(found, asleep_ns, *pieces, *tables, sleep);
}

// ---- what came with it

std::optional<Part> WhereOf(std::span<const Piece> pieces) {
  PartTable from{};
  int64_t all_ns = 0;
  for (const Piece& piece : pieces) {
    if (piece.step < 0) continue;
    from[static_cast<size_t>(piece.part)] += piece.blocked_ns;
    all_ns += piece.blocked_ns;
  }
  const auto most = std::max_element(from.begin(), from.end());
  if (all_ns == 0 || *most * 2 < all_ns) return std::nullopt;
  return static_cast<Part>(most - from.begin());
}

std::optional<double> FaultsOf(const RankSamples& samples, size_t steps) {
  double faults = 0;
  for (size_t i = 1; i < samples.driver.size(); ++i) {
    const Reading& before = samples.driver[i - 1];
    const Reading& now = samples.driver[i];
    if (before.major_faults < 0 || now.major_faults < before.major_faults) return std::nullopt;
    faults +=
        samples.growths[i - 1].judged * static_cast<double>(now.major_faults - before.major_faults);
  }
  return faults / static_cast<double>(steps);
}

// From the first step to the last one: what is counted of a process is seldom counted.
OwnInterval Around(std::span<const OwnInterval> steps) {
  return {steps.front().begin_ns, steps.back().end_ns};
}

// A step, of what is counted over a time.
double PerStep(std::span<const OwnInterval> steps, int64_t count, int64_t time_ns) {
  int64_t steps_ns = 0;
  for (const OwnInterval& step : steps) steps_ns += step.length_ns();
  return static_cast<double>(count) / static_cast<double>(time_ns) * static_cast<double>(steps_ns) /
         static_cast<double>(steps.size());
}

std::optional<double> ReadBytesOf(const BlockedInput& input) {
  const auto read =
      BytesReadOf(*input.rank->evidence, *input.rank->evidence_process, Around(input.steps));
  if (!read.has_value()) return std::nullopt;
  return PerStep(input.steps, read->bytes, read->time_ns);
}

}  // namespace

std::optional<BlockedSleep> CutBlocked(const BlockedInput& input, std::vector<Piece>* pieces,
                                       std::vector<PartTable>* tables) {
  if (input.steps.empty() || !input.samples->measured()) return std::nullopt;
  BlockedSleep sleep;
  const Turns turns = TurnsOf(input);
  if (!turns.all.empty()) {
    sleep.by_scheduler = true;
    sleep.slept_ns = SleptIn(turns, *pieces, tables->size());
    CutTurns(turns.all, pieces, tables);
    sleep.more_ns = turns.unknown_ns / static_cast<int64_t>(tables->size());
  } else if (StatesKnown(input.samples->driver)) {
    BySamples(input, pieces, tables, &sleep);
  } else {
    return std::nullopt;
  }
  sleep.where = WhereOf(*pieces);
  sleep.faults = FaultsOf(*input.samples, input.steps.size());
  sleep.read_bytes = ReadBytesOf(input);
  return sleep;
}

std::optional<FullMemory> FullMemoryOf(const RankInput& rank, std::span<const OwnInterval> steps) {
  if (rank.evidence == nullptr || !rank.evidence_process.has_value() || steps.empty()) {
    return std::nullopt;
  }
  auto group = FullGroupOf(*rank.evidence, *rank.evidence_process, Around(steps));
  if (!group.has_value()) return std::nullopt;
  const double per_step = PerStep(steps, group->times, group->time_ns);
  return FullMemory{*std::move(group), per_step};
}

void PutBackBlocked(std::span<const Piece> pieces, std::vector<PartTable>* tables) {
  for (const Piece& piece : pieces) {
    if (piece.step < 0) continue;
    PartTable& table = (*tables)[static_cast<size_t>(piece.step)];
    table[static_cast<size_t>(piece.part)] += piece.blocked_ns;
    table[static_cast<size_t>(Part::kBlocked)] -= piece.blocked_ns;
  }
}

}  // namespace syncline::analysis::why
