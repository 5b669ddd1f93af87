// SPDX-License-Identifier: Apache-2.0
// An XSpace, which TensorFlow's profiler makes, behind the cursor of common/event_cursor.h.
//
//   XSpace > XPlane (host, device) > XLine (a thread) > XEvent > XStat
//                                                       {metadata id, offset, duration}
//
// A stream is an XLine: a thread of the program, or of a plane of a device a queue ("GPU 0 Stream
// #13"), or what the profiler says of the device otherwise ("GPU 0 Steps"). An event class is an
// entry of a plane's event_metadata; the fields of an event are its duration ("duration_ps") and
// its stats, by name. Event and stat names stand
// *behind* the lines in the file, and so does the time at which the profile began (in the plane
// "Task Environment"): opening walks everything once.
//
//   event time = profile_start_time + line.timestamp_ns + offset_ps / 1000, in CLOCK_REALTIME
//
// Integers throughout: at the scale of the epoch a double is off by hundreds of ns.
//
// Work of a device has a category as Kineto's has (EventClass::attributes, "category"), and may
// have two more fields: "operator", and "_launched_ns", when a call in the file launched it
// (launches.h). The operator is the one that the profiler names on the work (hlo_op, tf_op); else
// the innermost span of the thread around the call. A call of the device's driver has a category
// too.
//
// Salvage: a file that ends early, or is garbled in the middle, gives whatever can be read; the
// rest is in losses(). Names that were lost with it are shown as numbers ("event #17"). Without
// profile_start_time nothing can be placed: then there are no streams, and losses() says so.
//
// Memory: names and one entry per line; the events stay in the mapped file. A line whose events are
// not in order (TensorFlow sorts them) is sorted when it is opened, 32 bytes per event.
//
// Source: tensorflow/tsl/profiler/protobuf/xplane.proto, whose field numbers never change.
// Thread-safety: as common/event_cursor.h says.
#ifndef SYNCLINE_XSPACE_SPACE_H_
#define SYNCLINE_XSPACE_SPACE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/event_cursor.h"
#include "common/files.h"
#include "xspace/launches.h"
#include "xspace/stat.h"
#include "xspace/wire.h"

namespace syncline::xspace {

inline constexpr char kDurationField[] = "duration_ps";  // the first field of every event
// A key of environment(): the version of JAX that made the profile.
inline constexpr char kJaxVersion[] = "jax_version";

// Whether a file that begins so may be an XSpace.
bool IsXSpace(std::span<const uint8_t> bytes);

class Space final : public TraceReader {
 public:
  // NotFound, PermissionDenied; damage is no error.
  static absl::StatusOr<std::unique_ptr<Space>> Open(const std::filesystem::path& path);
  static std::unique_ptr<Space> Take(std::string bytes, std::string source);
  // Of bytes that outlive the space. `source` names them in losses.
  static std::unique_ptr<Space> Of(std::span<const uint8_t> bytes, std::string source);

  std::span<const StreamInfo> streams() const override { return streams_; }
  std::vector<const EventClass*> classes() override;
  // "hostname", "plane N" ..., as far as the file says.
  const std::map<std::string, std::string>& environment() const override { return environment_; }
  std::optional<int64_t> wall_clock_offset_ns() const override { return std::nullopt; }
  std::span<const Loss> losses() const override { return losses_; }
  absl::StatusOr<std::unique_ptr<EventCursor>> Open(uint32_t stream_index,
                                                    int64_t begin_ns = kUnknownLo,
                                                    int64_t end_ns = kUnknownHi) override;

  // CLOCK_REALTIME, ns, as the profiler itself says.
  std::optional<int64_t> profile_begin_ns() const { return profile_begin_ns_; }
  std::optional<int64_t> profile_end_ns() const { return profile_end_ns_; }
  // Of the program, in its own pid namespace; 0: the file does not say.
  int32_t pid() const { return pid_; }
  uint64_t events() const { return events_; }
  // What the profiler says of itself, beside losses().
  std::span<const std::string> warnings() const { return warnings_; }

