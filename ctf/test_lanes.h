// SPDX-License-Identifier: Apache-2.0
// Test support: one stream read the fast way (lanes.h, columns.h) and the ordinary way, to compare.
#ifndef SYNCLINE_CTF_TEST_LANES_H_
#define SYNCLINE_CTF_TEST_LANES_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <vector>

#include "ctf/cursor.h"
#include "ctf/lanes.h"

namespace syncline::ctf::testing {

struct SeenEvent {
  int64_t time_ns = 0;
  uint32_t class_index = 0;
  const uint8_t* bytes = nullptr;
  auto operator<=>(const SeenEvent&) const = default;
};

// Sums up values by field; the same from DecodeColumns() and from Decode().
class FieldSums : public ColumnSink {
 public:
  void OnNumbers(const FieldClass& field, std::span<const uint64_t> numbers) override {
    for (const uint64_t number : numbers) sums_[field.path] += Mix(number);
  }
  void OnTexts(const FieldClass& field, std::span<const std::string_view> texts) override {
    for (const std::string_view text : texts) AddText(field, text);
  }
  void OnArrays(const FieldClass& field, std::span<const uint32_t> counts,
                std::span<const uint64_t> elements) override {
    for (const uint32_t count : counts) sums_[field.path + "#"] += Mix(count);
    for (const uint64_t element : elements) sums_[field.path] += Mix(element);
  }
  void OnShared(const FieldValue& value, size_t events) override {
    for (size_t i = 0; i < events; ++i) AddValue(value);
  }

  void AddValue(const FieldValue& value) {
    if (value.type == FieldType::kArray) {
      sums_[value.field->path + "#"] += Mix(value.count);
    } else if (value.type == FieldType::kString || value.type == FieldType::kBlob) {
      AddText(*value.field, value.text);
    } else if (value.type != FieldType::kStruct && value.type != FieldType::kVariant) {
      sums_[value.field->path] += Mix(value.u);
    }
  }
  const std::map<std::string, uint64_t>& sums() const { return sums_; }

 private:
  static uint64_t Mix(uint64_t value) { return (value + 1) * 0x9e3779b97f4a7c15; }
  void AddText(const FieldClass& field, std::string_view text) {
    for (const char c : text) sums_[field.path] += Mix(static_cast<unsigned char>(c));
    sums_[field.path] += Mix(text.size());
  }

  std::map<std::string, uint64_t> sums_;
};

struct StreamContents {
  std::vector<SeenEvent> events;  // sorted
  std::map<std::string, uint64_t> sums;
  std::vector<std::string> losses;
  bool operator==(const StreamContents&) const = default;
};

class ContentsReader {
 public:
  void Add(EventCursor& cursor, std::span<const EventRecord> records, bool by_column) {
    for (const EventRecord& record : records) {
      contents_.events.push_back({record.time_ns, record.event_class->index, record.bytes});
    }
    if (by_column && cursor.DecodeColumns(records, &sums_)) {
      by_column_ += records.size();
      return;
    }
    for (const EventRecord& record : records) {
      if (!cursor.Decode(record, &values_)) std::abort();
      for (const FieldValue& value : values_) sums_.AddValue(value);
    }
  }
  StreamContents Take(std::span<const Loss> losses) {
    std::sort(contents_.events.begin(), contents_.events.end());
    contents_.sums = sums_.sums();
    for (const Loss& loss : losses) {
      contents_.losses.push_back(std::to_string(loss.begin_ns) + ".." +
                                 std::to_string(loss.end_ns) + " " + loss.detail);
    }
    std::sort(contents_.losses.begin(), contents_.losses.end());
    return std::move(contents_);
  }
  size_t by_column() const { return by_column_; }

 private:
  StreamContents contents_;
  FieldSums sums_;
  std::vector<FieldValue> values_;
  size_t by_column_ = 0;
};

inline StreamContents ReadInOrder(CtfCursor& cursor) {
  ContentsReader contents;
  for (auto batch = cursor.NextBatch(); batch.ok() && !batch->empty(); batch = cursor.NextBatch()) {
    contents.Add(cursor, *batch, false);
  }
  return contents.Take(cursor.losses());
}

// The same up to one instant after the other, as StreamMerger does; aborts where a stretch says of
// itself what is not so.
inline StreamContents ReadInStretches(CtfCursor& cursor, int64_t step_ns) {
  ContentsReader contents;
  int64_t earliest_ns = kUnknownLo;
  for (int64_t until_ns = kUnknownLo;;) {
    const auto stretch = cursor.NextBefore(until_ns);
    if (!stretch.ok()) std::abort();
    const auto records = stretch->records;
    for (size_t i = 0; i < records.size(); ++i) {
      const bool beyond = records[i].time_ns >= until_ns && i + 1 < records.size();
      if (beyond || records[i].time_ns < earliest_ns) std::abort();
      earliest_ns = records[i].time_ns;
    }
    if (stretch->next_ns < earliest_ns) std::abort();
    earliest_ns = stretch->next_ns;
    contents.Add(cursor, records, false);
    if (records.empty() && stretch->next_ns == kUnknownHi) return contents.Take(cursor.losses());
    if (records.empty() && stretch->next_ns < until_ns) std::abort();  // it said nothing
    if (records.empty()) {
      until_ns = earliest_ns > kUnknownHi - step_ns ? kUnknownHi : earliest_ns + step_ns;
    }
  }
}

// As ScanStreams() moves a cursor, with one lane. `in_lanes` counts the events that took it.
inline StreamContents ReadWithLane(CtfCursor& cursor, const TraceLayout& layout, size_t* in_lanes) {
  ContentsReader contents;
  const auto visit = [&](EventCursor& at, std::span<const EventRecord> some) {
    contents.Add(at, some, true);
    return absl::OkStatus();
  };
  const auto visit_lane = [&](EventCursor& at, std::span<const EventRecord> some) {
    *in_lanes += some.size();
    return visit(at, some);
  };
  LaneRecords records(layout.events, visit_lane);
  for (auto entered = cursor.Enter(); entered.ok() && *entered; entered = cursor.Enter()) {
    while (cursor.InPacket()) {
      bool stopped = true;
      if (std::optional<Lane> lane = cursor.BeginLane()) {
        lane->cursor = &cursor;
        lane->records = &records;
        WalkLanes({&*lane, 1});
        cursor.EndLane(*lane);
        stopped = lane->stopped;
      }
      if (stopped && !VisitByClass(cursor, cursor.FillBatch(), visit).ok()) std::abort();
    }
    if (!records.VisitAll(cursor).ok()) std::abort();
  }
  return contents.Take(cursor.losses());
}

}  // namespace syncline::ctf::testing

#endif  // SYNCLINE_CTF_TEST_LANES_H_
