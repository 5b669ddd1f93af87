// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/file_collectives.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/text.h"

namespace syncline::merge {
namespace {

using kineto::CollectiveKernel;

constexpr std::string_view kAllAlike = "[]";
constexpr int64_t kGroupSizeMax = 1 << 20;  // a damaged file may say anything

enum class Size : bool { kAny, kOne };  // of all ranks

struct Kind {
  std::string_view described;  // by PyTorch
  std::string_view name;
  DataFlow flow = DataFlow::kNone;
  Size size = Size::kOne;
};
// As ProcessGroupNCCL describes its operations. A group with others is not matched: other backends
// count sends and receives, too, of which each rank has its own.
constexpr Kind kKinds[] = {
    {"allreduce", "allreduce", DataFlow::kAll},
    {"allreduce_coalesced", "allreduce_coalesced", DataFlow::kAll},
    {"allgather", "allgather", DataFlow::kAll},
    {"all_gather", "allgather", DataFlow::kAll},
    {"_allgather_base", "allgather_base", DataFlow::kAll},
    {"_reduce_scatter_base", "reduce_scatter_base", DataFlow::kAll},
    {"reduce_scatter", "reduce_scatter", DataFlow::kAll},
    {"allgather_into_tensor_coalesced", "allgather_into_tensor_coalesced", DataFlow::kAll},
    {"all_gather_into_tensor_coalesced", "allgather_into_tensor_coalesced", DataFlow::kAll},
    {"reduce_scatter_tensor_coalesced", "reduce_scatter_tensor_coalesced", DataFlow::kAll},
    {"all_to_all", "alltoall", DataFlow::kAll, Size::kAny},
    {"all_to_allv", "alltoall_base", DataFlow::kAll, Size::kAny},
    {"barrier", "barrier", DataFlow::kAll, Size::kAny},
    {"broadcast", "broadcast", DataFlow::kFromRoot},
    {"_broadcast_oop", "broadcast", DataFlow::kFromRoot},
    {"scatter", "scatter", DataFlow::kFromRoot, Size::kAny},
    {"reduce", "reduce", DataFlow::kToRoot},
    {"_reduce_oop", "reduce", DataFlow::kToRoot},
    {"gather", "gather", DataFlow::kToRoot, Size::kAny},
};
constexpr std::string_view kSend = "send";
constexpr std::string_view kReceive = "recv";

const Kind* KindOf(std::string_view described) {
  const auto found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [&](const Kind& kind) { return kind.described == described; });
  return found == std::end(kKinds) ? nullptr : found;
}

bool IsTransfer(const CollectiveKernel& kernel) {
  return kernel.name == kSend || kernel.name == kReceive;
}

std::optional<uint64_t> BytesOf(const CollectiveKernel& kernel) {
  constexpr std::pair<std::string_view, uint64_t> kTypes[] = {
      {"Byte", 1}, {"Char", 1},     {"Bool", 1},         {"Short", 2},
      {"Half", 2}, {"BFloat16", 2}, {"Int", 4},          {"Float", 4},
      {"Long", 8}, {"Double", 8},   {"ComplexFloat", 8}, {"ComplexDouble", 16}};
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const auto& known) { return known.first == kernel.dtype; });
  if (type == std::end(kTypes) || !kernel.in_elements.has_value()) return std::nullopt;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(*kernel.in_elements), type->second, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

// "[3, 0, 5]": whether everybody gives something to everybody, as far as this rank says.
bool GivesToAll(std::string_view splits) {
  if (splits == kAllAlike) return true;
  const std::optional<std::vector<int64_t>> parts = RanksOf(splits, std::nullopt);
  return parts.has_value() &&
         std::all_of(parts->begin(), parts->end(), [](int64_t part) { return part > 0; });
}

// Whether all of its ranks have something that the others wait for.
bool IsOfSomething(const CollectiveKernel& kernel, const Kind& kind) {
  if (kind.name == "barrier") return true;
  if (!kernel.in_elements.has_value() || !kernel.out_elements.has_value()) return false;
  if (kind.name == "alltoall" || kind.name == "alltoall_base") {
    return *kernel.in_elements >= kernel.group_size.value_or(kGroupSizeMax) &&
           *kernel.out_elements >= kernel.group_size.value_or(kGroupSizeMax) &&
           GivesToAll(kernel.in_splits) && GivesToAll(kernel.out_splits);
  }
  if (kind.flow == DataFlow::kAll) return *kernel.in_elements > 0 && *kernel.out_elements > 0;
  return *kernel.in_elements > 0 || *kernel.out_elements > 0;
}

// "0-3,8" of 0, 1, 2, 3, 8.
std::string RangesOf(const std::vector<int64_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", ranks[i]);
    if (last > i) absl::StrAppend(&text, "-", ranks[last]);
    i = last + 1;
  }
  return text;
}

struct Part {
  uint32_t file = 0;
  int64_t rank = 0;  // of the job
  const CollectiveKernel* kernel = nullptr;
};
using Numbered = std::map<int64_t, std::vector<Part>>;  // by number
// By name, members, size and, where there is one, whatever else the communication's id is made of.
using GroupKey = std::tuple<std::string, std::string, int64_t>;

