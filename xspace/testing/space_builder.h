// SPDX-License-Identifier: Apache-2.0
// Makes the bytes of an XSpace, for tests and benchmarks.
//
//   PlaneBuilder plane("/host:CPU");
//   LineBuilder line("tf_Compute/1", 1000);
//   line.Event(plane.EventId("a:MatMul"), {.offset_ns = 5, .duration_ns = 10},
//              {IntStat(plane.StatId("id"), 7)});
//   plane.Add(line);
//   std::string bytes = SpaceBytes({plane.Bytes(), EnvironmentPlane(begin_ns, end_ns)});
#ifndef SYNCLINE_XSPACE_TESTING_SPACE_BUILDER_H_
#define SYNCLINE_XSPACE_TESTING_SPACE_BUILDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace syncline::xspace {

// One field on the wire.
inline void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}
inline std::string NumberField(uint32_t field, int64_t value) {
  std::string out;
  PutVarint(field << 3, &out);
  PutVarint(static_cast<uint64_t>(value), &out);
  return out;
}
inline std::string BytesField(uint32_t field, std::string_view bytes) {
  std::string out;
  PutVarint(field << 3 | 2, &out);
  PutVarint(bytes.size(), &out);
  return out.append(bytes);
}

// An XStat.
inline std::string IntStat(int64_t id, int64_t value) {
  return NumberField(1, id) + NumberField(4, value);
}
inline std::string UintStat(int64_t id, uint64_t value) {
  return NumberField(1, id) + NumberField(3, static_cast<int64_t>(value));
}
inline std::string TextStat(int64_t id, std::string_view text) {
  return NumberField(1, id) + BytesField(5, text);
}
inline std::string ReferenceStat(int64_t id, int64_t to) {
  return NumberField(1, id) + NumberField(7, to);
}

struct EventTimes {
  int64_t offset_ns = 0;
  int64_t duration_ns = 0;
};

class LineBuilder {
 public:
  LineBuilder(std::string_view name, int64_t timestamp_ns, int64_t id = 1)
      : bytes_(NumberField(1, id) + BytesField(2, name) + NumberField(3, timestamp_ns)) {}

  void Event(int64_t id, EventTimes times, const std::vector<std::string>& stats = {}) {
    std::string event = NumberField(1, id) + NumberField(2, times.offset_ns * 1000);
    if (times.duration_ns != 0) event += NumberField(3, times.duration_ns * 1000);
    for (const std::string& stat : stats) event += BytesField(4, stat);
    bytes_ += BytesField(4, event);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class PlaneBuilder {
 public:
  explicit PlaneBuilder(std::string_view name) : name_(name) {}

  // Ids of names, made at their first use.
  int64_t EventId(const std::string& name) { return IdIn(&events_, name); }
  int64_t StatId(const std::string& name) { return IdIn(&stats_, name); }

  void Add(const LineBuilder& line) { lines_ += BytesField(3, line.bytes()); }
  void AddStat(const std::string& stat) { own_stats_ += BytesField(6, stat); }

  // As TensorFlow writes it: names behind the lines.
  std::string Bytes() const {
    return BytesField(2, name_) + lines_ + Names(4, events_) + Names(5, stats_) + own_stats_;
  }

 private:
  static int64_t IdIn(std::map<std::string, int64_t>* names, const std::string& name) {
    return names->try_emplace(name, static_cast<int64_t>(names->size()) + 1).first->second;
  }
  static std::string Names(uint32_t field, const std::map<std::string, int64_t>& names) {
    std::string out;
    for (const auto& [name, id] : names) {
      const std::string metadata = NumberField(1, id) + BytesField(2, name);
      out += BytesField(field, NumberField(1, id) + BytesField(2, metadata));
    }
    return out;
  }

  std::string name_;
  std::string lines_;
  std::string own_stats_;
  std::map<std::string, int64_t> events_;
  std::map<std::string, int64_t> stats_;
};

inline std::string EnvironmentPlane(int64_t begin_ns, int64_t end_ns) {
  PlaneBuilder plane("Task Environment");
  plane.AddStat(UintStat(plane.StatId("profile_start_time"), static_cast<uint64_t>(begin_ns)));
  plane.AddStat(UintStat(plane.StatId("profile_stop_time"), static_cast<uint64_t>(end_ns)));
  return plane.Bytes();
}

inline std::string SpaceBytes(const std::vector<std::string>& planes) {
  std::string out;
  for (const std::string& plane : planes) out += BytesField(1, plane);
  return out;
}

}  // namespace syncline::xspace

#endif  // SYNCLINE_XSPACE_TESTING_SPACE_BUILDER_H_
