// SPDX-License-Identifier: Apache-2.0
#include "timeline/collective_kinds.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace syncline::timeline {
namespace {

enum class Waits : bool { kSome, kAll };
enum class Count { kOne, kRanks, kTensors };

struct Kind {
  std::string_view launch;
  std::string_view work;
  Waits waits = Waits::kSome;
  bool one_size = false;
  Count count = Count::kOne;
};
// Gloo reduces and scatters by reducing all to all (torch 2.13: seen in its profiler).
constexpr Kind kKinds[] = {
    {"allreduce", "all_reduce", Waits::kAll, true},
    {"allreduce_coalesced", "all_reduce", Waits::kAll, true},
    {"broadcast", "broadcast", Waits::kSome, true},
    {"allgather", "all_gather", Waits::kAll, true},
    {"allgather_base", "all_gather", Waits::kAll, true},
    {"allgather_coalesced", "all_gather", Waits::kAll, true},
    {"allgather_into_tensor_coalesced", "all_gather", Waits::kAll, true},
    {"reduce", "reduce", Waits::kSome, true},
    {"reduce_scatter", "all_reduce", Waits::kAll, false, Count::kRanks},
    {"reduce_scatter_base", "all_reduce", Waits::kAll, true},
    {"reduce_scatter_tensor_coalesced", "all_reduce", Waits::kAll, false, Count::kTensors},
    {"gather", "gather"},
    {"scatter", "scatter"},
    {"alltoall", "all_to_all"},
    {"alltoall_base", "all_to_all"},
    {"barrier", "barrier", Waits::kAll},
};

// One operation under the name by which programs call it, and under that by which PyTorch launches
// it: of the ranks of a group some may show the one, others the other.
constexpr std::pair<std::string_view, std::string_view> kCalledAs[] = {
    {"all_gather_single", "allgather_base"},
    {"all_gather_single_coalesced", "allgather_into_tensor_coalesced"},
    {"reduce_scatter_single", "reduce_scatter_base"},
    {"reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced"},
    {"all_to_all_single", "alltoall_base"},
};

const Kind* Find(std::string_view name) {
  const std::string_view launch = CollectiveCalled(name);
  const auto found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [&](const Kind& kind) { return kind.launch == launch; });
  return found == std::end(kKinds) ? nullptr : found;
}

std::string_view WithoutUnderscores(std::string_view name) {
  while (!name.empty() && name.front() == '_') name.remove_prefix(1);
  while (!name.empty() && name.back() == '_') name.remove_suffix(1);
  return name;
}

}  // namespace

std::string_view CollectiveCalled(std::string_view name) {
  const auto found = std::find_if(std::begin(kCalledAs), std::end(kCalledAs),
                                  [&](const auto& called) { return called.first == name; });
  return found == std::end(kCalledAs) ? name : found->second;
}

bool EverybodyWaits(std::string_view collective, bool may_be_empty) {
  const Kind* const kind = Find(collective);
  if (kind == nullptr || kind->waits != Waits::kAll) return false;
  return !may_be_empty || kind->launch == "barrier";
}

bool IsOfOneSize(std::string_view collective) {
  const Kind* const kind = Find(collective);
  return kind != nullptr && kind->one_size;
}

std::string_view CollectiveOfLaunch(std::string_view task) {
  constexpr std::string_view kPrefix = "c10d::";
  if (!task.starts_with(kPrefix)) return {};
  const Kind* const kind = Find(WithoutUnderscores(task.substr(kPrefix.size())));
  return kind == nullptr ? std::string_view() : kind->launch;
}

std::string_view CollectiveOfWork(std::string_view task) {
  constexpr std::string_view kPrefix = "gloo:";
  if (!task.starts_with(kPrefix)) return {};
  const auto found = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) {
    return kind.work == task.substr(kPrefix.size());
  });
  return found == std::end(kKinds) ? std::string_view() : found->work;
}

Works WorksOf(std::string_view launch, size_t size) {
  const Kind* const kind = Find(launch);
  if (kind == nullptr) return {};
  switch (kind->count) {
    case Count::kOne:
      return {kind->work, 1};
    case Count::kRanks:
      return {kind->work, size};
    case Count::kTensors:
      break;
  }
  return {kind->work, std::nullopt};
}

}  // namespace syncline::timeline
