// SPDX-License-Identifier: Apache-2.0
#include "timeline/profile_lanes.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/kineto_categories.h"
#include "common/status.h"
#include "common/tensorflow_names.h"
#include "common/text.h"

namespace syncline::timeline {
namespace {

constexpr int64_t kBoundStepNs = 100'000'000;  // between two points of the clock bound's counter
constexpr int64_t kBoundPointsMax = 600;
constexpr std::string_view kDuration = "duration_ps";
// Flooring to ns may make a span that ends with its parent end one later.
constexpr int64_t kNestingSlackNs = 1;

// "tf_Compute" from "tf_Compute/-8253600385598224674".
std::string WithoutNumber(const std::string& thread) {
  const size_t slash = thread.rfind('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == thread.size()) return thread;
  const bool number = thread.find_first_not_of("-0123456789", slash + 1) == std::string::npos;
  return number ? thread.substr(0, slash) : thread;
}

}  // namespace

std::string ShortTask(std::string_view task) {
  return absl::StrReplaceAll(AbslView(task), {{"/replica:0/", "/"}});
}

ProfileLanes::ProfileLanes(const Owner& owner, WallPlacement* placement, Emitter* emitter,
                           TensorMatcher* tensors, ProfileCollectives* collectives)
    : owner_(owner),
      placement_(placement),
      emitter_(emitter),
      tensors_(tensors),
      collectives_(collectives),
      kineto_(placement, emitter) {}

TrackId ProfileLanes::AddTrack(TrackKind kind, std::string name, std::string unit) {
  const TrackId parent = kind == TrackKind::kGroup ? owner_.track : group();
  return AddBelow(parent, kind, std::move(name), std::move(unit));
}

TrackId ProfileLanes::AddBelow(TrackId parent, TrackKind kind, std::string name, std::string unit) {
  Track track;
  track.parent = parent;
  track.kind = kind;
  track.name = std::move(name);
  track.node = owner_.node;
  track.process = owner_.process;
  track.unit = std::move(unit);
  return emitter_->AddTrack(std::move(track));
}

TrackId ProfileLanes::group() {
  if (group_ == kNoTrack) {
    if (IsOfKineto()) return group_ = AddTrack(TrackKind::kGroup, kKinetoName);
    if (IsOfJax()) return group_ = AddTrack(TrackKind::kGroup, kJaxName);
    if (IsOfTable()) return group_ = AddTrack(TrackKind::kGroup, kTableName);
    const std::string task = ShortTask(owner_.task);
    group_ = AddTrack(TrackKind::kGroup, task.empty() ? "TensorFlow" : "TensorFlow " + task);
  }
  return group_;
}

TrackId ProfileLanes::AddLane(const Thread& thread, std::string name) {
  if (thread.device.empty()) return AddTrack(TrackKind::kLane, std::move(name));
  const auto [group, is_new] = devices_.try_emplace(thread.device, kNoTrack);
  if (is_new) group->second = AddTrack(TrackKind::kGroup, thread.device);
  // "stream 7" of "GPU 0 stream 7".
  const std::string prefix = thread.device + " ";
  if (name.starts_with(prefix)) name.erase(0, prefix.size());
  return AddBelow(group->second, TrackKind::kLane, std::move(name));
}

KinetoObserver::Event ProfileLanes::OfDevice(const Event& event, const Thread& thread,
                                             std::span<const FieldValue> values) {
  const EventClass& event_class = *event.event_class->event_class;
  const auto category = event_class.attributes.find("category");
  std::string_view of;
  if (category != event_class.attributes.end()) of = category->second;
  return {.category = of,
          .name = event_class.name,
          .device = thread.device,
          .values = values,
          .begin = *event.begin_at,
          .end = *event.end_at};
}

std::string ProfileLanes::LaneName(const std::string& thread) {
  const std::string name = WithoutNumber(thread);
  const int uses = ++name_uses_[name];
  return uses == 1 ? name : absl::StrCat(name, " ", uses);
}

ProfileLanes::Kind ProfileLanes::KindOf(std::string_view name) {
  if (name == "RunGraph") return Kind::kStep;
  if (name == "ExecutorState::Process") return Kind::kProcess;
  if (name == "ExecutorState::ProcessAsync::Start") return Kind::kPosted;
  if (name == "ExecutorState::ProcessAsync::Done") return Kind::kReceived;
  if (name == "ExecutorPropagateOutputs") return Kind::kExecuted;
  if (name == "ExecutorDoneCallback") return Kind::kDone;
  if (name.starts_with("Executor")) return Kind::kExecutor;
  if (name == "MemoryAllocation" || name == "MemoryDeallocation") return Kind::kAllocation;
  if (name == "ThreadpoolListener::StartRegion") return Kind::kRegion;
  if (name.starts_with("ThreadpoolListener::")) return Kind::kPoolMark;
  if (name == "CollectiveExecutor::CompleteParams") return Kind::kCollectiveGroup;
  return Kind::kOther;
}

ProfileLanes::Class ProfileLanes::Classify(const EventClass& event_class) {
  const std::string_view name = event_class.name;
  const auto has = [&](std::string_view field) {
    return std::any_of(event_class.fields.begin(), event_class.fields.end(),
                       [&](const FieldClass& one) { return one.name == field; });
  };
  Class made;
  made.name = emitter_->Text(name);
  made.kind = KindOf(name);
  const auto category = event_class.attributes.find("category");
  if (category != event_class.attributes.end()) {
    made.kind = Kind::kDevice;
    made.category = emitter_->Text(CategoryOf(Kind::kOther) + " " + category->second);
  } else if (made.kind == Kind::kOther && has("step_num")) {
    made.kind = Kind::kMark;
  } else if (made.kind == Kind::kOther && has("hlo_op")) {
    made.kind = Kind::kInstruction;
  } else if (const auto found = TensorFlowOperatorOf(name);
             made.kind == Kind::kOther && found.has_value() && !IsOfJax()) {
    const std::string_view type = found->type;
    made.kind = Kind::kOperator;
    made.node = found->node;
    made.name = emitter_->Text(made.node);
    made.type = emitter_->Text(type);
    made.type_name = type;
    made.collective = CollectiveOfType(type);
    if (type == "_Send" || type == "_HostSend") made.kind = Kind::kSend;
    if (type == "_Recv" || type == "_HostRecv") made.kind = Kind::kReceiveKey;
  }
  return made;
}

std::string ProfileLanes::CategoryOf(Kind kind) const {
  const std::string program = IsOfJax() ? kJaxName : kTensorFlowName;
  switch (kind) {
    case Kind::kOperator:
    case Kind::kSend:
    case Kind::kReceiveKey:
    case Kind::kInstruction:
      return program + " operators";
    case Kind::kStep:
    case Kind::kMark:
      return program + " steps";
    case Kind::kCollectiveGroup:
    case Kind::kOther:
    case Kind::kDevice:
      return program;
    default:
      return program + " executor";
  }
}

ProfileLanes::Class ProfileLanes::ClassWith(const char* attribute, const char* prefix,
                                            const EventClass& event_class) {
  Class made;
  made.name = emitter_->Text(event_class.name);
  const auto found = event_class.attributes.find(attribute);
  made.category =
      emitter_->Text(prefix + (found == event_class.attributes.end() ? "" : found->second));
  return made;
}

const ProfileLanes::Class& ProfileLanes::ClassOf(const EventClass* event_class) {
  const auto known = classes_.find(event_class);
  if (known != classes_.end()) return known->second;
  Class made = IsOfKineto()  ? ClassWith("category", kKinetoCategory, *event_class)
               : IsOfTable() ? ClassWith("kind", kTableCategory, *event_class)
                             : Classify(*event_class);
  if (made.category == kNoText) made.category = emitter_->Text(CategoryOf(made.kind));
  made.event_class = event_class;
  made.shown = owner_.events.Matches(event_class->name);
  return classes_.emplace(event_class, std::move(made)).first->second;
}

const FieldValue* ProfileLanes::Find(std::string_view field) const {
  for (const FieldValue& value : values_) {
    if (value.field->name == field) return &value;
  }
  return nullptr;
}

int64_t ProfileLanes::Integer(std::string_view field) const {
  const FieldValue* value = Find(field);
  const bool number = value != nullptr &&
                      (value->type == FieldType::kSigned || value->type == FieldType::kUnsigned);
  return number ? value->s : 0;
}

std::string_view ProfileLanes::Text(std::string_view field) const {
  const FieldValue* value = Find(field);
  return value == nullptr ? std::string_view() : value->text;
}

absl::Status ProfileLanes::OpenLines(TraceReader* reader) {
  lines_.clear();
  for (const StreamInfo& stream : reader->streams()) {
    Line line;
    SYNCLINE_ASSIGN_OR_RETURN(line.cursor, reader->Open(stream.index));
    const auto [thread, is_new] = threads_.try_emplace(stream.name);
    if (is_new) {
      thread->second.name = stream.name;
      thread->second.device = stream.device;
      thread->second.of_steps =
          !stream.device.empty() && WithoutNumber(stream.name) == stream.device + " Steps";
    }
    line.thread = &thread->second;
    lines_.push_back(std::move(line));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ProfileLanes::Refill(Line* line) {
  if (line->next == line->batch.size()) {
    SYNCLINE_ASSIGN_OR_RETURN(line->batch, line->cursor->NextBatch());
    line->next = 0;
  }
  return !line->batch.empty();
}

// All threads in order of time, because a counter is fed by all of them.
absl::Status ProfileLanes::Add(const ProfileInput& profile, ProfileResult* result) {
  if (profile.reader == nullptr) return absl::OkStatus();
  SYNCLINE_RETURN_IF_ERROR(OpenLines(profile.reader));
  using Head = std::pair<int64_t, size_t>;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  const auto put_back = [&](size_t index) -> absl::Status {
    Line& line = lines_[index];
    SYNCLINE_ASSIGN_OR_RETURN(const bool more, Refill(&line));
    if (more) heads.emplace(line.batch[line.next].time_ns, index);
    return absl::OkStatus();
  };
  for (size_t i = 0; i < lines_.size(); ++i) SYNCLINE_RETURN_IF_ERROR(put_back(i));
  while (!heads.empty()) {
    const size_t index = heads.top().second;
    heads.pop();
    Line& line = lines_[index];
    const EventRecord& record = line.batch[line.next++];
    ++result->events;
    if (line.cursor->Decode(record, &values_)) OnEvent(&line, record, result);
    SYNCLINE_RETURN_IF_ERROR(put_back(index));
  }
  for (Line& line : lines_) {
    for (Lane& lane : line.thread->lanes) {
      while (!lane.stack.empty()) CloseTop(&lane);
    }
  }
  partition_.EndPiece();
  PushBounds(profile.covered);
  lines_.clear();
  return absl::OkStatus();
}

void ProfileLanes::OnEvent(Line* line, const EventRecord& record, ProfileResult* result) {
  Event event;
  event.event_class = &ClassOf(record.event_class);
  const Kind kind = event.event_class->kind;
  const auto duration_ns = static_cast<int64_t>(values_[0].u / 1000);
  if (kind == Kind::kRegion) line->allocated_bytes.reset();
  const bool nothing_to_see = kind == Kind::kOther && duration_ns == 0 && IsOfXSpace();
  if (kind == Kind::kRegion || kind == Kind::kPoolMark || nothing_to_see) return;
  int64_t end_ns = 0;
  if (__builtin_add_overflow(record.time_ns, duration_ns, &end_ns)) end_ns = kUnknownHi;
  event.begin = {placement_->clock(), record.time_ns};
  event.end = {placement_->clock(), end_ns};
  event.begin_at = placement_->At(event.begin.ns);
  event.end_at = duration_ns == 0 ? event.begin_at : placement_->At(event.end.ns);
  const bool is_operator = kind == Kind::kOperator || kind == Kind::kSend ||
                           kind == Kind::kReceiveKey || kind == Kind::kInstruction;
  if (is_operator || !IsOfTensorFlow()) ++result->operators;
  if (kind == Kind::kMark) ++result->steps;
  if (kind == Kind::kStep) {
    ++result->steps;
    tensors_->OnStep(owner_.tensors, Integer("id"), event.begin);
  }
  const bool undecided = !event.begin_at.has_value() || !event.end_at.has_value();
  if (!undecided) OnDevice(event, *line->thread);
  if (!event.event_class->shown) {
    if (undecided && kind != Kind::kAllocation) ++result->undecided_events;
    return;
  }
  if (kind == Kind::kAllocation) {
    OnAllocation(event, line);
    return;
  }
  Lane* lane = LaneFor(line->thread, event);
  if (lane == nullptr) {
    ++result->crowded_events;
    return;
  }
  if (IsOfTensorFlow()) OnOperator(event, line, lane->track);
  if (undecided) {
    ++result->undecided_events;
    return;
  }
  Begin(lane, event, kineto_.OnShown(OfDevice(event, *line->thread, values_), lane->track));
}

// What the event says of devices.
void ProfileLanes::OnDevice(const Event& event, const Thread& thread) {
  KinetoObserver::Event seen = OfDevice(event, thread, values_);
  if (thread.of_steps || event.event_class->kind == Kind::kMark) {
    kineto_.OnStep(seen, Integer("step_num"));
    return;
  }
  // Whatever a thread of the program does is what may have launched something.
  const bool is_span = event.event_class->kind != Kind::kDevice && event.begin.ns < event.end.ns;
  if (IsOfXSpace() && seen.device.empty() && is_span) seen.category = kKinetoOperator;
  kineto_.OnEvent(seen);
}

void ProfileLanes::OnOperator(const Event& event, Line* line, TrackId track) {
  OnTensor(event, line, track);
  OnPartition(event);
  OnCollective(event, *line);
}

ProfileLanes::Lane* ProfileLanes::LaneFor(Thread* thread, const Event& event) {
  for (Lane& lane : thread->lanes) {
    while (!lane.stack.empty() && lane.stack.back().end_ns <= event.begin.ns) CloseTop(&lane);
    if (lane.stack.empty() || event.end.ns <= lane.stack.back().end_ns + kNestingSlackNs) {
      return lane.stack.size() < kOpenSpansMax ? &lane : nullptr;
    }
  }
  if (thread->lanes.size() == kThreadLanesMax) return nullptr;
  if (thread->lanes.empty()) thread->name = LaneName(thread->name);
  Lane lane;
  lane.track = AddLane(
      *thread, thread->lanes.empty() ? thread->name : absl::StrCat(thread->name, " (crossing)"));
  thread->lanes.push_back(std::move(lane));
  return &thread->lanes.back();
}

void ProfileLanes::Begin(Lane* lane, const Event& event, uint64_t arrow) {
  Open open;
  open.kind = event.event_class->kind;
  open.end_ns = event.end.ns;
  if (open.kind == Kind::kProcess) open.step_id = Integer("id");
  Span& span = open.span;
  span.track = lane->track;
  span.name = event.event_class->name;
  span.arrow = arrow;
  span.category = event.event_class->category;
  span.depth = static_cast<uint16_t>(std::min<size_t>(lane->stack.size(), 0xffff));
  span.node_begin = event.begin;
  span.node_end = event.end;
  // Two pieces of the wall clock's map may meet a nanosecond apart.
  span.begin = std::max(*event.begin_at, lane->pushed_until);
  span.end = std::max(*event.end_at, span.begin);
  if (!lane->stack.empty()) {
    span.begin = std::min(span.begin, lane->stack.back().span.end);
    span.end = std::min(span.end, lane->stack.back().span.end);
  }
  span.arguments = ArgumentsOf(event);
  lane->pushed_until = span.begin;
  emitter_->SpanBegin(span);
  lane->stack.push_back(std::move(open));
}

void ProfileLanes::CloseTop(Lane* lane) {
  Open open = std::move(lane->stack.back());
  lane->stack.pop_back();
  const int64_t duration_ns = open.span.end.ns - open.span.begin.ns;
  open.span.self_ns = std::max<int64_t>(0, duration_ns - open.children_ns);
  if (!lane->stack.empty()) lane->stack.back().children_ns += duration_ns;
  lane->pushed_until = std::max(lane->pushed_until, open.span.end);
  emitter_->SpanEnd(open.span);
}

std::vector<Argument> ProfileLanes::ArgumentsOf(const Event& event) {
  std::vector<Argument> arguments;
  const auto add = [&](std::string_view key) -> Argument& {
    Argument& argument = arguments.emplace_back();
    argument.key = emitter_->Text(key);
    return argument;
  };
  if (event.event_class->type != kNoText) {
    Argument& type = add("type");
    type.kind = Argument::Kind::kText;
    type.text = event.event_class->type;
  }
  for (const FieldValue& value : values_) {
    const std::string& name = value.field->name;
    // What begins with "_" is TensorFlow's own bookkeeping, or ours.
    if (name == kDuration || (!IsOfTable() && (name.empty() || name[0] == '_'))) continue;
    if (value.type == FieldType::kBlob) continue;
    const bool step = name == "step_id" || (name == "id" && event.event_class->node.empty());
    Argument& argument = add(step ? std::string_view("step id") : std::string_view(name));
    if (value.type == FieldType::kString) {
      argument.kind = Argument::Kind::kText;
      argument.text = emitter_->Text(value.text);
    } else if (value.type == FieldType::kReal) {
      argument.kind = Argument::Kind::kReal;
      argument.d = value.d;
    } else if (value.type == FieldType::kSigned) {
      argument.kind = Argument::Kind::kInt;
      argument.i = value.s;
    } else {
      argument.kind = Argument::Kind::kUint;
      argument.u = value.u;
    }
  }
  return arguments;
}

void ProfileLanes::OnAllocation(const Event& event, Line* line) {
  // A thread that takes a tensor off the network allocates it before it says that it is there; what
  // an operator allocates is something else.
  const bool at_work = Enclosing(*line->thread, Kind::kProcess, event) != nullptr;
  const bool new_memory = Find("requested_bytes") != nullptr && Integer("requested_bytes") > 0;
  if (!at_work && new_memory && emitter_->Text("MemoryAllocation") == event.event_class->name) {
    line->allocated_bytes = static_cast<uint64_t>(Integer("requested_bytes"));
  }
  if (!event.begin_at.has_value() || Find("bytes_allocated") == nullptr) return;
  const std::string allocator(Text("allocator_name"));
  const auto [counter, is_new] = counters_.try_emplace(allocator, kNoTrack);
  if (is_new) {
    counter->second = AddTrack(TrackKind::kCounter, "memory · " + allocator, "bytes");
  }
  emitter_->Push(CounterValue{counter->second, *event.begin_at,
                              static_cast<double>(Integer("bytes_allocated"))});
}

// How far the group's times may be off: the node's clock, and what the wall clock adds to it.
void ProfileLanes::PushBounds(const ClockInterval& covered) {
  const int64_t length_ns = std::max<int64_t>(0, covered.end_ns - covered.begin_ns);
  const int64_t step_ns = std::max(kBoundStepNs, length_ns / kBoundPointsMax + 1);
  for (int64_t offset_ns = 0; offset_ns <= length_ns; offset_ns += step_ns) {
    const int64_t wall_ns = covered.begin_ns + offset_ns;
    const std::optional<TimelineTime> time = placement_->At(wall_ns);
    const std::optional<int64_t> bound_ns = placement_->BoundNs(wall_ns);
    if (!time.has_value() || !bound_ns.has_value()) continue;
    if (bound_track_ == kNoTrack) bound_track_ = AddTrack(TrackKind::kCounter, "clock bound", "ns");
    emitter_->Push(CounterValue{bound_track_, *time, static_cast<double>(*bound_ns)});
  }
}

}  // namespace syncline::timeline
