// SPDX-License-Identifier: Apache-2.0
// Traces made of values instead of bytes, for tests of everything above the readers.
#ifndef SYNCLINE_TIMELINE_TESTING_FAKE_TRACE_H_
#define SYNCLINE_TIMELINE_TESTING_FAKE_TRACE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/event_cursor.h"

namespace syncline::timeline::testing {

using FakeArray = std::vector<std::variant<uint64_t, int64_t, double>>;
using FakeValue = std::variant<uint64_t, int64_t, double, std::string, FakeArray>;

struct FakeField {
  std::string name;
  FakeValue value;
  FieldScope scope = FieldScope::kPayload;
};

struct FakeEvent {
  int64_t time_ns = 0;
  std::string name;
  std::vector<FakeField> fields;
  std::string bytes;  // of a trace with places
};

struct FakeStream {
  std::string name;
  std::vector<FakeEvent> events;
  std::vector<Loss> losses;
};

// "thread=1 name=\"x\" values=[1,2] tid=-5 value=0.5 context.vtid=7": integers are unsigned unless
// they have a sign.
absl::StatusOr<FakeEvent> ParseFakeEvent(int64_t time_ns, std::string_view text);

class FakeTrace final : public TraceReader {
 public:
  // Batches hold `batch_size` events, so that records die as a real reader's do.
  explicit FakeTrace(size_t batch_size = 2) : batch_size_(batch_size) {}
  // From the next batches on.
  void set_batch_size(size_t batch_size) { batch_size_ = batch_size; }
  // Events of unsigned numbers alone have places (FieldPlace), as LTTng lays them out. Before the
  // first cursor.
  void GivePlaces();
  // Whether its cursors stop where EventCursor::NextBefore() says, which not all readers can.
  void set_stops(bool stops) { stops_ = stops; }

  FakeStream* AddStream(std::string name);
  const std::deque<FakeStream>& fake_streams() const { return streams_; }
  std::map<std::string, std::string>* mutable_environment() { return &environment_; }
  void set_wall_clock_offset_ns(int64_t offset_ns) { wall_clock_offset_ns_ = offset_ns; }

  std::span<const StreamInfo> streams() const override { return infos_; }
  std::vector<const EventClass*> classes() override;
  const std::map<std::string, std::string>& environment() const override { return environment_; }
  std::optional<int64_t> wall_clock_offset_ns() const override { return wall_clock_offset_ns_; }
  std::span<const Loss> losses() const override { return losses_; }
  absl::StatusOr<std::unique_ptr<EventCursor>> Open(uint32_t stream_index, int64_t begin_ns,
                                                    int64_t end_ns) override;

 private:
  friend class FakeCursor;
  const EventClass* ClassOf(const FakeEvent& event);

  size_t batch_size_;
  bool places_ = false;
  bool stops_ = false;
  std::deque<FakeStream> streams_;
  std::vector<StreamInfo> infos_;
  std::map<std::string, std::string> environment_;
  std::optional<int64_t> wall_clock_offset_ns_;
  std::vector<Loss> losses_;
  std::deque<EventClass> classes_;
};

}  // namespace syncline::timeline::testing

#endif  // SYNCLINE_TIMELINE_TESTING_FAKE_TRACE_H_
