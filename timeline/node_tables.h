// SPDX-License-Identifier: Apache-2.0
// Who is who on one node: thread and process keys, names, found by a first walk over the node's
// streams.
//
// Two walks instead of one, because an announcement may be late: another thread's stream may hold
// it, or it was lost and only the control block knows. The first walk decodes announcements only.
//
// Keys of events are unique among the processes of one *owner* of buffers: a user (buffers per
// user), a process (buffers per process), or, without that information, one trace directory.
#ifndef SYNCLINE_TIMELINE_NODE_TABLES_H_
#define SYNCLINE_TIMELINE_NODE_TABLES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "timeline/node_input.h"
#include "timeline/schema.h"

namespace syncline::timeline {

// What a program says of one of its counters: a name's id, or, where that is 0, the number.
struct CounterFact {
  uint32_t text = 0;
  uint64_t value = 0;
  int64_t said_ns = kUnknownLo;  // trace clock
};

struct ProcessEntry {
  uint32_t owner = 0;
  uint32_t process_key = 0;
  ProcessKey key;  // pid 0: unknown
  const KnownProcess* known = nullptr;
  std::unordered_map<uint32_t, KnownName> announced;
  // By domain and name, then by ITT's number of what it is.
  std::map<std::pair<uint32_t, uint32_t>, std::map<uint8_t, CounterFact>> counters;

  // The control block's name first, then the announced one; where there is none, empty and without
  // data().
  std::string_view Name(uint32_t id) const;
};

struct ThreadEntry {
  uint32_t thread_key = 0;
  uint32_t process = 0;  // index into NodeTables::processes
  int32_t tid = 0;
  std::string name;
  bool name_is_known = false;  // from the control block, which is newest: it was read last
};

class NodeTables {
 public:
  // What the control blocks know. `node` must outlive it.
  static NodeTables Of(const NodeInput& node, uint32_t node_index);
  // What is announced in `part` of the trace, by so many threads.
  absl::Status Scan(const ClockInterval& part, unsigned threads);

  const std::vector<ProcessEntry>& processes() const { return processes_; }
  const std::vector<ThreadEntry>& threads() const { return threads_; }
  // Whether a task is related to another one anywhere in what was scanned.
  bool has_relations() const { return has_relations_; }
  uint32_t owner_of_reader(size_t reader) const { return owner_of_reader_[reader]; }
  // Its place in threads() or processes(); nullopt: it was neither known nor announced.
  std::optional<uint32_t> FindThread(uint32_t owner, uint32_t thread_key) const;
  std::optional<uint32_t> FindProcess(uint32_t owner, uint32_t process_key) const;
  // Whether a control block knows the thread.
  bool Knows(uint32_t owner, uint32_t thread_key) const;

  // Makes the entry when the key was never announced.
  uint32_t ThreadFor(uint32_t owner, uint32_t thread_key);
  uint32_t ProcessFor(uint32_t owner, uint32_t process_key);
  // A thread that foreign events name by their vpid and vtid contexts.
  uint32_t ThreadForPid(uint32_t owner, int32_t pid, int32_t tid, std::string_view command);

 private:
  void AddOwners(const NodeInput& node);
  void AddKnown(const NodeInput& node);
  struct Announcement;
  struct Announcements;
  absl::Status ScanReader(TraceReader* reader, uint32_t owner, const ClockInterval& part,
                          unsigned threads);
  void Announce(uint32_t owner, const Announcement& said);
  void AnnounceCounter(uint32_t owner, const Announcement& said);

  bool has_relations_ = false;
  uint32_t node_index_ = 0;
  const NodeInput* node_ = nullptr;
  std::vector<ProcessEntry> processes_;
  std::vector<ThreadEntry> threads_;
  std::vector<uint32_t> owner_of_reader_;
  std::vector<std::string> owners_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> process_by_key_;  // (owner, key)
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> thread_by_key_;
  std::map<std::pair<int32_t, int32_t>, uint32_t> thread_by_pid_;  // (pid, tid), foreign
  // The first entries by their pid, and by their process and tid, as far as they were looked
  // through. Only for what comes after Scan(): until then pids and tids change.
  void LookThrough();
  size_t processes_looked_through_ = 0;
  size_t threads_looked_through_ = 0;
  std::unordered_map<int32_t, uint32_t> first_by_pid_;
  std::map<std::pair<uint32_t, int32_t>, uint32_t> first_by_tid_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_NODE_TABLES_H_
