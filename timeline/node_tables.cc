// SPDX-License-Identifier: Apache-2.0
#include "timeline/node_tables.h"

#include <algorithm>
#include <compare>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"
#include "timeline/id_fields.h"

namespace syncline::timeline {
namespace {

std::string Fact(const TraceReader& reader, const char* key) {
  const auto found = reader.environment().find(key);
  return found == reader.environment().end() ? std::string() : found->second;
}

// Traces of one owner share one string: rotation chunks and 32/64-bit halves of one user's buffers.
std::string OwnerName(const TraceReader& reader, size_t index) {
  const std::string scheme = Fact(reader, "tracer_buffering_scheme");
  if (scheme == "uid") return absl::StrCat("uid:", Fact(reader, "tracer_buffering_id"));
  if (scheme == "pid") {
    return absl::StrCat("pid:", Fact(reader, "vpid"), ":", Fact(reader, "vpid_datetime"));
  }
  return absl::StrCat("trace:", index);
}

}  // namespace

// What an announcement says, in the order in which they count: by stream, then time. The rest makes
// the order the same for any number of threads.
struct NodeTables::Announcement {
  uint32_t stream = 0;
  int64_t time_ns = 0;
  EventKind kind = EventKind::kName;
  uint32_t process = 0;
  uint32_t thread = 0;
  uint32_t id = 0;      // of a name; of a thread or a process in the kernel; of a counter's name
  uint8_t kind_of = 0;  // of name, or what is said of a counter
  uint32_t domain = 0;  // of a counter; these three
  uint32_t text_id = 0;
  uint64_t value = 0;
  uint64_t pid_namespace = 0;
  uint64_t start_ticks = 0;
  std::string text;
  auto operator<=>(const Announcement&) const = default;
};

// Those that one thread meets.
struct NodeTables::Announcements {
  std::vector<Announcement> list;
  bool has_relations = false;
  EventReader event;

