// SPDX-License-Identifier: Apache-2.0
// What a profile says of the collectives whose kernels are in it.
//
// PyTorch describes each collective that it launches by an operator `record_param_comms`; Kineto
// copies what is there to the kernels launched inside of it (libkineto, output_json.cpp): the
// collective's name, its sizes, its group and its ranks from PyTorch 2.2 to 2.4 on; `Seq` (the
// number in the group) and `Comms Id` (a hash of group, number and members) later. Both are
// numbers. The root of a broadcast, reduce, gather or scatter is the operator's "Rank" and is not
// copied.
//
// Collectives of Gloo have none of this: its threads show no more than "gloo:all_reduce".
#ifndef SYNCLINE_KINETO_COLLECTIVES_H_
#define SYNCLINE_KINETO_COLLECTIVES_H_

#include <cstdint>
#include <optional>
#include <string>

namespace syncline::kineto {

struct CollectiveKernel {
  int64_t begin_ns = 0;  // CLOCK_REALTIME, as the profiler placed the device's stamps
  int64_t end_ns = 0;
  bool before_launch = false;  // it begins before the call that launched it: its times are wrong

  // As they stand in the file; empty: it does not say.
  std::string name;  // "allreduce", "_allgather_base", "send"
  std::string group;
  std::string description;
  std::string ranks;  // "[0, 1]"; of many only some: "[0, 1, ..., 63]"
  std::string comms_id;
  std::string dtype;
  std::string in_splits, out_splits;  // "[]": all alike
  std::optional<int64_t> sequence;
  std::optional<int64_t> group_size;
  std::optional<int64_t> in_elements, out_elements;
  std::optional<int64_t> source, destination;  // global ranks, of a receive and a send
  std::optional<int64_t> root;                 // in the group; of what has one
};

}  // namespace syncline::kineto

#endif  // SYNCLINE_KINETO_COLLECTIVES_H_
