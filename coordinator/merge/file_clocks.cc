// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/file_clocks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "clocksync/builder.h"
#include "common/duration_text.h"
#include "common/status.h"
#include "common/time.h"

namespace syncline::merge {
namespace {

using Member = MatchedCollective::Member;

constexpr int64_t kBillion = 1'000'000'000;
constexpr int64_t kBinNs = 20'000'000;     // of each direction the tightest of every 20 ms counts
constexpr int64_t kApartNsMax = kBillion;  // guessed: NTP sets a clock that is 128 ms off
constexpr size_t kAllPairsMax = 8;         // members; of more each with the first few
constexpr size_t kHubs = 4;

// "`before` began before `after` ended", and where that was seen.
struct Limit {
  int64_t before_ns = 0;
  int64_t after_ns = 0;
  uint32_t before_file = 0;
  uint32_t after_file = 0;
  const MatchedCollective* collective = nullptr;

  int64_t apart_ns() const { return after_ns - before_ns; }
};

class Limits {
 public:
  Limits(const std::vector<FileKernels>& files, const MatchedCollectives& matched)
      : files_(files), matched_(matched) {
    for (const MatchedCollective& one : matched.collectives) Add(one);
    for (const MatchedCollective& one : matched.transfers) Add(one);
  }

  uint64_t binding() const { return binding_; }
  const std::string& contradiction() const { return contradiction_; }

  std::vector<CausalPair> Pairs() const {
    std::vector<CausalPair> pairs;
    for (const auto& [bin, limit] : tightest_) {
      const auto& [before, after, at] = bin;
      pairs.push_back({{{before, ClockKind::kRealtime}, limit.before_ns},
                       {{after, ClockKind::kRealtime}, limit.after_ns}});
    }
    return pairs;
  }

  // That two nodes contradict each other: what no two clocks can do whose rates differ by at most
  // kFileRatePpb; the worst of them.
  void FindContradiction() {
    std::map<std::pair<uint32_t, uint32_t>, std::vector<Theta>> by_nodes;
    for (const auto& [bin, limit] : tightest_) {
      const auto& [before, after, at] = bin;
      if (before < after) {
        by_nodes[{before, after}].push_back({limit.before_ns, limit.apart_ns(), true, &limit});
      } else {
        by_nodes[{after, before}].push_back({limit.after_ns, -limit.apart_ns(), false, &limit});
      }
    }
    for (auto& [nodes, thetas] : by_nodes) FindContradiction(&thetas);
  }

 private:
  // A limit of what the second node's clock is ahead of the first's when this one reads x.
  struct Theta {
    int64_t x = 0;
    int64_t theta = 0;
    bool is_upper = false;
    const Limit* limit = nullptr;
  };

  uint32_t NodeOf(const Member& member) const { return files_[member.file].node; }

  void Add(const MatchedCollective& one) {
    if (one.flow == DataFlow::kNone) return;
    CheckApart(one);
    binds_ = false;
    const std::vector<Member>& members = one.members;
    if (one.flow == DataFlow::kAll) {
      AddAll(one);
    } else {
      const auto root = std::find_if(members.begin(), members.end(),
                                     [](const Member& member) { return member.is_root; });
      for (const Member& member : members) {
        if (root == members.end() || member.is_root) continue;
        const bool from = one.flow == DataFlow::kFromRoot;
        Offer(from ? *root : member, from ? member : *root, one);
      }
    }
    binding_ += binds_ ? 1 : 0;
  }

  // Of many members those with a few of them: what these say of the others is soon as tight, and
  // the paths between two clocks stay short.
  void AddAll(const MatchedCollective& one) {
    const std::vector<Member>& members = one.members;
    const size_t hubs = members.size() <= kAllPairsMax ? members.size() : kHubs;
    for (size_t i = 0; i < hubs; ++i) {
      for (size_t k = 0; k < members.size(); ++k) {
        if (k == i) continue;
        Offer(members[i], members[k], one);
        if (k >= hubs) Offer(members[k], members[i], one);
      }
    }
  }

  // That the clocks are so far apart is less likely than that the files are of two runs.
  void CheckApart(const MatchedCollective& one) {
    const Member& a = one.members.front();
    for (const Member& b : one.members) {
      const int64_t apart_ns = std::max(b.begin_ns - a.end_ns, a.begin_ns - b.end_ns);
      if (apart_ns <= kApartNsMax || !contradiction_.empty()) continue;
      contradiction_ = absl::StrCat(files_[a.file].file, " and ", files_[b.file].file, ": ",
                                    NameOf(one), " lies ", DurationText(apart_ns),
                                    " apart by their clocks. Are they files of one run?");
    }
  }

  void Offer(const Member& before, const Member& after, const MatchedCollective& one) {
    if (matched_.misplaced[before.file] || matched_.misplaced[after.file]) return;
    const uint32_t a = NodeOf(before), b = NodeOf(after);
    const Limit limit{before.begin_ns, after.end_ns, before.file, after.file, &one};
    if (a == b) {
      if (limit.apart_ns() >= 0 || !contradiction_.empty()) return;
      contradiction_ = absl::StrCat(files_[before.file].file, " and ", files_[after.file].file,
                                    " were given as files of one clock, and are not: by it ",
                                    NameOf(one), " ended on one ", DurationText(-limit.apart_ns()),
                                    " before it began on the other");
      return;
    }
    binds_ = true;
    const auto [at, is_new] = tightest_.try_emplace({a, b, limit.before_ns / kBinNs}, limit);
    if (!is_new && limit.apart_ns() < at->second.apart_ns()) at->second = limit;
  }

