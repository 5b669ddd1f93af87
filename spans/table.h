// SPDX-License-Identifier: Apache-2.0
// A plain table of spans (rows.h) behind the cursor of common/event_cursor.h: a reader for each
// process, which is a rank on a node.
//
// A stream is a lane: of a device a queue ("GPU 0 stream 7"), of the program what the column stream
// says. Rows without that are on a lane by their kind. An event class is a name with a kind
// (EventClass::attributes, "kind") and the columns that its rows have; the fields of an event are
// its duration ("duration_ps"), its step and sequence number, and other columns as texts. What a
// device did has a category too, as Kineto's has ("category"; "collective" beside them).
//
//   kind        what it is
//   operator    of the program
//   step        likewise
//   kernel      of a device; of "device" where the column device says nothing
//   copy, fill  likewise, of memory
//   collective  of a device where the row has a device or a stream; else of the program
//   any other   a span: of a device where the row has one
//
// Memory: an entry per row and column, and every different text once. Thread-safety: as
// common/event_cursor.h says.
#ifndef SYNCLINE_SPANS_TABLE_H_
#define SYNCLINE_SPANS_TABLE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "common/event_cursor.h"
#include "spans/rows.h"

namespace syncline::spans {

class Process final : public TraceReader {
 public:
  Process(int32_t rank, std::string node) : rank_(rank), node_(std::move(node)) {}

  int32_t rank() const { return rank_; }
  const std::string& node() const { return node_; }  // empty: the table does not say
  uint64_t events() const { return events_.size(); }

  std::span<const StreamInfo> streams() const override { return streams_; }
  std::vector<const EventClass*> classes() override;
  const std::map<std::string, std::string>& environment() const override { return environment_; }
  std::optional<int64_t> wall_clock_offset_ns() const override { return std::nullopt; }
  std::span<const Loss> losses() const override { return {}; }
  absl::StatusOr<std::unique_ptr<EventCursor>> Open(uint32_t stream_index,
                                                    int64_t begin_ns = kUnknownLo,
                                                    int64_t end_ns = kUnknownHi) override;

  void Add(const Row& row);
  void Finish();  // after the last row

 private:
  friend class Cursor;
  struct Value {
    int64_t number = 0;
    std::string_view text;
  };
  struct Event {
    int64_t begin_ns = 0;
    int64_t duration_ns = 0;
    const EventClass* of = nullptr;
    size_t first_value = 0;  // in values_: of all fields but the duration
  };

  const EventClass* ClassOf(const Row& row, const std::string& device);
  uint32_t StreamOf(const Row& row, const std::string& device);
  std::string_view Intern(std::string_view text);

  int32_t rank_;
  std::string node_;
  std::vector<Event> events_;
  std::vector<Value> values_;
  std::unordered_map<std::string, std::unique_ptr<EventClass>> classes_;  // by all that they are
  std::unordered_map<std::string_view, std::string_view> interned_;
  std::deque<std::string> texts_;
  std::map<std::pair<std::string, std::string>, uint32_t> stream_numbers_;  // by device and lane
  std::vector<std::vector<size_t>> stream_events_;                          // beside streams_
  std::vector<StreamInfo> streams_;
  std::map<std::string, std::string> environment_;
};

// By rank, then node. InvalidArgument: a row that cannot be (rows.h), or no row at all.
absl::StatusOr<std::vector<std::unique_ptr<Process>>> ReadTable(std::string_view text,
                                                                Format format);

}  // namespace syncline::spans

#endif  // SYNCLINE_SPANS_TABLE_H_
