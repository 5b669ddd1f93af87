#include "timeline/collective_kinds.h"

#include <algorithm>
#include <iterator>

namespace syncline::timeline {

bool EverybodyWaits(std::string_view collective, bool may_be_empty) {
  constexpr std::string_view kBarrier = "barrier";
  constexpr std::string_view kKinds[] = {
      "allreduce",
      "allreduce_coalesced",
      "allgather",
      "allgather_base",
      "allgather_coalesced",
      "allgather_into_tensor_coalesced",
      "all_gather_single",
      "reduce_scatter",
      "reduce_scatter_base",
      "reduce_scatter_tensor_coalesced",
      "reduce_scatter_single",
  };
  if (collective == kBarrier) return true;
  return !may_be_empty &&
         std::find(std::begin(kKinds), std::end(kKinds), collective) != std::end(kKinds);
}

}  // namespace syncline::timeline
