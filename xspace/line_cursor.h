// SPDX-License-Identifier: Apache-2.0
// The events of one line in time order. Internal to xspace/; made by Space::Open().
#ifndef SYNCLINE_XSPACE_LINE_CURSOR_H_
#define SYNCLINE_XSPACE_LINE_CURSOR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "xspace/space.h"

namespace syncline::xspace {

class LineCursor final : public EventCursor {
 public:
  LineCursor(const Space& space, uint32_t index, int64_t begin_ns, int64_t end_ns);

  const StreamInfo& stream() const override { return space_.streams_[index_]; }
  absl::StatusOr<std::span<const EventRecord>> NextBatch() override;
  bool Decode(const EventRecord& record, std::vector<FieldValue>* values) override;
  // All of them were found when the space was opened: Space::losses().
  std::span<const Loss> losses() const override { return {}; }

 private:
  // Reads on until the batch is full or the line ends.
  void Fill(size_t batch_max);
  void SortAll();
  struct Work {  // what an event says of itself
    uint64_t correlation = 0;
    std::string_view hlo_op, hlo_module, tf_op;
  };
  void AddLaunch(const Space::Class& of, const Work& work, std::vector<FieldValue>* values);
  std::string_view OperatorOf(const Work& work, const Launches::Launch* launch);

  const Space& space_;
  uint32_t index_;
  const Space::Line& line_;
  const Space::Plane& plane_;
  const Space::Classes& classes_;
  int64_t begin_ns_;
  int64_t end_ns_;
  Fields fields_;
  std::vector<EventRecord> batch_;
  std::unordered_set<std::string> names_;  // of operators that are made of two
  bool done_ = false;
};

}  // namespace syncline::xspace

#endif  // SYNCLINE_XSPACE_LINE_CURSOR_H_
