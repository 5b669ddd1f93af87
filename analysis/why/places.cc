// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/places.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/why/task_names.h"

namespace syncline::analysis::why {
namespace {

constexpr double kErrors = 3;          // standard errors
constexpr uint64_t kSamplesLeast = 8;  // in one place
constexpr double kLarger = 1.1;
constexpr double kMostOfIt = 0.6;         // of what the place with the largest excess has
constexpr double kAsCertain = 0.95;       // of the most certain one's standard errors
constexpr uint64_t kAlone = 20;           // the others have fewer than one sample in so many
constexpr uint64_t kTrainingDivisor = 4;  // of all samples beside host code
constexpr uint64_t kTogetherLeast = 20;   // of all ranks, in host code
constexpr uint64_t kTogetherDivisor = 4;  // of them in one place
constexpr uint64_t kDuringLeast = 4;      // samples
constexpr uint64_t kBesideDivisor = 4;    // in as large a part of the other samples, at most

// Of one place.
struct Stood {
  uint64_t samples = 0;
  uint64_t depth = 0;  // of all samples together: how many of the program's functions it called
  std::map<size_t, uint64_t> by_step;
  std::map<std::string_view, uint64_t> within;

  void Add(size_t step) {
    ++samples;
    ++by_step[step];
  }
  double variance() const {
    double sum = 0;
    for (const auto& [step, count] : by_step) {
      sum += static_cast<double>(count) * static_cast<double>(count);
    }
    return sum;
  }
  double mean_depth() const { return static_cast<double>(depth) / static_cast<double>(samples); }
};

// Of one rank, or of several.
struct Places {
  std::map<std::string_view, Stood> by_name;  // functions and their lines
  Stood kept;                                 // the interpreter's lock
  uint64_t untold = 0;                        // these, and others that do not say where
  uint64_t host_samples = 0;
};

bool IsLine(std::string_view place) { return place.ends_with(')'); }

// "f (a.py:3)" -> "f (a.py"; empty: no frame of Python's.
std::string_view FunctionOf(std::string_view place) {
  const size_t line = place.rfind(':');
  return !IsLine(place) || line == std::string_view::npos ? std::string_view()
                                                          : place.substr(0, line);
}

std::string Named(std::string_view place) {
  return IsLine(place) ? std::string(place) : std::string(place) + ")";
}

// `innermost_only`: of the program's frames, not its callers.
void Add(const HostSample& sample, std::span<const std::string> names, bool innermost_only,
         Places* places) {
  ++places->host_samples;
  std::optional<StandsIn> stands = StandsInOf(names[sample.name]);
  if (!stands.has_value()) {  // a name that was replaced
    ++places->untold;
    return;
  }
  if (stands->keeps_lock) places->kept.Add(sample.step);
  if (FunctionOf(stands->innermost).empty()) {
    ++places->untold;
    return;
  }
  if (stands->own.empty()) stands->own.push_back(stands->innermost);
  if (innermost_only) stands->own.resize(1);
  const std::string_view ran = FunctionOf(stands->innermost);
  std::vector<std::string_view> counted;  // what calls itself is there more than once
  for (size_t depth = 0; depth < stands->own.size(); ++depth) {
    const std::string_view function = FunctionOf(stands->own[depth]);
    if (function.empty()) continue;
    for (const std::string_view place : {function, stands->own[depth]}) {
      if (std::find(counted.begin(), counted.end(), place) != counted.end()) continue;
      counted.push_back(place);
      Stood& stood = places->by_name[place];
      stood.Add(sample.step);
      stood.depth += depth;
      if (ran != function) ++stood.within[ran];
    }
  }
}

Places PlacesOf(const PlaceCounts& counts, std::span<const std::string> names) {
  Places places;
  for (const HostSample& sample : counts.host) Add(sample, names, false, &places);
  return places;
}

// Places in which ranks are while they compute and wait, too.
std::set<std::string_view> TrainingOf(std::span<const PlaceCounts> ranks,
                                      std::span<const std::string> names) {
  Places beside;
  for (const PlaceCounts& rank : ranks) {
    for (const NameId name : rank.others) Add({0, name}, names, false, &beside);
  }
  std::set<std::string_view> training;
  for (const auto& [place, stood] : beside.by_name) {
    if (stood.samples * kTrainingDivisor >= beside.host_samples) training.insert(place);
  }
  return training;
}

StoodIn Told(std::string_view place, const Stood& stood, const Places& places) {
  StoodIn told;
  told.place = place.empty() ? "" : Named(place);
  told.samples = stood.samples;
  told.host_samples = places.host_samples;
  told.kept_samples = places.kept.samples;
  for (const auto& [function, samples] : stood.within) {
    if (samples * 2 > stood.samples) told.within = Named(function);
  }
  return told;
}

// What a rank has of one place beyond the median of the others.
struct Excess {
  std::string_view place;
  const Stood* stood = nullptr;
  uint64_t others = 0;       // of the one in the middle, there
  uint64_t others_host = 0;  // of that one, in host code
  double more = 0;           // samples, of as many as this rank has in all
  double errors = 0;         // in standard errors

