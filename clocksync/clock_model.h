// SPDX-License-Identifier: Apache-2.0
// The clock model of a recording: from any clock of any node to the timeline, with a proven
// interval.
//
// Built once from samples (builder.h), stored as integers in clocks/models.json, and evaluated with
// integer arithmetic only: the same file gives the same nanoseconds everywhere.
//
//   Locate(t)          where t is on the timeline: {est, lo, hi}, the truth is in [lo, hi].
//   Difference(a, b)   b - a: {est, lo, hi}. For two nodes this is the shortest path between them,
//                      never worse and mostly better than the difference of two Locate().
//   Order(a, b)        before / after / undecided, from Difference.
//
// `analysis` uses Difference and Order only; Locate's estimate draws. A clock that the model does
// not know has no times: ask Knows() once per clock, not per event. A node with no usable samples
// is placed by its wall clock, with the interval unknown; then nothing across nodes may be claimed.
//
// Thread-safety: const methods may be called from any thread; a Mapper belongs to one thread.
#ifndef SYNCLINE_CLOCKSYNC_CLOCK_MODEL_H_
#define SYNCLINE_CLOCKSYNC_CLOCK_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "clocksync/clock_line.h"
#include "clocksync/events.h"
#include "common/time.h"

namespace syncline::clocksync {

// "path asymmetry <= 50 %": the difference of the two ways' least delays over their sum, and what
// that means for a message. Of kAsymmetryPercentAny nothing follows; 0 is one way as long as the
// other.
inline constexpr int64_t kAsymmetryPercentAny = 100;
// What reports assume where nothing else is asked for: one way may take three times as long as the
// other. Why that: docs/clock-model.md.
inline constexpr int64_t kAsymmetryPercentUsual = 50;
std::string AsymmetryText(int64_t percent);
std::string AsymmetryMeaning(int64_t percent);
// Why it is false, where AssumingAsymmetry() says so.
inline constexpr char kAsymmetryContradicted[] =
    "paths between the nodes contradict each other under it";

class ClockModel {
 public:
  // From clocks/models.json; InvalidArgument for text that is malformed, non-monotone or of another
  // format_version (the message says what and where).
  static absl::StatusOr<ClockModel> FromJson(std::string_view json);
  std::string ToJson() const;

  // Every time is the node's own, unchanged and unbounded: for traces of one node, or without
  // samples. Node i is names[i]; times of different nodes are comparable in estimate only if their
  // clocks were.
  static ClockModel Identity(std::vector<std::string> names);

  ClockModel(ClockModel&&) noexcept;
  ClockModel& operator=(ClockModel&&) noexcept;
  ~ClockModel();

  // Nodes in the order of ClockId::node.
  const std::vector<std::string>& nodes() const;
  uint32_t reference_node() const;
  // What happened to the clocks while the samples were taken: steps, slews, sleeps, gaps. In a file
  // from before these were stored: empty.
  const std::vector<ClockEvent>& events() const;
  // The same under an assumption that no sample can prove: AsymmetryText(percent). Its intervals
  // are narrower, and hold only if that does: "likely", never to be mixed with what is proven.
  // nullopt: paths around a loop contradict it, so it is false.
  std::optional<ClockModel> AssumingAsymmetry(int64_t percent) const;
  // How many samples of which edges it was made of.
  struct Source {
    std::string local;
    std::string remote;
    uint64_t samples = 0;
  };
  std::vector<Source> sources() const;
  // Timeline zero as Unix time, for display and exports only; 0 when unknown.
  int64_t epoch_unix_ns() const;

  bool Knows(ClockId clock) const;
  TimelineEstimate Locate(NodeTime time) const;
  DurationEstimate Difference(NodeTime a, NodeTime b) const;
  Ordering Order(NodeTime a, NodeTime b) const;
  // The inverse of Locate's estimate: when the timeline is at `time`, what does `clock` read?
  NodeTime Unlocate(ClockId clock, TimelineTime time) const;

  // Between neighbours of these readings of `clock`, sorted, Locate's estimate and both ends are
  // straight lines; also before the first and behind the last. nullopt: of this clock it is not
  // known.
  std::optional<std::vector<int64_t>> BendsOf(ClockId clock) const;

  // Fast estimates for times that mostly go forward. Monotone: a <= b implies At(a) <= At(b).
  class Mapper {
   public:
    TimelineTime At(int64_t clock_ns);
    // At() of each of `times_ns`, in place.
    void PlaceAll(std::span<int64_t> times_ns);
    // The line that At() follows where `clock_ns` lies on it; nullopt: there is none.
    std::optional<ClockLine> LineAt(int64_t clock_ns);

   private:
    friend class ClockModel;
    const void* map_ = nullptr;
    size_t segment_ = 0;
  };
  Mapper MapperFor(ClockId clock) const;

 private:
  friend class ModelAssembler;
  struct Data;
  explicit ClockModel(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_CLOCK_MODEL_H_
