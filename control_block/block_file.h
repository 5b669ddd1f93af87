// SPDX-License-Identifier: Apache-2.0
// Bytes of a control block -> facts of a process, its threads and its names.
//
// The files are written by the training process (instrumentation/abi/control_block.h) and may be
// half written, truncated or hostile: every length is checked, every text of a block is cut at its
// NUL and made UTF-8, nothing is trusted. Pure functions over bytes, used by the agent on living
// processes and by the timeline on the copies that a recording keeps in nodes/<node>/processes/.
// Thread-safe: no state.
#ifndef SYNCLINE_CONTROL_BLOCK_BLOCK_FILE_H_
#define SYNCLINE_CONTROL_BLOCK_BLOCK_FILE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace syncline::control_block {

// Which process a block belongs to; also the stem of its files' names.
struct BlockId {
  uint64_t pid_namespace = 0;  // inode of /proc/PID/ns/pid
  int32_t pid = 0;             // as the process sees itself
  uint64_t start_ticks = 0;
  auto operator<=>(const BlockId&) const = default;
};

// "4026531836-1234-98765.block", "...names".
std::string BlockFileName(const BlockId& id);
std::string NamesFileName(const BlockId& id);
// The id of a ".block" file's name (no directory part); nullopt for any other file.
std::optional<BlockId> ParseBlockFileName(std::string_view name);

enum class ProcessState : uint32_t { kStarting = 0, kLive = 1, kExited = 2 };

struct ProcessFacts {
  BlockId id;
  uint32_t uid = 0;
  uint32_t process_key = 0;  // names the process in events
  ProcessState state = ProcessState::kStarting;
  uint32_t sources = 0;  // SYNCLINE_SOURCE_* bits
  uint64_t started_monotonic_ns = 0;
  int32_t rank = -1;  // -1: unknown, like the next two
  int32_t world_size = -1;
  int32_t local_rank = -1;
  std::string job;
  std::string incarnation;
  std::string role;
  std::string hostname;
  std::string boot_id;
  std::string executable;
  std::string command_line;  // secrets redacted
};

// What the cost in one recording is made of: instrumentation/abi/control_block.h, syncline_cost.
struct CostSums {
  uint64_t samples = 0;  // 0: none was timed, or the libraries did not count it
  uint64_t calls = 0;
  uint64_t sampled_ns = 0;
  uint64_t squares = 0;
  uint64_t timed_ns = 0;
  uint64_t interrupted = 0;
  uint64_t interrupted_ns = 0;
};

// What the process answered to the agent's word.
struct GateAnswer {
  uint32_t generation = 0;            // the agent's word as it stands; 0: off
  uint32_t stacks_asked = 0;          // the number of the last request for stacks; 0: none
  uint32_t generation_seen = 0;       // the last value of the gate that the process acted on
  uint32_t recording_generation = 0;  // the recording that the rest is about; 0: never recorded
  uint64_t asked_monotonic_ns = 0;    // its first call after the gate opened
  uint64_t on_monotonic_ns = 0;       // LTTng took its first event; 0: not yet, calls were lost
  uint64_t off_monotonic_ns = 0;      // its first call after the gate closed; 0: still on
  uint64_t lost_before_on = 0;        // calls between asked and on; part of lost_since_on
  bool paused = false;                // the program called __itt_pause
  uint32_t pauses = 0;                // how often in the recording; one from before counts, too
  // Since asked_monotonic_ns: sums over the slots, less those of then.
  uint64_t events_since_on = 0;
  uint64_t lost_since_on = 0;
  uint64_t cost_ns_since_on = 0;  // what it is worth: cost.h
  CostSums cost_since_on;
};

struct ThreadSlot {
  uint32_t thread_key = 0;
  int32_t tid = 0;
  uint64_t events = 0;
  uint64_t lost = 0;
  uint64_t cost_ns = 0;
  uint64_t cost_samples = 0;  // 0: cost_ns was never measured
  std::string name;
};

struct Block {
  ProcessFacts facts;
  GateAnswer gate;
  uint64_t names_bytes = 0;  // valid bytes of the names file, as claimed
  uint32_t names_count = 0;
  uint32_t names_refused = 0;       // names that did not fit the table
  std::vector<ThreadSlot> threads;  // used slots only
  uint64_t bytes_expected = 0;      // header and all slots: a shorter file was cut

  uint64_t events() const;  // sums over the slots
  uint64_t lost() const;
  uint64_t cost_ns() const;
};

// InvalidArgument: not a control block. DataLoss: too short. FailedPrecondition: an unknown
// version. A block cut inside the slots gives the whole slots.
absl::StatusOr<Block> ParseBlock(std::span<const uint8_t> bytes);

// Name kinds of docs/event-schema.md, syncline:name.
enum class NameKind : uint8_t {
  kNone = 0,
  kDomain = 1,
  kString = 2,
  kCounter = 3,
  kFrame = 4,
  kEvent = 5,
  kSync = 6,
  kOther = 7,
};

// The names of one process. Owns its bytes; movable and copyable.
class NameTable {
 public:
  NameTable() = default;

  // Number of names; ids are 1..size().
  uint32_t size() const { return static_cast<uint32_t>(entries_.size()); }
  // The text of `id`; empty for 0 and for unknown ids (Has tells them from an empty name).
  std::string_view Text(uint32_t id) const;
  NameKind Kind(uint32_t id) const;
  bool Has(uint32_t id) const { return id >= 1 && id <= entries_.size(); }
  // Header and whole records, up to the first that is none. The block's names_bytes says how many
  // there were: with fewer, names are missing.
  uint64_t valid_bytes() const { return valid_bytes_; }
  // The bytes did not end with a whole record or zeros: later names may be missing.
  bool damaged() const { return damaged_; }

 private:
  friend absl::StatusOr<NameTable> ParseNames(std::span<const uint8_t>);
  struct Entry {
    uint32_t offset;
    uint16_t text_bytes;
    NameKind kind;
  };
  std::string texts_;
  std::vector<Entry> entries_;
  uint64_t valid_bytes_ = 0;
  bool damaged_ = false;
};

// Reads a names file, whole records only. InvalidArgument: not one; FailedPrecondition: unknown
// version; an empty file is an empty table (the process died while it made it).
absl::StatusOr<NameTable> ParseNames(std::span<const uint8_t> bytes);

}  // namespace syncline::control_block

#endif  // SYNCLINE_CONTROL_BLOCK_BLOCK_FILE_H_