struct Group {
  timeline::CollectiveGroup facts;
  std::optional<std::vector<int64_t>> ranks;
  Numbered collectives;
  Numbered transfers;
  std::string stranger;  // what another backend than NCCL's did
};

// Whether two files mean the same.
bool Agree(const CollectiveKernel& a, const CollectiveKernel& b) {
  const Kind* const kind = KindOf(a.name);
  const Kind* const other = KindOf(b.name);
  if (kind == nullptr || other == nullptr || kind->name != other->name) return false;
  if (!a.comms_id.empty() && !b.comms_id.empty() && a.comms_id != b.comms_id) return false;
  if (kind->size == Size::kAny) return true;
  return a.dtype == b.dtype && a.in_elements == b.in_elements && a.out_elements == b.out_elements;
}

class Matcher {
 public:
  explicit Matcher(const std::vector<FileKernels>& files) {
    found_.kernels.resize(files.size());
    found_.without_number.resize(files.size());
    found_.misplaced.resize(files.size());
    for (uint32_t i = 0; i < files.size(); ++i) {
      for (const CollectiveKernel& kernel : files[i].kernels) Add(i, files[i], kernel);
      const auto early =
          std::count_if(files[i].kernels.begin(), files[i].kernels.end(),
                        [](const CollectiveKernel& one) { return one.before_launch; });
      if (early == 0) continue;
      found_.misplaced[i] = true;
      found_.disagreeing.push_back(
          absl::StrCat("collectives of ", files[i].file, " limit no clock: ", early, " of ",
                       files[i].kernels.size(), " kernels begin before the calls that launched ",
                       "them, so the profiler did not place the device's times rightly"));
    }
  }

  MatchedCollectives Match() {
    for (auto& [key, group] : groups_) {
      if (!group.stranger.empty()) {
        Distrust(group, absl::StrCat("how \"", group.stranger, "\" is numbered is not known"));
        continue;
      }
      const auto index = static_cast<uint32_t>(found_.groups.size());
      std::vector<MatchedCollective> collectives = CollectivesOf(group, index);
      MatchTransfers(group, index);
      found_.groups.push_back(group.facts);
      std::move(collectives.begin(), collectives.end(), std::back_inserter(found_.collectives));
    }
    return std::move(found_);
  }

 private:
  void Add(uint32_t index, const FileKernels& file, const CollectiveKernel& kernel) {
    ++found_.kernels[index];
    if (!kernel.sequence.has_value() || kernel.group.empty() ||
        (kernel.ranks.empty() && kernel.comms_id.empty())) {
      ++found_.without_number[index];
      return;
    }
    const GroupKey key{kernel.group, kernel.ranks, kernel.group_size.value_or(-1)};
    const auto [at, is_new] = groups_.try_emplace(key);
    Group& group = at->second;
    if (is_new) {
      group.ranks = RanksOf(kernel.ranks, kernel.group_size);
      group.facts.name = kernel.group;
      group.facts.description = kernel.description;
      group.facts.ranks = group.ranks.has_value() ? RangesOf(*group.ranks) : kernel.ranks;
      group.facts.size = static_cast<uint32_t>(
          std::clamp<int64_t>(kernel.group_size.value_or(0), 0, kGroupSizeMax));
    }
    if (!IsTransfer(kernel) && KindOf(kernel.name) == nullptr) {
      group.stranger = kernel.name;
      return;
    }
    const bool member =
        file.rank.has_value() &&
        (!group.ranks.has_value() ||
         std::find(group.ranks->begin(), group.ranks->end(), *file.rank) != group.ranks->end());
    if (!member || kernel.before_launch || kernel.end_ns < kernel.begin_ns) {
      ++found_.impossible;
      return;
    }
    (IsTransfer(kernel) ? group.transfers : group.collectives)[*kernel.sequence].push_back(
        {index, *file.rank, &kernel});
  }

  void Distrust(const Group& group, const std::string& why) {
    found_.disagreeing.push_back(absl::StrCat("collectives of group ", group.facts.name, " (ranks ",
                                              group.facts.ranks, ") are not matched: ", why));
  }

  // In order of rank; whether one is there twice.
  static bool Repeats(std::vector<Part>* parts) {
    std::sort(parts->begin(), parts->end(),
              [](const Part& a, const Part& b) { return a.rank < b.rank; });
    return std::adjacent_find(parts->begin(), parts->end(), [](const Part& a, const Part& b) {
             return a.rank == b.rank;
           }) != parts->end();
  }

  // None where two ranks mean something else by one number.
  std::vector<MatchedCollective> CollectivesOf(Group& group, uint32_t index) {
    std::vector<MatchedCollective> matched;
    for (auto& [number, parts] : group.collectives) {
      if (Repeats(&parts)) {
        ++found_.repeated;
        continue;
      }
      if (parts.size() < 2) {
        ++found_.alone;
        continue;
      }
      const CollectiveKernel& first = *parts.front().kernel;
      if (!std::all_of(parts.begin(), parts.end(),
                       [&](const Part& part) { return Agree(first, *part.kernel); })) {
        Distrust(group, absl::StrCat("number ", number, " is not the same on all ranks"));
        return {};
      }
      matched.push_back(CollectiveOf(group, index, number, parts));
    }
    return matched;
  }