  void FindContradiction(std::vector<Theta>* thetas) {
    std::stable_sort(thetas->begin(), thetas->end(),
                     [](const Theta& a, const Theta& b) { return a.x < b.x; });
    // What of each side limits most from here on: theta less (upper) or more (lower) what the rate
    // may change since.
    const Theta* most = nullptr;
    const Theta* least = nullptr;
    const auto since = [](const Theta& theta, int64_t x) {
      return static_cast<int64_t>(__int128{x - theta.x} * kFileRatePpb / kBillion) + 1;
    };
    int64_t worst_ns = 0;
    for (const Theta& theta : *thetas) {
      if (const Theta*& same = theta.is_upper ? most : least; same == nullptr) {
        same = &theta;
      } else if (theta.is_upper ? theta.theta <= same->theta + since(*same, theta.x)
                                : theta.theta >= same->theta - since(*same, theta.x)) {
        same = &theta;
      }
      const Theta* const other = theta.is_upper ? least : most;
      if (other == nullptr) continue;
      const int64_t room = since(*other, theta.x);
      const int64_t lacks_ns =
          theta.is_upper ? other->theta - room - theta.theta : theta.theta - room - other->theta;
      if (lacks_ns <= worst_ns || !(contradiction_.empty() || worst_ns > 0)) continue;
      worst_ns = lacks_ns;
      contradiction_ = Contradict(*theta.limit, *other->limit, lacks_ns);
    }
  }

  std::string Contradict(const Limit& a, const Limit& b, int64_t lacks_ns) const {
    const std::string names =
        a.collective == b.collective
            ? NameOf(*a.collective)
            : absl::StrCat(NameOf(*b.collective), " and ", NameOf(*a.collective));
    const auto [first, second] = std::minmax(a.before_file, a.after_file);
    return absl::StrCat(files_[first].file, " and ", files_[second].file,
                        " contradict each other: no clocks whose rates differ by at most ",
                        kFileRatePpb / 1000, " ppm fit ", names, "; ", DurationText(lacks_ns),
                        " are missing. Are they files of one run?");
  }

  std::string NameOf(const MatchedCollective& one) const {
    return absl::StrCat(one.name, " ", one.number, " of group ", matched_.groups[one.group].name);
  }

  const std::vector<FileKernels>& files_;
  const MatchedCollectives& matched_;
  std::map<std::tuple<uint32_t, uint32_t, int64_t>, Limit> tightest_;  // by nodes and time
  std::string contradiction_;
  uint64_t binding_ = 0;
  bool binds_ = false;
};

// Of the nodes that belong together the first of most.
uint32_t ReferenceOf(size_t nodes, const std::vector<CausalPair>& pairs) {
  std::vector<uint32_t> leader(nodes);
  std::iota(leader.begin(), leader.end(), 0U);
  const auto find = [&](uint32_t node) {
    while (leader[node] != node) node = leader[node] = leader[leader[node]];
    return node;
  };
  for (const CausalPair& pair : pairs) {
    const uint32_t a = find(pair.before.clock.node), b = find(pair.after.clock.node);
    leader[std::max(a, b)] = std::min(a, b);
  }
  std::vector<size_t> sizes(nodes, 0);
  for (uint32_t node = 0; node < nodes; ++node) ++sizes[find(node)];
  return static_cast<uint32_t>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
}

// By how much the first of the nodes begins before timeline zero.
int64_t EarliestOf(const std::vector<FileNode>& nodes, const clocksync::ClockModel& model) {
  int64_t earliest_ns = 0;
  for (uint32_t node = 0; node < nodes.size(); ++node) {
    const NodeTime begin{{node, ClockKind::kRealtime}, nodes[node].begin_ns};
    earliest_ns = std::min(earliest_ns, model.Locate(begin).est.ns);
  }
  return earliest_ns;
}

absl::StatusOr<clocksync::ClockModel> Build(const clocksync::BuildInput& input,
                                            const ComparedClocks& compared) {
  SYNCLINE_ASSIGN_OR_RETURN(
      clocksync::BuildResult built,
      clocksync::BuildModel(input, {.reference = input.nodes[compared.reference],
                                    .zero_reference_raw_ns = compared.zero_ns,
                                    .rate_ppb_max = kFileRatePpb,
                                    .wall_clocks = true}));
  for (const clocksync::ClockEvent& event : built.events) {
    if (event.kind != clocksync::ClockEvent::Kind::kInfeasible) continue;
    return absl::InvalidArgumentError(event.text);
  }
  return std::move(built.model);
}

}  // namespace

ComparedClocks CompareClocks(const std::vector<FileNode>& nodes,
                             const std::vector<FileKernels>& files,
                             const MatchedCollectives& matched) {
  ComparedClocks compared;
  clocksync::BuildInput input;
  for (const FileNode& node : nodes) input.nodes.push_back(node.name);
  Limits limits(files, matched);
  if (limits.contradiction().empty()) limits.FindContradiction();
  compared.binding = limits.binding();
  compared.contradiction = limits.contradiction();
  input.causal = limits.Pairs();
  if (input.causal.empty() || !compared.contradiction.empty()) return compared;
  compared.reference = ReferenceOf(nodes.size(), input.causal);
  compared.zero_ns = nodes[compared.reference].begin_ns;
  absl::StatusOr<clocksync::ClockModel> model = Build(input, compared);
  if (model.ok()) {
    compared.zero_ns += EarliestOf(nodes, *model);
    model = Build(input, compared);
  }
  if (model.ok()) {
    compared.model = std::make_unique<clocksync::ClockModel>(*std::move(model));
  } else {
    compared.contradiction = std::string(model.status().message());
  }
  return compared;
}

}  // namespace syncline::merge