  bool certain() const { return errors > kErrors && stood->samples >= kSamplesLeast; }
  // The others are hardly ever there.
  bool alone() const { return others * kAlone <= stood->samples; }
  // It has a larger part of host code there than the others: else it is only slower in all of it.
  bool special(uint64_t host_samples) const {
    return static_cast<double>(stood->samples * others_host) >
           kLarger * static_cast<double>(others * host_samples);
  }
};

// Another rank's samples in one place.
struct Other {
  uint64_t samples = 0;
  double most = 0;  // as many as this rank would have, with those that do not tell where
  double variance = 0;
  uint64_t host_samples = 0;
};

// `stood`: nullptr: it was never there. `untold`: its other samples that may be there.
Other OtherOf(const Stood* stood, uint64_t untold, uint64_t host_samples, double scale) {
  Other other;
  other.host_samples = host_samples;
  if (stood != nullptr) {
    other.samples = stood->samples;
    other.variance = stood->variance() * scale * scale;
  }
  other.most = static_cast<double>(untold + other.samples) * scale;
  return other;
}

Excess ExcessOf(std::string_view place, const Stood& stood, std::vector<Other> others) {
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
  std::nth_element(others.begin(), middle, others.end(),
                   [](const Other& a, const Other& b) { return a.most < b.most; });
  Excess excess{place, &stood, middle->samples, middle->host_samples};
  excess.more = static_cast<double>(stood.samples) - middle->most;
  const double variance = stood.variance() + middle->variance;
  if (excess.more > 0) excess.errors = excess.more / std::sqrt(variance);
  return excess;
}

// Of the places that have most of the excess, those where the others are not, if there are any, and
// of these those that are about as certain as any: the one that is called by the others, and of a
// function and its line the line.
const Excess* Closest(const std::vector<Excess>& found) {
  double most = 0;
  for (const Excess& one : found) most = std::max(most, one.more);
  const auto has_most = [&](const Excess& one) { return one.more >= most * kMostOfIt; };
  const bool any_alone = std::any_of(
      found.begin(), found.end(), [&](const Excess& one) { return has_most(one) && one.alone(); });
  const auto counts = [&](const Excess& one) {
    return has_most(one) && (one.alone() || !any_alone);
  };
  double errors = 0;
  for (const Excess& one : found) {
    if (counts(one)) errors = std::max(errors, one.errors);
  }
  const Excess* closest = nullptr;
  const auto comes_before = [](const Excess& a, const Excess& b) {
    return std::tuple(-a.stood->mean_depth(), IsLine(a.place), a.more) >
           std::tuple(-b.stood->mean_depth(), IsLine(b.place), b.more);
  };
  for (const Excess& one : found) {
    if (!counts(one) || one.errors < errors * kAsCertain) continue;
    if (closest == nullptr || comes_before(one, *closest)) closest = &one;
  }
  return closest;
}

}  // namespace

PlaceCounts CountPlaces(const RankInput& rank, int32_t driver_tid, std::span<const Piece> pieces) {
  PlaceCounts counts;
  auto piece = pieces.begin();
  for (const PlaceSample& sample : rank.places) {
    if (sample.tid != driver_tid) continue;
    while (piece != pieces.end() && piece->end_ns <= sample.at_ns) ++piece;
    if (piece == pieces.end()) break;
    if (piece->step < 0 || sample.at_ns < piece->begin_ns) continue;
    ++counts.samples;
    if (piece->part != Part::kHostCode) {
      counts.others.push_back(sample.name);
      continue;
    }
    counts.host.push_back({static_cast<size_t>(piece->step), sample.name});
  }
  return counts;
}

struct StoodPlaces::Parsed {
  std::vector<Places> ranks;
  std::set<std::string_view> training;
};

StoodPlaces::StoodPlaces(std::span<const PlaceCounts> ranks, std::span<const std::string> names)
    : ranks_(ranks) {
  Parsed parsed;
  for (const PlaceCounts& rank : ranks) parsed.ranks.push_back(PlacesOf(rank, names));
  parsed.training = TrainingOf(ranks, names);
  parsed_ = std::make_unique<const Parsed>(std::move(parsed));
}

StoodPlaces::~StoodPlaces() = default;

std::optional<StoodIn> StoodPlaces::Of(size_t rank, double least_per_sample) const {
  const auto own_samples = static_cast<double>(ranks_[rank].samples);
  const Places& own = parsed_->ranks[rank];
  std::vector<std::pair<const Places*, double>> others;  // and what makes their counts comparable
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const uint64_t samples = ranks_[i].samples;
    if (i == rank || samples * 4 < ranks_[rank].samples * 3) continue;
    others.emplace_back(&parsed_->ranks[i],
                        own_samples / static_cast<double>(std::max<uint64_t>(1, samples)));
  }
  if (others.empty() || others.size() * 2 < ranks_.size() - 1) return std::nullopt;
  std::vector<Excess> found;
  for (const auto& [place, stood] : own.by_name) {
    if (parsed_->training.contains(place)) continue;
    std::vector<Other> there;
    for (const auto& [other, scale] : others) {
      const auto at = other->by_name.find(place);
      const Stood* const its = at == other->by_name.end() ? nullptr : &at->second;
      there.push_back(OtherOf(its, other->untold, other->host_samples, scale));
    }
    const Excess excess = ExcessOf(place, stood, std::move(there));
    const bool special = excess.others == 0 || excess.special(own.host_samples);
    if (special && excess.certain() && excess.more >= least_per_sample * own_samples) {
      found.push_back(excess);
    }
  }
  std::vector<Other> keep;
  for (const auto& [other, scale] : others) {
    const uint64_t untold = other->untold - other->kept.samples;
    keep.push_back(OtherOf(&other->kept, untold, other->host_samples, scale));
  }
  const Excess kept = ExcessOf("", own.kept, std::move(keep));
  const Excess* closest = Closest(found);
  if (closest == nullptr && kept.certain() && kept.more >= least_per_sample * own_samples) {
    closest = &kept;
  }
  if (closest == nullptr) return std::nullopt;
  StoodIn told = Told(closest->place, *closest->stood, own);
  told.kept_more = kept.certain();
  told.others = closest->others;
  told.others_host = closest->others_host;
  return told;
}

