// SPDX-License-Identifier: Apache-2.0
// Where the tracks of a timeline stand in Perfetto's interface, and what they are called there:
//
//   all nodes                               T, and below it what concerns several nodes
//   rank 0 · worker-0 · python train.py     what its main thread did, and below it:
//     loader 4712                           its other threads, by their tids,
//     TensorFlow /job:worker/task:0         groups, tracks that overlap, counters, what is missing,
//     node worker-0                         and the node, under its first process
//   rank 1 · worker-1 · python train.py
//
// Why these are no processes and threads of Perfetto: its interface orders processes by how much
// they did (since its version 57 a file may say otherwise), shows a number behind each name, and
// merges what has equal pids, as processes of two nodes often do. Tracks without a process stand in
// the order of their names, what is below them in the order that the file gives, in all versions
// since 2024. Older ones show the same tracks in another order. machine_id, Perfetto's own word for
// "another host", is not used: flows never cross machines.
//
// Queries find the tables `process` and `thread` filled all the same: a row's pid or tid is the
// trace_id of the track that shows it,
//   join track t on t.id = slice.track_id
//   join thread on thread.tid = extract_arg(t.source_arg_set_id, 'trace_id')
//   join process using (upid)
//
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_PERFETTO_TRACK_TREE_H_
#define SYNCLINE_EXPORT_PERFETTO_TRACK_TREE_H_

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "export/perfetto/packet_buffer.h"
#include "export/perfetto/proto_writer.h"
#include "timeline/sink.h"

namespace syncline::perfetto {

struct KnownTrack {
  timeline::TrackKind kind = timeline::TrackKind::kNode;
  uint64_t uuid = 0;
  uint64_t process_uuid = 0;  // of the node or process that it belongs to
  std::string name;
};

// Below one parent: one sort of tracks after the other.
enum class Place : uint8_t { kThreads, kGroups, kOverlapping, kCounters, kMissing, kNode };

class TrackTree {
 public:
  static constexpr uint64_t kAllNodes = 1;  // uuid

  // A track that is no track of the timeline's.
  struct Extra {
    uint64_t parent_uuid = 0;
    Place place = Place::kOverlapping;
    std::string name;
    std::string description;
    const ProtoWriter* counter = nullptr;
  };

  // `packets` outlives this.
  explicit TrackTree(PacketBuffer* packets) : packets_(packets) {}

  void Add(const timeline::Track& track);
  uint64_t Add(const Extra& extra);  // its uuid
  const KnownTrack& operator[](timeline::TrackId id) const { return tracks_[id]; }
  uint64_t NodeUuid(uint32_t node) const;
  // Writes the descriptors of processes, nodes and lanes: their names, order and place depend on
  // what others there are. Counters must be described before their first value; these need not.
  void Finish();

 private:
  // A node or a process.
  struct Top {
    uint64_t uuid = 0;
    uint32_t node = 0;
    int32_t pid = 0;
    int32_t rank = -1;
    bool has_main_thread = false;  // on the process's own track
    std::string name;
    std::string job;
    std::string command;
    std::string description;
  };

  // Of a group.
  struct Lane {
    uint64_t parent_uuid = 0;
    std::string name;
    uint64_t uuid = 0;

    auto operator<=>(const Lane&) const = default;
  };

  void AddTop(const timeline::Track& track, KnownTrack* known);
  void AddThread(const timeline::Track& track, KnownTrack* known);
  void AddChild(const timeline::Track& track, KnownTrack* known);
  void WriteDescriptor(uint64_t uuid, const ProtoWriter& descriptor);
  void WriteProcess(const Top& process, const std::string& name);
  void WriteNode(const Top& node);
  void WriteLanes();
  void SortProcesses();
  std::string ShownName(const Top& process, int digits, bool with_job) const;

  PacketBuffer* packets_;
  std::vector<KnownTrack> tracks_;  // by id
  std::map<uint32_t, Top> nodes_;
  std::vector<Top> processes_;
  std::vector<Lane> lanes_;
  std::map<uint64_t, size_t> process_of_uuid_;
  ProtoWriter threads_;  // of the table `thread`
  uint64_t next_uuid_ = kAllNodes + 1;
};

}  // namespace syncline::perfetto

#endif  // SYNCLINE_EXPORT_PERFETTO_TRACK_TREE_H_
