// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/blocked.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace syncline::analysis::why {
namespace {

using evidence::Pause;
using evidence::Turn;

constexpr double kNormal95 = 1.96;   // of the normal distribution: the middle 95 %
constexpr double kKnownShare = 0.9;  // less of the samples or of the steps, and it is not known

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
std::vector<const Turn*> TurnsOf(const BlockedInput& input) {
  std::vector<const Turn*> turns;
  if (input.rank->scheduling == nullptr) return turns;
  const evidence::Scheduling& scheduling = *input.rank->scheduling;
  double known_ns = 0;
  for (const Turn& turn : scheduling.turns) {
    const evidence::ScheduledThread& thread = scheduling.threads[turn.thread];
    if (thread.process != input.rank->scheduling_process) continue;
    if (thread.shown_tid() != input.driver_tid) continue;
    turns.push_back(&turn);
    const int64_t from_ns = turn.pause == Pause::kUnknown ? turn.ready_from_ns() : turn.from_ns();
    const int64_t begin_ns = std::max(from_ns, input.steps.front().begin_ns);
    const int64_t end_ns = std::min(turn.until_ns, input.steps.back().end_ns);
    known_ns += static_cast<double>(std::max<int64_t>(0, end_ns - begin_ns));
  }
  const int64_t all_ns = input.steps.back().end_ns - input.steps.front().begin_ns;
  if (known_ns < kKnownShare * static_cast<double>(all_ns)) turns.clear();
  return turns;
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

// How often samples find the driver in own work, by part.
struct Found {
  uint64_t readings = 0;  // of which the state is known, in own work or not
  uint64_t asleep = 0;    // in own work; those that are blocked among them
  uint64_t blocked = 0;
  std::array<uint64_t, kParts> looked_at{};
  std::array<uint64_t, kParts> blocked_in{};

  double Rate(Part part) const {
    const auto at = static_cast<size_t>(part);
    return looked_at[at] == 0
               ? 0
               : static_cast<double>(blocked_in[at]) / static_cast<double>(looked_at[at]);
  }
};

Found FoundIn(std::span<const Reading> readings, std::span<const Piece> pieces) {
  Found found;
  for (const Reading& reading : readings) {
    if (reading.state == 0) continue;
    ++found.readings;
    const Piece* const piece = PieceAt(pieces, reading.at_ns);
    if (piece == nullptr || !piece->own_work()) continue;
    const bool blocked = reading.state == kBlockedState;
    ++found.looked_at[static_cast<size_t>(piece->part)];
    found.blocked_in[static_cast<size_t>(piece->part)] += blocked ? 1 : 0;
    found.blocked += blocked ? 1 : 0;
    found.asleep += blocked || reading.state == kSleepingState ? 1 : 0;
  }
  return found;
}

// Wilson's interval of a share, in parts of the share.
void SetInterval(const Found& found, BlockedSleep* sleep) {
  if (found.blocked == 0) return;
  const auto n = static_cast<double>(found.asleep);
  const double share = static_cast<double>(found.blocked) / n;
  const double z2 = kNormal95 * kNormal95;
  const double middle = share + z2 / (2 * n);
  const double half = kNormal95 * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n));
  sleep->least = std::max(0.0, (middle - half) / (1 + z2 / n) / share);
  sleep->most = std::min(1.0, (middle + half) / (1 + z2 / n)) / share;
}

void CutSamples(std::span<const Reading> readings, const Found& found, std::vector<Piece>* pieces,
                std::vector<PartTable>* tables) {
  if (found.blocked == 0) return;
  const double share = static_cast<double>(found.blocked) / static_cast<double>(found.asleep);
  for (size_t i = 1; i < readings.size(); ++i) {
    const Reading& before = readings[i - 1];
    const Reading& now = readings[i];
    int64_t own_ns = 0;
    double weights = 0;
    ForEachOwn(*pieces, before.at_ns, now.at_ns, [&](size_t index, int64_t inside_ns) {
      own_ns += inside_ns;
      weights += found.Rate((*pieces)[index].part) * static_cast<double>(inside_ns);
    });
    const int64_t asleep_ns =
        own_ns - (now.on_cpu_ns - before.on_cpu_ns) - (now.run_queue_ns - before.run_queue_ns);
    if (asleep_ns <= 0 || weights <= 0) continue;
    const double blocked_ns = share * static_cast<double>(asleep_ns);
    ForEachOwn(*pieces, before.at_ns, now.at_ns, [&](size_t index, int64_t inside_ns) {
      Piece& piece = (*pieces)[index];
      const double part = found.Rate(piece.part) * static_cast<double>(inside_ns) / weights;
      const auto ns = static_cast<int64_t>(part * blocked_ns);
      Cut(&piece, std::min({ns, inside_ns, piece.length_ns() - piece.taken_ns}), Part::kBlocked,
          tables);
    });
  }
}

// ---- what came with it

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

std::optional<double> ReadBytesOf(const BlockedInput& input) {
  const auto read = BytesReadOf(*input.rank->evidence, *input.rank->evidence_process,
                                {input.steps.front().begin_ns, input.steps.back().end_ns});
  if (!read.has_value()) return std::nullopt;
  int64_t steps_ns = 0;
  for (const OwnInterval& step : input.steps) steps_ns += step.length_ns();
  return static_cast<double>(read->bytes) / static_cast<double>(read->time_ns) *
         static_cast<double>(steps_ns) / static_cast<double>(input.steps.size());
}

}  // namespace

std::optional<BlockedSleep> CutBlocked(const BlockedInput& input, std::vector<Piece>* pieces,
                                       std::vector<PartTable>* tables) {
  if (input.steps.empty() || !input.samples->measured()) return std::nullopt;
  BlockedSleep sleep;
  const std::vector<const Turn*> turns = TurnsOf(input);
  if (!turns.empty()) {
    sleep.by_scheduler = true;
    CutTurns(turns, pieces, tables);
  } else {
    const std::vector<Reading>& readings = input.samples->driver;
    const Found found = FoundIn(readings, *pieces);
    if (static_cast<double>(found.readings) < kKnownShare * static_cast<double>(readings.size())) {
      return std::nullopt;
    }
    sleep.asleep = found.asleep;
    sleep.blocked = found.blocked;
    SetInterval(found, &sleep);
    CutSamples(readings, found, pieces, tables);
  }
  sleep.faults = FaultsOf(*input.samples, input.steps.size());
  sleep.read_bytes = ReadBytesOf(input);
  return sleep;
}

}  // namespace syncline::analysis::why