std::optional<StoodIn> MostStoodIn(std::span<const PlaceCounts> ranks,
                                   std::span<const std::string> names) {
  Places together;
  std::vector<Places> each(ranks.size());
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const HostSample& sample : ranks[rank].host) {
      Add(sample, names, true, &together);
      Add(sample, names, true, &each[rank]);
    }
  }
  if (together.host_samples < kTogetherLeast) return std::nullopt;
  const auto is_common = [&](std::string_view place) {
    const auto of_rank = [&](const Places& one) {
      const auto there = one.by_name.find(place);
      return there != one.by_name.end() &&
             there->second.samples * kTogetherDivisor >= one.host_samples;
    };
    return std::count_if(each.begin(), each.end(), of_rank) * 2 >
           static_cast<int64_t>(ranks.size());
  };
  const std::pair<const std::string_view, Stood>* most = nullptr;
  for (const auto& one : together.by_name) {
    if (one.second.samples * kTogetherDivisor < together.host_samples) continue;
    if (!is_common(one.first)) continue;
    if (most == nullptr || std::pair(one.second.samples, IsLine(one.first)) >
                               std::pair(most->second.samples, IsLine(most->first))) {
      most = &one;
    }
  }
  if (most == nullptr) return std::nullopt;
  return Told(most->first, most->second, together);
}

namespace {

// Of the driver's samples in `intervals`.
void AddIn(std::span<const OwnInterval> intervals, const PlacesDuring& times,
           std::span<const std::string> names, Places* places) {
  auto at = intervals.begin();
  for (const PlaceSample& sample : times.rank->places) {
    if (sample.tid != times.driver_tid) continue;
    while (at != intervals.end() && at->end_ns <= sample.at_ns) ++at;
    if (at == intervals.end()) return;
    if (sample.at_ns < at->begin_ns) continue;
    Add({static_cast<size_t>(at - intervals.begin()), sample.name}, names, false, places);
  }
}

}  // namespace

std::optional<StoodIn> StoodDuring(std::span<const PlacesDuring> ranks,
                                   std::span<const std::string> names) {
  Places during;
  Places beside;
  for (const PlacesDuring& rank : ranks) {
    AddIn(rank.during, rank, names, &during);
    AddIn(rank.beside, rank, names, &beside);
  }
  if (during.host_samples < kDuringLeast) return std::nullopt;
  const auto beside_of = [&](std::string_view place) {
    const auto found = beside.by_name.find(place);
    return found == beside.by_name.end() ? uint64_t{0} : found->second.samples;
  };
  const std::pair<const std::string_view, Stood>* innermost = nullptr;
  const auto rank_of = [](const std::pair<const std::string_view, Stood>& one) {
    return std::tuple(-one.second.mean_depth(), IsLine(one.first), one.second.samples);
  };
  for (const auto& one : during.by_name) {
    const uint64_t there = one.second.samples;
    if (there * 2 < during.host_samples) continue;
    if (beside_of(one.first) * during.host_samples * kBesideDivisor > there * beside.host_samples) {
      continue;
    }
    if (innermost == nullptr || rank_of(one) > rank_of(*innermost)) innermost = &one;
  }
  if (innermost == nullptr) return std::nullopt;
  StoodIn told = Told(innermost->first, innermost->second, during);
  told.others = beside_of(innermost->first);
  told.others_host = beside.host_samples;
  return told;
}

}  // namespace syncline::analysis::why
