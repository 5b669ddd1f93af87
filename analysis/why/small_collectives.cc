// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/small_collectives.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kSurelySmall = 8192;  // bytes: 0.07 ms at 1 Gbit/s
constexpr size_t kSurelyLeast = 20;     // of a kind
constexpr size_t kAlikeLeast = 5;       // fewer say nothing
constexpr int64_t kTimes = 2;           // what surely small ones take: more is what they carry
constexpr double kLeastPerStep = 8;
constexpr int64_t kSavedDivisor = 20;
constexpr int64_t kCertainDivisor = 50;
constexpr int64_t kCertainLeastNs = 500'000;

// Of one kind, by bytes.
using Sizes = std::map<int64_t, std::vector<const PathPiece*>>;

int64_t MedianNs(const std::vector<const PathPiece*>& pieces) {
  std::vector<int64_t> lengths;
  for (const PathPiece* piece : pieces) lengths.push_back(piece->own_length_ns);
  return MedianOf(std::move(lengths)).value_or(0);
}

// What one of the kind takes whatever it carries; nullopt: too few are surely small.
std::optional<int64_t> FixedNs(const Sizes& sizes) {
  std::vector<const PathPiece*> surely;
  for (const auto& [bytes, pieces] : sizes) {
    if (bytes <= kSurelySmall) surely.insert(surely.end(), pieces.begin(), pieces.end());
  }
  if (surely.size() < kSurelyLeast) return std::nullopt;
  return MedianNs(surely);
}

class Finder {
 public:
  Finder(size_t steps, int64_t step_ns, int64_t most_ns)
      : step_ns_(step_ns), most_ns_(most_ns), total_ns_(steps), saved_ns_(steps) {}

  void Add(const Sizes& sizes) {
    const std::optional<int64_t> fixed_ns = FixedNs(sizes);
    if (!fixed_ns.has_value() || *fixed_ns <= 0) return;
    std::vector<int64_t> kind_ns(total_ns_.size());
    std::vector<int64_t> kind_count(total_ns_.size());
    std::vector<const PathPiece*> alike;  // of sizes next to each other
    for (const auto& [bytes, pieces] : sizes) {
      alike.insert(alike.end(), pieces.begin(), pieces.end());
      if (bytes > kSurelySmall && alike.size() < kAlikeLeast) continue;
      const int64_t median_ns = std::max(*fixed_ns, MedianNs(alike));
      if (bytes > kSurelySmall && median_ns > kTimes * *fixed_ns) break;
      const double share = static_cast<double>(*fixed_ns) / static_cast<double>(median_ns);
      largest_bytes_ = std::max(largest_bytes_, bytes);
      for (const PathPiece* piece : alike) {
        const auto step = static_cast<size_t>(piece->step);
        total_ns_[step] += piece->own_length_ns;
        kind_ns[step] += static_cast<int64_t>(static_cast<double>(piece->own_length_ns) * share);
        ++kind_count[step];
      }
      alike.clear();
    }
    for (size_t step = 0; step < kind_ns.size(); ++step) {
      fixed_ns_ += kind_ns[step];
      count_ += kind_count[step];
      if (kind_count[step] > 0) saved_ns_[step] += kind_ns[step] - kind_ns[step] / kind_count[step];
    }
  }

  std::optional<SmallCollectives> Found(size_t all) const {
    const auto steps = static_cast<double>(total_ns_.size());
    SmallCollectives small;
    small.count = static_cast<double>(count_) / steps;
    if (small.count < kLeastPerStep) return std::nullopt;
    small.all = static_cast<double>(all) / steps;
    small.largest_bytes = static_cast<uint64_t>(largest_bytes_);
    small.each_ns = fixed_ns_ / count_;
    small.total = Bootstrap(total_ns_, BlockOf(total_ns_.size()));
    small.saved = Bootstrap(saved_ns_, BlockOf(total_ns_.size()));
    for (int64_t* ns : {&small.saved.est_ns, &small.saved.lo_ns, &small.saved.hi_ns}) {
      *ns = std::min(*ns, most_ns_);
    }
    const bool large = small.saved.est_ns * kSavedDivisor >= step_ns_;
    const bool certain = small.saved.lo_ns > std::max(step_ns_ / kCertainDivisor, kCertainLeastNs);
    if (!large || !certain) return std::nullopt;
    return small;
  }

 private:
  const int64_t step_ns_;
  const int64_t most_ns_;
  std::vector<int64_t> total_ns_;  // by step, as the next
  std::vector<int64_t> saved_ns_;
  int64_t count_ = 0;
  int64_t fixed_ns_ = 0;  // of all of them, what is taken whatever they carry
  int64_t largest_bytes_ = 0;
};

}  // namespace

std::optional<SmallCollectives> SmallCollectivesOf(std::span<const PathPiece> pieces, size_t steps,
                                                   int64_t step_ns, int64_t most_ns) {
  std::map<std::pair<std::string_view, uint32_t>, Sizes> kinds;
  size_t all = 0;
  for (const PathPiece& piece : pieces) {
    if (piece.kind != PathPiece::Kind::kCollective || piece.step < 0) continue;
    if (piece.name == kTransferName) continue;
    ++all;
    if (piece.bytes < 0 || piece.own_length_ns < 0) continue;
    kinds[{piece.name, piece.group}][piece.bytes].push_back(&piece);
  }
  Finder finder(steps, step_ns, most_ns);
  for (const auto& [kind, sizes] : kinds) finder.Add(sizes);
  return finder.Found(all);
}

}  // namespace syncline::analysis::why