  static MatchedCollective CollectiveOf(const Group& group, uint32_t index, int64_t number,
                                        const std::vector<Part>& parts) {
    const CollectiveKernel& first = *parts.front().kernel;
    const Kind& kind = *KindOf(first.name);
    MatchedCollective one;
    one.group = index;
    one.number = number;
    one.name = kind.name;
    if (kind.size == Size::kOne) one.bytes = BytesOf(first);
    one.flow = kind.flow;
    const std::optional<int64_t> root = RootOf(group, parts);
    for (const Part& part : parts) {
      if (!IsOfSomething(*part.kernel, kind)) one.flow = DataFlow::kNone;
      one.members.push_back(MemberOf(group, part, root == part.rank));
    }
    if (kind.flow != DataFlow::kAll && !root.has_value()) one.flow = DataFlow::kNone;
    return one;
  }

  static MatchedCollective::Member MemberOf(const Group& group, const Part& part, bool is_root) {
    int64_t rank = part.rank;
    if (group.ranks.has_value()) {
      rank = std::find(group.ranks->begin(), group.ranks->end(), rank) - group.ranks->begin();
    }
    return {part.file, static_cast<int32_t>(rank), part.kernel->begin_ns, part.kernel->end_ns,
            is_root};
  }

  // Of the job; nullopt: it is not said, or not everywhere the same.
  static std::optional<int64_t> RootOf(const Group& group, const std::vector<Part>& parts) {
    const std::optional<int64_t> root = parts.front().kernel->root;
    for (const Part& part : parts) {
      if (part.kernel->root != root) return std::nullopt;
    }
    if (!root.has_value() || !group.ranks.has_value()) return std::nullopt;
    if (*root >= static_cast<int64_t>(group.ranks->size())) return std::nullopt;
    return (*group.ranks)[static_cast<size_t>(*root)];
  }

  // Of two ranks, from number 1 on, as long as each is a send of the one and a receive of the
  // other.
  void MatchTransfers(Group& group, uint32_t index) {
    size_t left = 0;
    for (const auto& [number, parts] : group.transfers) left += parts.size();
    int64_t expected = 1;
    for (auto& [number, parts] : group.transfers) {
      if (number != expected++ || parts.size() != 2 || Repeats(&parts)) break;
      if (!group.ranks.has_value() || group.ranks->size() != 2) break;
      const bool first_sends = parts[0].kernel->name == kSend;
      const Part& sender = first_sends ? parts[0] : parts[1];
      const Part& receiver = first_sends ? parts[1] : parts[0];
      const CollectiveKernel& sent = *sender.kernel;
      const CollectiveKernel& received = *receiver.kernel;
      if (sent.name != kSend || received.name != kReceive || sent.destination != receiver.rank ||
          received.source != sender.rank || sent.dtype != received.dtype ||
          sent.in_elements != received.in_elements || sent.comms_id != received.comms_id) {
        break;
      }
      MatchedCollective& one = found_.transfers.emplace_back();
      one.group = index;
      one.number = number;
      one.name = "transfer";
      one.flow = sent.in_elements.value_or(0) > 0 ? DataFlow::kFromRoot : DataFlow::kNone;
      one.members = {MemberOf(group, sender, true), MemberOf(group, receiver, false)};
      left -= 2;
    }
    found_.transfers_left += left;
  }

  std::map<GroupKey, Group> groups_;
  MatchedCollectives found_;
};

}  // namespace

MatchedCollectives MatchFileCollectives(const std::vector<FileKernels>& files) {
  return Matcher(files).Match();
}

std::optional<std::vector<int64_t>> RanksOf(std::string_view text, std::optional<int64_t> size) {
  if (!text.starts_with('[') || !text.ends_with(']') || text == kAllAlike) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<int64_t> ranks;
  bool left_out = false;
  for (absl::string_view part : absl::StrSplit(AbslView(text), ',')) {
    part = absl::StripAsciiWhitespace(part);
    left_out |= part == "...";
    if (part == "...") continue;
    int64_t rank = 0;
    if (!absl::SimpleAtoi(part, &rank) || rank < 0) return std::nullopt;
    ranks.push_back(rank);
  }
  if (!left_out || ranks.empty()) {
    return ranks.empty() ? std::nullopt : std::optional(std::move(ranks));
  }
  const int64_t first = ranks.front(), last = ranks.back();
  const bool whole = size.has_value() && *size <= kGroupSizeMax && last - first == *size - 1 &&
                     std::is_sorted(ranks.begin(), ranks.end());
  if (!whole) return std::nullopt;
  ranks.clear();
  for (int64_t rank = first; rank <= last; ++rank) ranks.push_back(rank);
  return ranks;
}

}  // namespace syncline::merge
