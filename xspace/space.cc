// SPDX-License-Identifier: Apache-2.0
#include "xspace/space.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"
#include "xspace/line_cursor.h"
#include "xspace/stat.h"

namespace syncline::xspace {
namespace {

namespace space_field {
constexpr uint32_t kPlane = 1, kHostname = 4;
}
namespace plane_field {
constexpr uint32_t kName = 2, kLine = 3, kEventMetadata = 4, kStatMetadata = 5, kStat = 6;
}
namespace map_field {
constexpr uint32_t kKey = 1, kValue = 2;
}
constexpr uint32_t kMetadataName = 2;  // of XEventMetadata and XStatMetadata
namespace line_field {
constexpr uint32_t kId = 1, kName = 2, kTimestamp = 3, kDisplayName = 11;
}

constexpr char kEnvironmentPlane[] = "Task Environment";
// An event of one name has a dozen; a file that claims more than this is not read for them.
constexpr size_t kStatsMax = 256;
constexpr int64_t kDenseIds = 1 << 16;  // TensorFlow counts its ids from 1

struct Named {
  int64_t id = 0;
  std::string_view name;
};

// An entry of a map from id to metadata.
Named ReadMetadata(std::span<const uint8_t> entry) {
  Named named;
  Fields fields(entry);
  while (fields.Next()) {
    if (fields.number() == map_field::kKey) named.id = fields.signed_value();
    if (fields.number() != map_field::kValue) continue;
    Fields metadata(fields.bytes());
    while (metadata.Next()) {
      if (metadata.number() == kMetadataName) named.name = metadata.text();
    }
  }
  return named;
}

std::string NameOr(const std::unordered_map<int64_t, std::string_view>& names, int64_t id,
                   const char* kind) {
  const auto found = names.find(id);
  if (found != names.end() && !found->second.empty()) return std::string(found->second);
  return absl::StrCat(kind, " #", id);
}

int64_t IdOf(std::span<const uint8_t> line) {
  Fields fields(line);
  while (fields.Next()) {
    if (fields.number() == line_field::kId) return fields.signed_value();
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Space>> Space::Open(const std::filesystem::path& path) {
  SYNCLINE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  auto space = std::unique_ptr<Space>(new Space());
  space->source_ = path.filename().string();
  space->file_ = std::move(file);
  space->Walk(space->file_->bytes());
  return space;
}

std::unique_ptr<Space> Space::Of(std::span<const uint8_t> bytes, std::string source) {
  auto space = std::unique_ptr<Space>(new Space());
  space->source_ = std::move(source);
  space->Walk(bytes);
  return space;
}

void Space::Lose(LossReason reason, std::optional<uint64_t> count, std::string detail) {
  Loss loss;
  loss.reason = reason;
  loss.begin_ns = profile_begin_ns_.value_or(0);
  loss.end_ns = std::max(loss.begin_ns, profile_end_ns_.value_or(0));
  loss.count = count;
  loss.source = source_;
  loss.detail = std::move(detail);
  losses_.push_back(std::move(loss));
}

void Space::LoseDamaged(const Fields& fields, std::string_view what,
                        std::span<const uint8_t> message) {
  if (fields.damage() == Fields::Damage::kNone) return;
  const bool truncated = fields.damage() == Fields::Damage::kTruncated;
  Lose(truncated ? LossReason::kTruncated : LossReason::kCorruptPacket, std::nullopt,
       absl::StrCat(AbslView(what), truncated ? " ends early" : " is garbled", ", in bytes ",
                    message.data() - bytes_.data(), " to ",
                    message.data() - bytes_.data() + message.size()));
}

void Space::Walk(std::span<const uint8_t> bytes) {
  bytes_ = bytes;
  Fields fields(bytes);
  while (fields.Next()) {
    if (fields.number() == space_field::kPlane) WalkPlane(fields.bytes());
    if (fields.number() == space_field::kHostname) {
      environment_.emplace("hostname", std::string(fields.text()));
    }
  }
  LoseDamaged(fields, "the file", bytes);
  for (Loss& loss : losses_) {  // found before it was known when the profile began
    loss.begin_ns = profile_begin_ns_.value_or(0);
    loss.end_ns = std::max(loss.begin_ns, profile_end_ns_.value_or(0));
  }
  if (events_ > 0 && !profile_begin_ns_.has_value()) {
    Lose(LossReason::kUnreadable, events_,
         "it does not say when the profile began (profile_start_time), so that nothing in it can "
         "be placed");
    lines_.clear();
  }
  MakeStreams();
}

void Space::WalkPlane(std::span<const uint8_t> bytes) {
  const auto index = static_cast<uint32_t>(planes_.size());
  planes_.push_back(std::make_unique<Plane>());
  Plane* plane = planes_.back().get();
  std::vector<std::span<const uint8_t>> stats;
  Fields fields(bytes);
  while (fields.Next()) {
    switch (fields.number()) {
      case plane_field::kName:
        plane->name = fields.text();
        break;
      case plane_field::kLine:
        WalkLine(index, fields.bytes());
        break;
      case plane_field::kEventMetadata: {
        const Named named = ReadMetadata(fields.bytes());
        plane->event_names[named.id] = named.name;
        break;
      }
      case plane_field::kStatMetadata: {
        const Named named = ReadMetadata(fields.bytes());
        plane->stat_names[named.id] = named.name;
        break;
      }
      case plane_field::kStat:
        stats.push_back(fields.bytes());
        break;
      default:
        break;
    }
  }
  LoseDamaged(fields, absl::StrCat("plane \"", plane->name, "\""), bytes);
  NameClasses(plane);
  if (plane->name == kEnvironmentPlane) ReadEnvironment(*plane, stats);
  environment_.emplace(absl::StrCat("plane ", index), plane->name);
}

void Space::ReadEnvironment(const Plane& plane,
                            const std::vector<std::span<const uint8_t>>& stats) {
  for (const std::span<const uint8_t> bytes : stats) {
    const Stat stat = ReadStat(bytes);
    const auto name = plane.stat_names.find(stat.id);
    if (name == plane.stat_names.end() || stat.bits > static_cast<uint64_t>(kUnknownHi)) continue;
    const auto ns = static_cast<int64_t>(stat.bits);
    if (name->second == "profile_start_time") profile_begin_ns_ = ns;
    if (name->second == "profile_stop_time") profile_end_ns_ = ns;
  }
}

void Space::WalkLine(uint32_t plane, std::span<const uint8_t> bytes) {
  Line line;
  line.plane = plane;
  line.bytes = bytes;
  std::string display_name;
  uint64_t damaged = 0;
  Fields fields(bytes);
  while (fields.Next()) {
    switch (fields.number()) {
      case line_field::kName:
        line.name = fields.text();
        break;
      case line_field::kDisplayName:
        display_name = fields.text();
        break;
      case line_field::kTimestamp:
        line.timestamp_ns = fields.signed_value();
        break;
      case kLineEvent:
        if (fields.clipped()) break;  // counted with the damage of the line
        if (!WalkEvent(planes_[plane].get(), fields.bytes(), &line)) ++damaged;
        break;
      default:
        break;
    }
  }
  if (line.name.empty()) line.name = display_name;
  LoseDamaged(fields, absl::StrCat("line \"", line.name, "\""), bytes);
  if (damaged > 0) {
    Lose(LossReason::kCorruptPacket, damaged,
         absl::StrCat("events of line \"", line.name, "\" do not decode"));
  }
  events_ += line.events;
  if (line.events > 0) lines_.push_back(std::move(line));
}

Space::Head Space::ReadHead(std::span<const uint8_t> event, std::vector<StatKey>* stats) {
  Head head;
  Fields fields(event);
  while (fields.Next()) {
    switch (fields.number()) {
      case event_field::kMetadataId:
        head.metadata_id = fields.signed_value();
        break;
      case event_field::kOffset:
        head.offset_ps = fields.signed_value();
        break;
      case event_field::kDuration:
        head.duration_ps = std::max<int64_t>(0, fields.signed_value());
        break;
      case event_field::kOccurrences:
        head.timed = false;
        break;
      case event_field::kStat:
        if (stats != nullptr) stats->push_back(ReadStatKey(fields.bytes()));
        break;
      default:
        break;
    }
  }
  head.whole = fields.damage() == Fields::Damage::kNone;
  return head;
}

Space::Class* Space::ClassOf(Plane* plane, int64_t metadata_id) {
  if (Class* const found = plane->Find(metadata_id)) return found;
  auto made = std::make_unique<Class>();
  Class* const found = made.get();
  if (metadata_id >= 0 && metadata_id < kDenseIds) {
    plane->dense.resize(std::max(plane->dense.size(), static_cast<size_t>(metadata_id) + 1));
    plane->dense[static_cast<size_t>(metadata_id)] = found;
  }
  plane->classes[metadata_id] = std::move(made);
  return found;
}

bool Space::WalkEvent(Plane* plane, std::span<const uint8_t> event, Line* line) {
  stats_.clear();
  const Head head = ReadHead(event, &stats_);
  if (!head.whole) return false;
  if (!head.timed) return true;
  Class* found = ClassOf(plane, head.metadata_id);
  // Events of one name mostly carry the same stats in the same order.
  if (!std::equal(stats_.begin(), stats_.end(), found->stats.begin(),
                  found->stats.begin() +
                      static_cast<ptrdiff_t>(std::min(stats_.size(), found->stats.size())))) {
    for (const StatKey& key : stats_) {
      const bool known =
          std::find(found->stats.begin(), found->stats.end(), key) != found->stats.end();
      if (!known && found->stats.size() < kStatsMax) found->stats.push_back(key);
    }
  }
  const int64_t end_ps = SaturatingSum(head.offset_ps, head.duration_ps);
  if (line->events == 0) line->first_ps = line->last_begin_ps = head.offset_ps;
  const bool in_order = head.offset_ps > line->last_begin_ps ||
                        (head.offset_ps == line->last_begin_ps &&
                         (line->events == 0 || head.duration_ps <= line->last_duration_ps));
  line->sorted = line->sorted && in_order;
  line->first_ps = std::min(line->first_ps, head.offset_ps);
  line->last_ps = line->events == 0 ? end_ps : std::max(line->last_ps, end_ps);
  line->last_begin_ps = head.offset_ps;
  line->last_duration_ps = head.duration_ps;
  ++line->events;
  return true;
}

void Space::NameClasses(Plane* plane) {
  std::vector<int64_t> ids;  // in order, so that the same file numbers its classes the same way
  for (const auto& [id, unused] : plane->classes) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const int64_t id : ids) {
    Class& named = *plane->classes[id];
    named.index = next_class_++;
    named.name = NameOr(plane->event_names, id, "event");
    FieldClass duration;
    duration.name = duration.path = kDurationField;
    duration.size_bits = 64;
    named.fields.push_back(std::move(duration));
    for (const StatKey& key : named.stats) {
      FieldClass field;
      field.name = field.path = NameOr(plane->stat_names, key.id, "stat");
      field.type = TypeOfStat(key.kind);
      field.is_signed = field.type == FieldType::kSigned;
      field.size_bits = field.type == FieldType::kString || field.type == FieldType::kBlob ? 0 : 64;
      named.fields.push_back(std::move(field));
    }
  }
}

int64_t Space::TimeNs(const Line& line, int64_t offset_ps) const {
  const int64_t whole_ns = offset_ps / 1000 - (offset_ps % 1000 < 0 ? 1 : 0);
  return SaturatingSum(SaturatingSum(profile_begin_ns_.value_or(0), line.timestamp_ns), whole_ns);
}

void Space::MakeStreams() {
  for (const Line& line : lines_) {
    StreamInfo stream;
    stream.index = static_cast<uint32_t>(streams_.size());
    stream.name = line.name;
    // Several threads may be called "python": TensorFlow puts a thread's number only into names of
    // its own making.
    const std::string number = absl::StrCat("/", IdOf(line.bytes));
    if (!stream.name.ends_with(number)) stream.name += number;
    stream.clock.kind = ClockKind::kRealtime;
    stream.packets = 1;
    stream.begin_ns = TimeNs(line, line.first_ps);
    stream.end_ns = TimeNs(line, line.last_ps);
    streams_.push_back(std::move(stream));
  }
}

std::vector<const EventClass*> Space::classes() {
  std::vector<const EventClass*> classes(next_class_);
  for (const auto& plane : planes_) {
    for (const auto& [id, made] : plane->classes) classes[made->index] = made.get();
  }
  return classes;
}

absl::StatusOr<std::unique_ptr<EventCursor>> Space::Open(uint32_t stream_index, int64_t begin_ns,
                                                         int64_t end_ns) {
  if (stream_index >= lines_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("no stream ", stream_index, " in ", source_));
  }
  return std::make_unique<LineCursor>(*this, stream_index, begin_ns, end_ns);
}

}  // namespace syncline::xspace