  // Records of one class.
  absl::Status Take(EventCursor& cursor, std::span<const EventRecord> records) {
    const EventKind kind = event.Kind(records.front());
    has_relations |= kind == EventKind::kRelation;
    const bool of_counter = kind == EventKind::kCounterMetadata;
    if (!IsAnnouncement(kind) && !of_counter) return absl::OkStatus();
    for (const EventRecord& record : records) {
      if (!event.Decode(&cursor, record)) continue;
      Announcement said;
      said.stream = cursor.stream().index;
      said.time_ns = record.time_ns;
      said.kind = kind;
      said.process = event.U32(Field::kProcess);
      said.thread = event.U32(Field::kThread);
      said.id = event.U32(kind == EventKind::kName ? Field::kId
                          : kind == EventKind::kOn ? Field::kPid
                          : of_counter             ? Field::kName
                                                   : Field::kTid);
      said.kind_of = static_cast<uint8_t>(event.U64(Field::kKind));
      said.domain = event.U32(Field::kDomain);
      said.text_id = of_counter ? event.U32(Field::kText) : 0;
      said.value = event.U64(Field::kValue);
      said.pid_namespace = event.U64(Field::kPidns);
      said.start_ticks = event.U64(Field::kStartTicks);
      // Of a counter the fields of these names are ids.
      said.text = event.Text(kind == EventKind::kName ? Field::kText : Field::kName);
      list.push_back(std::move(said));
    }
    return absl::OkStatus();
  }
};

std::string_view ProcessEntry::Name(uint32_t id) const {
  if (id == 0) return {};
  if (known != nullptr) {
    const auto found = known->names.find(id);
    if (found != known->names.end()) return found->second.text;
  }
  const auto found = announced.find(id);
  return found == announced.end() ? std::string_view() : std::string_view(found->second.text);
}

NodeTables NodeTables::Of(const NodeInput& node, uint32_t node_index) {
  NodeTables tables;
  tables.node_index_ = node_index;
  tables.node_ = &node;
  tables.AddOwners(node);
  tables.AddKnown(node);
  return tables;
}

absl::Status NodeTables::Scan(const ClockInterval& part, unsigned threads) {
  for (size_t i = 0; i < node_->readers.size(); ++i) {
    SYNCLINE_RETURN_IF_ERROR(ScanReader(node_->readers[i], owner_of_reader_[i], part, threads));
  }
  return absl::OkStatus();
}

std::optional<uint32_t> NodeTables::FindThread(uint32_t owner, uint32_t thread_key) const {
  const auto found = thread_by_key_.find({owner, thread_key});
  if (found == thread_by_key_.end()) return std::nullopt;
  return found->second;
}

std::optional<uint32_t> NodeTables::FindProcess(uint32_t owner, uint32_t process_key) const {
  const auto found = process_by_key_.find({owner, process_key});
  if (found == process_by_key_.end()) return std::nullopt;
  return found->second;
}

bool NodeTables::Knows(uint32_t owner, uint32_t thread_key) const {
  const std::optional<uint32_t> thread = FindThread(owner, thread_key);
  return thread.has_value() && processes_[threads_[*thread].process].known != nullptr;
}

void NodeTables::AddOwners(const NodeInput& node) {
  for (size_t i = 0; i < node.readers.size(); ++i) {
    const std::string name = OwnerName(*node.readers[i], i);
    const auto found = std::find(owners_.begin(), owners_.end(), name);
    owner_of_reader_.push_back(static_cast<uint32_t>(found - owners_.begin()));
    if (found == owners_.end()) owners_.push_back(name);
  }
}

void NodeTables::AddKnown(const NodeInput& node) {
  for (const KnownProcess& known : node.processes) {
    if (known.process_key == 0) continue;
    const std::string uid = absl::StrCat("uid:", known.uid);
    const std::string pid = absl::StrCat("pid:", known.key.pid, ":");
    for (uint32_t owner = 0; owner < owners_.size(); ++owner) {
      if (owners_[owner] != uid && !owners_[owner].starts_with(pid)) continue;
      ProcessEntry& process = processes_[ProcessFor(owner, known.process_key)];
      if (process.known != nullptr) continue;
      process.known = &known;
      process.key = known.key;
      process.key.node = node_index_;
      for (const KnownThread& thread : known.threads) {
        // The last slot of a full block is shared by many threads; its key is the first one's.
        ThreadEntry& entry = threads_[ThreadFor(owner, thread.key)];
        entry.process = process_by_key_[{owner, known.process_key}];
        entry.tid = thread.tid;
        entry.name = thread.name;
        entry.name_is_known = !thread.name.empty();
      }
    }
  }
}

uint32_t NodeTables::ProcessFor(uint32_t owner, uint32_t process_key) {
  const auto [entry, inserted] =
      process_by_key_.try_emplace({owner, process_key}, static_cast<uint32_t>(processes_.size()));
  if (inserted) {
    ProcessEntry process;
    process.owner = owner;
    process.process_key = process_key;
    process.key.node = node_index_;
    processes_.push_back(std::move(process));
  }
  return entry->second;
}

uint32_t NodeTables::ThreadFor(uint32_t owner, uint32_t thread_key) {
  const auto found = thread_by_key_.find({owner, thread_key});
  if (found != thread_by_key_.end()) return found->second;
  ThreadEntry thread;
  thread.thread_key = thread_key;
  thread.process = ProcessFor(owner, 0);  // process 0: nobody knows whose it is
  const auto index = static_cast<uint32_t>(threads_.size());
  threads_.push_back(std::move(thread));
  thread_by_key_[{owner, thread_key}] = index;
  return index;
}

void NodeTables::LookThrough() {
  for (size_t& i = processes_looked_through_; i < processes_.size(); ++i) {
    first_by_pid_.try_emplace(processes_[i].key.pid, static_cast<uint32_t>(i));
  }
  for (size_t& i = threads_looked_through_; i < threads_.size(); ++i) {
    first_by_tid_.try_emplace({threads_[i].process, threads_[i].tid}, static_cast<uint32_t>(i));
  }
}

uint32_t NodeTables::ThreadForPid(uint32_t owner, int32_t pid, int32_t tid,
                                  std::string_view command) {
  const auto found = thread_by_pid_.find({pid, tid});
  if (found != thread_by_pid_.end()) return found->second;
  LookThrough();
  // A process of ours with this pid is the same one, and so is its thread.
  const auto [process, is_new_process] =
      first_by_pid_.try_emplace(pid, static_cast<uint32_t>(processes_.size()));
  if (is_new_process) {
    ProcessEntry entry;
    entry.owner = owner;
    entry.key.node = node_index_;
    entry.key.pid = pid;
    processes_.push_back(std::move(entry));
  }
  const auto [thread, is_new_thread] =
      first_by_tid_.try_emplace({process->second, tid}, static_cast<uint32_t>(threads_.size()));
  if (is_new_thread) {
    ThreadEntry entry;
    entry.process = process->second;
    entry.tid = tid;
    entry.name = command;
    threads_.push_back(std::move(entry));
  }
  thread_by_pid_[{pid, tid}] = thread->second;
  return thread->second;
}

void NodeTables::Announce(uint32_t owner, const Announcement& said) {
  ProcessEntry& process = processes_[ProcessFor(owner, said.process)];
  switch (said.kind) {
    case EventKind::kOn: {
      process.key.pid = static_cast<int32_t>(said.id);
      process.key.pid_namespace = said.pid_namespace;
      process.key.start_ticks = said.start_ticks;
      if (process.known != nullptr) break;
      for (const KnownProcess& known : node_->processes) {
        ProcessKey key = known.key;
        key.node = node_index_;
        if (key == process.key) process.known = &known;
      }
      break;
    }
    case EventKind::kName:
      process.announced[said.id] = {said.kind_of, said.text};
      break;
    case EventKind::kThread: {
      const uint32_t process_index = process_by_key_[{owner, process.process_key}];
      ThreadEntry& thread = threads_[ThreadFor(owner, said.thread)];
      thread.process = process_index;
      thread.tid = static_cast<int32_t>(said.id);
      // The last announcement names it: threads are renamed once they know what they do.
      if (!thread.name_is_known && !said.text.empty()) thread.name = said.text;
      break;
    }
    default:
      break;
  }
}

// When all threads are known.
void NodeTables::AnnounceCounter(uint32_t owner, const Announcement& said) {
  const std::optional<uint32_t> thread = FindThread(owner, said.thread);
  if (!thread.has_value()) return;
  auto& counters = processes_[threads_[*thread].process].counters;
  CounterFact& fact = counters[{said.domain, said.id}][said.kind_of];
  if (fact.said_ns <= said.time_ns) fact = {said.text_id, said.value, said.time_ns};
}

absl::Status NodeTables::ScanReader(TraceReader* reader, uint32_t owner, const ClockInterval& part,
                                    unsigned threads) {
  std::vector<Announcements> found(std::max(threads, 1u));
  const auto taker = [](Announcements* one) {
    return [one](EventCursor& cursor, std::span<const EventRecord> records) {
      return one->Take(cursor, records);
    };
  };
  std::vector<decltype(taker(nullptr))> takers;
  for (Announcements& one : found) takers.push_back(taker(&one));
  if (part.begin_ns == kUnknownLo && part.end_ns == kUnknownHi) {
    const std::vector<TraceReader::Visit> visits(takers.begin(), takers.end());
    SYNCLINE_RETURN_IF_ERROR(reader->ScanShared(visits).status());
  } else {
    for (const StreamInfo& stream : reader->streams()) {
      SYNCLINE_ASSIGN_OR_RETURN(const std::unique_ptr<EventCursor> cursor,
                                reader->Open(stream.index, part.begin_ns, part.end_ns));
      for (;;) {
        SYNCLINE_ASSIGN_OR_RETURN(const std::span<const EventRecord> batch, cursor->NextBatch());
        if (batch.empty()) break;
        SYNCLINE_RETURN_IF_ERROR(VisitByClass(*cursor, batch, takers[0]));
      }
    }
  }
  std::vector<Announcement> all;
  for (Announcements& some : found) {
    std::move(some.list.begin(), some.list.end(), std::back_inserter(all));
    has_relations_ |= some.has_relations;
  }
  std::sort(all.begin(), all.end());
  for (const Announcement& said : all) {
    if (said.kind != EventKind::kCounterMetadata) Announce(owner, said);
  }
  for (const Announcement& said : all) {
    if (said.kind == EventKind::kCounterMetadata) AnnounceCounter(owner, said);
  }
  return absl::OkStatus();
}

}  // namespace syncline::timeline
