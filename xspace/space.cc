// SPDX-License-Identifier: Apache-2.0
#include "xspace/space.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"
#include "xspace/line_cursor.h"
#include "xspace/stat.h"

namespace syncline::xspace {
namespace {

namespace space_field {
constexpr uint32_t kPlane = 1, kError = 2, kWarning = 3, kHostname = 4;
}
namespace plane_field {
constexpr uint32_t kId = 1, kName = 2, kLine = 3, kEventMetadata = 4, kStatMetadata = 5, kStat = 6;
}
namespace map_field {
constexpr uint32_t kKey = 1, kValue = 2;
}
// Of XEventMetadata and XStatMetadata; the second has no display name.
constexpr uint32_t kMetadataName = 2, kMetadataDisplayName = 4;
namespace line_field {
constexpr uint32_t kId = 1, kName = 2, kTimestamp = 3, kDisplayName = 11;
}

constexpr char kEnvironmentPlane[] = "Task Environment";
constexpr char kMetadataPlane[] = "/host:metadata";
constexpr std::string_view kDevicePlane = "/device:";
constexpr std::string_view kQueue = "Stream #";  // of a GPU
constexpr std::string_view kDropped = "drop";
// An event of one name has a dozen; a file that claims more than this is not read for them.
constexpr size_t kStatsMax = 256;
constexpr int64_t kDenseIds = 1 << 16;  // TensorFlow counts its ids from 1

struct Named {
  int64_t id = 0;
  std::string_view name;
  std::string_view display_name;
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
      if (metadata.number() == kMetadataDisplayName) named.display_name = metadata.text();
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

// The first text of that number; names stand in front of what they name.
std::string_view TextOf(std::span<const uint8_t> bytes, uint32_t number) {
  Fields fields(bytes);
  while (fields.Next()) {
    if (fields.number() == number) return fields.text();
  }
  return "";
}

// "GPU 0" of "/device:GPU:0".
std::string DeviceOf(std::string_view plane) {
  std::string device(plane.substr(kDevicePlane.size()));
  std::replace(device.begin(), device.end(), ':', ' ');
  return device;
}

// A line of a device whose events are its work: of GPUs a stream, of TPUs the core's instructions.
bool IsQueue(std::string_view line) {
  return line.starts_with(kQueue) || line == "XLA Ops" || line == "Async XLA Ops";
}

// Of work whose stats do not say that it is a copy or a fill: by its name. Empty: an instruction
// that only holds others.
std::string WorkCategoryOf(std::string_view name) {
  const std::string_view instruction = name.substr(0, name.find('.'));  // "while" of "while.3"
  if (instruction == "while" || instruction == "conditional" || instruction == "call") return "";
  if (instruction.starts_with("copy-") || instruction == "copy") return kCopyCategory;
  return kKernelCategory;
}

FieldClass FieldOf(std::string name, FieldType type) {
  FieldClass field;
  field.name = field.path = std::move(name);
  field.type = type;
  field.is_signed = type == FieldType::kSigned;
  field.size_bits = type == FieldType::kString || type == FieldType::kBlob ? 0 : 64;
  return field;
}

}  // namespace

// Planes come first, and of a plane its number or its name: neither begins like a text.
bool IsXSpace(std::span<const uint8_t> bytes) {
  Fields fields(bytes);
  // A plane is mostly longer than what there is of it here.
  if (!fields.Next() && !fields.clipped()) return false;
  if (fields.number() != space_field::kPlane || fields.bytes().empty()) return false;
  constexpr uint8_t kIdTag = plane_field::kId << 3, kNameTag = plane_field::kName << 3 | 2;
  return fields.bytes()[0] == kIdTag || fields.bytes()[0] == kNameTag;
}

absl::StatusOr<std::unique_ptr<Space>> Space::Open(const std::filesystem::path& path) {
  SYNCLINE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  auto space = std::unique_ptr<Space>(new Space());
  space->source_ = path.filename().string();
  space->file_ = std::move(file);
  space->Walk(space->file_->bytes());
  return space;
}

std::unique_ptr<Space> Space::Take(std::string bytes, std::string source) {
  auto space = std::unique_ptr<Space>(new Space());
  space->source_ = std::move(source);
  space->owned_ = std::move(bytes);
  space->Walk({reinterpret_cast<const uint8_t*>(space->owned_.data()), space->owned_.size()});
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
    switch (fields.number()) {
      case space_field::kPlane:
        WalkPlane(fields.bytes());
        break;
      case space_field::kHostname:
        environment_.emplace("hostname", std::string(fields.text()));
        break;
      case space_field::kError:
      case space_field::kWarning:
        WalkWarning(fields.text(), fields.number() == space_field::kError);
        break;
      default:
        break;
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
  LoseTimesOfNoClock();
  MakeStreams();
  FindLaunches();
}

// Sums of such times saturate: their events would be in no window.
void Space::LoseTimesOfNoClock() {
  constexpr int64_t kFarthestNs = kUnknownHi / 2;
  const auto is_far = [&](const Line& line) {
    const int64_t base_ns = SaturatingSum(profile_begin_ns_.value_or(0), line.timestamp_ns);
    return base_ns > kFarthestNs || base_ns < -kFarthestNs;
  };
  for (const Line& line : lines_) {
    if (!is_far(line)) continue;
    events_ -= line.events;
    Lose(LossReason::kCorruptPacket, line.events,
         absl::StrCat("line \"", line.name, "\" is at a time that no clock has"));
  }
  std::erase_if(lines_, is_far);
}

// What the profiler could not do, or had no room for, is not in the file.
void Space::WalkWarning(std::string_view text, bool is_error) {
  const bool is_loss =
      is_error || absl::StrContains(absl::AsciiStrToLower(AbslView(text)), AbslView(kDropped));
  if (!is_loss) {
    warnings_.emplace_back(text);
    return;
  }
  Lose(is_error ? LossReason::kUnreadable : LossReason::kDiscardedEvents, std::nullopt,
       absl::StrCat("the profiler itself says: ", AbslView(text)));
}

void Space::WalkPlane(std::span<const uint8_t> bytes) {
  const auto index = static_cast<uint32_t>(planes_.size());
  planes_.push_back(std::make_unique<Plane>());
  Plane* plane = planes_.back().get();
  const std::string_view name = TextOf(bytes, plane_field::kName);
  if (name.starts_with(kDevicePlane)) plane->device = DeviceOf(name);
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
        // Of TPUs the name is all of an instruction, with its operands.
        const bool display = !plane->device.empty() && !named.display_name.empty();
        plane->event_names[named.id] = display ? named.display_name : named.name;
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
  NameClasses(*plane, &plane->classes);
  NameClasses(*plane, &plane->work);
  ReadStats(*plane, stats);
  environment_.emplace(absl::StrCat("plane ", index), plane->name);
}

void Space::ReadStats(const Plane& plane, const std::vector<std::span<const uint8_t>>& stats) {
  for (const std::span<const uint8_t> bytes : stats) {
    const Stat stat = ReadStat(bytes);
    const auto found = plane.stat_names.find(stat.id);
    if (found == plane.stat_names.end()) continue;
    const std::string_view name = found->second;
    if (plane.name == kMetadataPlane && name == kJaxVersion) {
      environment_.emplace(kJaxVersion, stat.text);
    }
    if (name == "process_id" && stat.bits <= std::numeric_limits<int32_t>::max()) {
      pid_ = static_cast<int32_t>(stat.bits);
    }
    if (plane.name != kEnvironmentPlane || stat.bits > static_cast<uint64_t>(kUnknownHi)) continue;
    const auto ns = static_cast<int64_t>(stat.bits);
    if (name == "profile_start_time") profile_begin_ns_ = ns;
    if (name == "profile_stop_time") profile_end_ns_ = ns;
  }
}

void Space::WalkLine(uint32_t plane, std::span<const uint8_t> bytes) {
  Line line;
  line.plane = plane;
  line.bytes = bytes;
  line.is_queue = !planes_[plane]->device.empty() && IsQueue(TextOf(bytes, line_field::kName));
  std::string display_name;
  uint64_t damaged = 0;
  Fields fields(bytes);
  while (fields.Next()) {
    switch (fields.number()) {
      case line_field::kId:
        line.id = fields.signed_value();
        break;
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

Space::Class* Space::ClassOf(Classes* classes, int64_t metadata_id) {
  if (Class* const found = classes->Find(metadata_id)) return found;
  auto made = std::make_unique<Class>();
  Class* const found = made.get();
  if (metadata_id >= 0 && metadata_id < kDenseIds) {
    classes->dense.resize(std::max(classes->dense.size(), static_cast<size_t>(metadata_id) + 1));
    classes->dense[static_cast<size_t>(metadata_id)] = found;
  }
  classes->by_id[metadata_id] = std::move(made);
  return found;
}

bool Space::WalkEvent(Plane* plane, std::span<const uint8_t> event, Line* line) {
  stats_.clear();
  const Head head = ReadHead(event, &stats_);
  if (!head.whole) return false;
  if (!head.timed) return true;
  Class* found = ClassOf(line->is_queue ? &plane->work : &plane->classes, head.metadata_id);
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

void Space::NameClasses(const Plane& plane, Classes* classes) {
  std::vector<int64_t> ids;  // in order, so that the same file numbers its classes the same way
  for (const auto& [id, unused] : classes->by_id) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const int64_t id : ids) {
    Class& named = *classes->by_id[id];
    named.index = next_class_++;
    named.name = NameOr(plane.event_names, id, "event");
    named.is_work = classes == &plane.work;
    named.fields.push_back(FieldOf(kDurationField, FieldType::kUnsigned));
    NameStats(plane, &named);
    if (named.is_work) {
      named.fields.push_back(FieldOf(kOperatorField, FieldType::kString));
      named.fields.push_back(FieldOf(kLaunchedField, FieldType::kSigned));
    } else if (plane.device.empty() && named.correlation.has_value()) {
      named.attributes[kCategory] = kDriverCategory;
    }
  }
}

void Space::NameStats(const Plane& plane, Class* named) const {
  std::string category = WorkCategoryOf(named->name);
  for (size_t i = 0; i < named->stats.size(); ++i) {
    const StatKey& key = named->stats[i];
    named->fields.push_back(
        FieldOf(NameOr(plane.stat_names, key.id, "stat"), TypeOfStat(key.kind)));
    const std::string& name = named->fields.back().name;
    if (name == "correlation_id") named->correlation = i;
    if (name == "hlo_op") named->hlo_op = i;
    if (name == "hlo_module") named->hlo_module = i;
    if (name == "tf_op") named->tf_op = i;
    if (name == "step_num") named->step_number = i;
    if (name == "memcpy_details") category = kCopyCategory;
    if (name == "memset_details") category = kFillCategory;
  }
  if (named->is_work && !category.empty()) named->attributes[kCategory] = category;
}

int64_t Space::TimeNs(const Line& line, int64_t offset_ps) const {
  const int64_t whole_ns = offset_ps / 1000 - (offset_ps % 1000 < 0 ? 1 : 0);
  return SaturatingSum(SaturatingSum(profile_begin_ns_.value_or(0), line.timestamp_ns), whole_ns);
}

void Space::MakeStreams() {
  for (const Line& line : lines_) {
    const std::string& device = planes_[line.plane]->device;
    StreamInfo stream;
    stream.index = static_cast<uint32_t>(streams_.size());
    stream.name = line.name;
    // "Stream #13(Compute,MemcpyH2D)": what is in the brackets depends on what the profile saw.
    if (line.is_queue) stream.name = stream.name.substr(0, stream.name.find('('));
    if (!device.empty()) {
      stream.device = device;
      stream.name = absl::StrCat(device, " ", stream.name);
    }
    // Several threads may be called "python": TensorFlow puts a thread's number only into names of
    // its own making.
    const std::string number = absl::StrCat("/", line.id);
    const bool is_named = line.is_queue && stream.name.ends_with(absl::StrCat("#", line.id));
    if (!is_named && !stream.name.ends_with(number)) stream.name += number;
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
    for (const Classes* of : {&plane->classes, &plane->work}) {
      for (const auto& [id, made] : of->by_id) classes[made->index] = made.get();
    }
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