 private:
  friend class LineCursor;
  struct Class : EventClass {  // fields[0] is the duration, fields[i + 1] is stats[i]
    std::vector<StatKey> stats;
    // Which of the stats, where there are any.
    std::optional<size_t> correlation, hlo_op, hlo_module, tf_op, step_number;
    bool is_work = false;  // of a device: it has two more fields
  };
  struct Classes {
    std::unordered_map<int64_t, std::unique_ptr<Class>> by_id;  // of the metadata; what occurs
    std::vector<Class*> dense;                                  // the same for small ids

    Class* Find(int64_t id) const {
      if (id >= 0 && static_cast<size_t>(id) < dense.size()) return dense[static_cast<size_t>(id)];
      const auto found = by_id.find(id);
      return found == by_id.end() ? nullptr : found->second.get();
    }
  };
  struct Plane {
    std::string name;
    std::string device;  // "GPU 0"; empty: of the host
    std::unordered_map<int64_t, std::string_view> event_names;
    std::unordered_map<int64_t, std::string_view> stat_names;
    Classes classes;
    Classes work;  // of lines on which a device works: they may share names with others
  };
  struct Line {
    uint32_t plane = 0;
    int64_t id = 0;
    bool is_queue = false;  // of a device: its events are work
    std::string name;
    std::span<const uint8_t> bytes;  // of the XLine
    int64_t timestamp_ns = 0;
    uint64_t events = 0;
    bool sorted = true;
    int64_t first_ps = 0;  // the least begin and the greatest end
    int64_t last_ps = 0;
    int64_t last_begin_ps = 0;  // of the event before
    int64_t last_duration_ps = 0;
  };
  // The parts of an XEvent that every event has.
  struct Head {
    int64_t metadata_id = 0;
    int64_t offset_ps = 0;
    int64_t duration_ps = 0;
    bool timed = true;  // false: an aggregate of several occurrences
    bool whole = true;
  };

  Space() = default;
  void Walk(std::span<const uint8_t> bytes);
  void LoseTimesOfNoClock();
  void WalkWarning(std::string_view text, bool is_error);
  void WalkPlane(std::span<const uint8_t> bytes);
  void WalkLine(uint32_t plane, std::span<const uint8_t> bytes);
  // Counts an event of `line`; false when it does not decode.
  bool WalkEvent(Plane* plane, std::span<const uint8_t> event, Line* line);
  // Stats of the plane "Task Environment" say when the profile began and ended, those of others
  // whose it is.
  void ReadStats(const Plane& plane, const std::vector<std::span<const uint8_t>>& stats);
  void NameClasses(const Plane& plane, Classes* classes);
  void NameStats(const Plane& plane, Class* named) const;
  void FindLaunches();
  void AddHostEvents(const Line& line, std::vector<HostEvent>* events) const;
  void MakeStreams();
  void Lose(LossReason reason, std::optional<uint64_t> count, std::string detail);
  // What is damaged in a message: `what` and where it lies.
  void LoseDamaged(const Fields& fields, std::string_view what, std::span<const uint8_t> message);
  // `stats`, where given, gets what the event's stats are.
  static Head ReadHead(std::span<const uint8_t> event, std::vector<StatKey>* stats = nullptr);
  static Class* ClassOf(Classes* classes, int64_t metadata_id);
  const Classes& ClassesOf(const Line& line) const {
    const Plane& plane = *planes_[line.plane];
    return line.is_queue ? plane.work : plane.classes;
  }
  int64_t TimeNs(const Line& line, int64_t offset_ps) const;

  std::optional<MappedFile> file_;
  std::string owned_;
  std::span<const uint8_t> bytes_;
  std::string source_;
  std::vector<std::unique_ptr<Plane>> planes_;
  std::vector<Line> lines_;  // beside streams_
  std::vector<StreamInfo> streams_;
  std::map<std::string, std::string> environment_;
  std::vector<Loss> losses_;
  std::optional<int64_t> profile_begin_ns_;
  std::optional<int64_t> profile_end_ns_;
  int32_t pid_ = 0;
  uint64_t events_ = 0;
  uint32_t next_class_ = 0;
  std::vector<std::string> warnings_;
  Launches launches_;
  std::vector<StatKey> stats_;  // of the event at hand
};

}  // namespace syncline::xspace

#endif  // SYNCLINE_XSPACE_SPACE_H_
