// SPDX-License-Identifier: Apache-2.0
// TensorFlow's collectives (MultiWorkerMirroredStrategy), matched across workers.
//
// Workers meet by two numbers that they agree upon: the group's key and, in it, the instance's key,
// which goes on with every collective. Step ids are each worker's own.
//
// What a profile shows of one (level 2 and above; CollectiveReduceV2_1 is the node's name):
//   ExecutorState::ProcessAsync::Start      {name, kernel_type, step_id}: the executor reaches it
//   CollectiveExecutor::CompleteParams      {group_key, group_size}
//   CollectiveReduceV2_1:CollectiveReduceV2 {step_id, instance_key, group_key}: it is worked at
//   CollectiveReduceV2_1:CollectiveReduceV2 {shape}: level 3 only, while it is reached: its input
//
// A worker enters when its executor reaches the collective, and leaves when the work has ended. Of
// a node that a loop reaches several times in a step it is not known which reach led to which work:
// there a worker enters when the work begins.
//
// A program may use one instance's key again and again. Then collectives meet by the step's id,
// too, where it is the same on all workers; where it is not, they are left out and counted. So is
// all of a group in which a task is there twice: these are two jobs, or two lives of one.
//
// Memory: one entry per launch and work. Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_PROFILE_COLLECTIVES_H_
#define SYNCLINE_TIMELINE_PROFILE_COLLECTIVES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "timeline/collectives.h"
#include "timeline/thread_spans.h"

namespace syncline::timeline {

class ProfileCollectives {
 public:
  // `task`: "/job:worker/replica:0/task:1". Several profiles of one process have the same number.
  uint32_t AddProcess(uint32_t node, std::string_view job, std::string_view task);

  // `name` is the node's in the graph.
  void OnLaunch(uint32_t process, int64_t step_id, std::string_view name, const Moment& when);
  // What it is given; nullopt: not known.
  void OnInput(uint32_t process, int64_t step_id, std::string_view name,
               std::optional<uint64_t> bytes);
  void OnGroupSize(uint32_t process, int64_t group_key, int64_t size);
  struct Work {
    int64_t step_id = 0;
    int64_t group_key = 0;
    int64_t instance_key = 0;
    Moment begin;
    Moment end;
  };
  // `kind`: "allreduce".
  void OnWork(uint32_t process, std::string_view name, std::string_view kind, const Work& work);

  // Once, after everything was given: appends what was found.
  void Match(Collectives* found) const;

 private:
  using Use = std::pair<int64_t, std::string>;  // step, node's name
  struct Process {
    uint32_t node = 0;
    std::string job;
    std::string task;
    std::map<Use, std::vector<Moment>> launches;
    std::map<Use, std::optional<uint64_t>> inputs;
    std::map<Use, std::vector<std::pair<std::string, Work>>> works;  // with what they do
    std::map<int64_t, uint32_t> group_sizes;                         // by key
  };
  struct Part {  // of a collective: a worker's
    uint32_t process = 0;
    std::string kind;  // "allreduce"
    int64_t step_id = 0;
    std::optional<uint64_t> bytes;
    CollectiveMember member;
  };
  using Instances = std::map<int64_t, std::vector<Part>>;  // by the instance's key

  using GroupMap = std::map<std::pair<std::string, int64_t>, Instances>;  // by job and key

  GroupMap Groups() const;
  // The group's processes in order of rank; empty when a task is there twice.
  std::vector<uint32_t> RanksOf(const Instances& instances) const;
  CollectiveGroup FactsOf(const std::string& job, int64_t key,
                          const std::vector<uint32_t>& ranks) const;
  static void AddEntries(const std::vector<Part>& parts, std::vector<TimelineTime>* entries);
  static void JoinInstance(const Collective& collective, const std::vector<Part>& parts,
                           Collectives* found);
  static void Join(Collective collective, const std::vector<Part>& parts, Collectives* found);

  std::vector<Process> processes_;
};

// "CollectiveReduceV2" -> "allreduce"; empty for what is no collective.
std::string CollectiveOfType(std::string_view type);

// Bytes of the first input in a shape as profiles give it, "(float[32,10];int32[])": 1280. nullopt
// where that is not known.
std::optional<uint64_t> BytesOfShape(std::string_view shape);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_PROFILE_COLLECTIVES_H_
