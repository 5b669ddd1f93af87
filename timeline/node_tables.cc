#include "timeline/node_tables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"

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

absl::Status NodeTables::Scan(const ClockInterval& part) {
  for (size_t i = 0; i < node_->readers.size(); ++i) {
    SYNCLINE_RETURN_IF_ERROR(ScanReader(node_->readers[i], owner_of_reader_[i], part));
  }
  return absl::OkStatus();
}

bool NodeTables::Knows(uint32_t owner, uint32_t thread_key) const {
  const auto found = thread_by_key_.find({owner, thread_key});
  return found != thread_by_key_.end() &&
         processes_[threads_[found->second].process].known != nullptr;
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

uint32_t NodeTables::ThreadForPid(uint32_t owner, int32_t pid, int32_t tid,
                                  std::string_view command) {
  const auto found = thread_by_pid_.find({pid, tid});
  if (found != thread_by_pid_.end()) return found->second;
  auto process = process_by_pid_.find(pid);
  if (process == process_by_pid_.end()) {
    // A process of ours with this pid is the same one.
    uint32_t index = 0;
    while (index < processes_.size() && processes_[index].key.pid != pid) ++index;
    if (index == processes_.size()) {
      ProcessEntry entry;
      entry.owner = owner;
      entry.key.node = node_index_;
      entry.key.pid = pid;
      processes_.push_back(std::move(entry));
    }
    process = process_by_pid_.emplace(pid, index).first;
  }
  uint32_t index = 0;
  while (index < threads_.size() &&
         (threads_[index].process != process->second || threads_[index].tid != tid)) {
    ++index;
  }
  if (index == threads_.size()) {
    ThreadEntry thread;
    thread.process = process->second;
    thread.tid = tid;
    thread.name = command;
    threads_.push_back(std::move(thread));
  }
  thread_by_pid_[{pid, tid}] = index;
  return index;
}

void NodeTables::Announce(uint32_t owner, EventKind kind, const EventReader& event) {
  ProcessEntry& process = processes_[ProcessFor(owner, event.U32(Field::kProcess))];
  switch (kind) {
    case EventKind::kOn: {
      process.key.pid = static_cast<int32_t>(event.U32(Field::kPid));
      process.key.pid_namespace = event.U64(Field::kPidns);
      process.key.start_ticks = event.U64(Field::kStartTicks);
      if (process.known != nullptr) break;
      for (const KnownProcess& known : node_->processes) {
        ProcessKey key = known.key;
        key.node = node_index_;
        if (key == process.key) process.known = &known;
      }
      break;
    }
    case EventKind::kName:
      process.announced[event.U32(Field::kId)] = {static_cast<uint8_t>(event.U64(Field::kKind)),
                                                  std::string(event.Text(Field::kText))};
      break;
    case EventKind::kThread: {
      const uint32_t process_index = process_by_key_[{owner, process.process_key}];
      ThreadEntry& thread = threads_[ThreadFor(owner, event.U32(Field::kThread))];
      thread.process = process_index;
      thread.tid = static_cast<int32_t>(event.U32(Field::kTid));
      // The last announcement names it: threads are renamed once they know what they do.
      const std::string_view name = event.Text(Field::kName);
      if (!thread.name_is_known && !name.empty()) thread.name = name;
      break;
    }
    default:
      break;
  }
}

absl::Status NodeTables::ScanReader(TraceReader* reader, uint32_t owner,
                                    const ClockInterval& part) {
  EventReader event;
  for (const StreamInfo& stream : reader->streams()) {
    SYNCLINE_ASSIGN_OR_RETURN(const std::unique_ptr<EventCursor> cursor,
                              reader->Open(stream.index, part.begin_ns, part.end_ns));
    for (;;) {
      SYNCLINE_ASSIGN_OR_RETURN(const std::span<const EventRecord> batch, cursor->NextBatch());
      if (batch.empty()) break;
      for (const EventRecord& record : batch) {
        const EventKind kind = event.Kind(record);
        if (kind != EventKind::kOn && kind != EventKind::kName && kind != EventKind::kThread) {
          continue;
        }
        if (event.Decode(cursor.get(), record)) Announce(owner, kind, event);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace syncline::timeline
