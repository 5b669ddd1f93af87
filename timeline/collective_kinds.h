// SPDX-License-Identifier: Apache-2.0
// What is known of the kinds of collectives: what they make their ranks wait for, and how PyTorch
// works at them.
#ifndef SYNCLINE_TIMELINE_COLLECTIVE_KINDS_H_
#define SYNCLINE_TIMELINE_COLLECTIVE_KINDS_H_

#include <cstddef>
#include <optional>
#include <string_view>

namespace syncline::timeline {

// The kind whose root is recorded.
inline constexpr std::string_view kBroadcast = "broadcast";

// Whether nobody leaves before everybody has entered, by what the collective computes: every rank's
// result needs every rank's part. Not so where data flow one way only (a broadcast's root may leave
// before anybody else enters; reduce, gather, scatter) nor in an all-to-all, whose parts may be
// empty. `collective` as in Collective::name: "allreduce". Of nothing at all (may_be_empty) only a
// barrier waits.
bool EverybodyWaits(std::string_view collective, bool may_be_empty);

// Whether all ranks give the same size for it.
bool IsOfOneSize(std::string_view collective);

// The one name of an operation: "reduce_scatter_single" -> "reduce_scatter_base"; others as they
// are.
std::string_view CollectiveCalled(std::string_view name);
// "c10d::_allgather_base_" -> "allgather_base"; empty for what is no collective's launch.
std::string_view CollectiveOfLaunch(std::string_view task);
// "gloo:all_reduce" -> "all_reduce"; empty for what is no collective's work.
std::string_view CollectiveOfWork(std::string_view task);

// What Gloo does for a launch of that name in a group of `size`.
struct Works {
  std::string_view name;        // "all_reduce"; empty: not known
  std::optional<size_t> count;  // nullopt: as many as there are tensors, which nobody says
};
Works WorksOf(std::string_view launch, size_t size);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_COLLECTIVE_KINDS_H_
