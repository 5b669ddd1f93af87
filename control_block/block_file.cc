// SPDX-License-Identifier: Apache-2.0
#include "control_block/block_file.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/text.h"
#include "common/utf8.h"
#include "instrumentation/abi/control_block.h"

namespace syncline::control_block {
namespace {

constexpr std::string_view kBlockSuffix = ".block";

std::string Stem(const BlockId& id) {
  return absl::StrCat(id.pid_namespace, "-", id.pid, "-", id.start_ticks);
}

// A fixed array's text: up to its NUL, wherever that is. It was cut there, perhaps inside a
// character.
template <size_t n>
std::string Text(const char (&array)[n]) {
  return RepairedUtf8(std::string_view(array, ::strnlen(array, n)));
}

// Counters only grow, but a hostile block may say otherwise.
uint64_t Since(uint64_t now, uint64_t then) { return now > then ? now - then : 0; }

void FillFacts(const syncline_block& raw, ProcessFacts& facts) {
  facts.id = {raw.pid_namespace, raw.pid, raw.start_ticks};
  facts.uid = raw.uid;
  facts.process_key = raw.process_key;
  facts.state = raw.state == SYNCLINE_STATE_LIVE     ? ProcessState::kLive
                : raw.state == SYNCLINE_STATE_EXITED ? ProcessState::kExited
                                                     : ProcessState::kStarting;
  facts.sources = raw.sources;
  facts.started_monotonic_ns = raw.started_monotonic_ns;
  facts.rank = std::max(raw.rank, -1);
  facts.world_size = std::max(raw.world_size, -1);
  facts.local_rank = std::max(raw.local_rank, -1);
  facts.job = Text(raw.job);
  facts.incarnation = Text(raw.incarnation);
  facts.role = Text(raw.role);
  facts.hostname = Text(raw.hostname);
  facts.boot_id = Text(raw.boot_id);
  facts.executable = Text(raw.executable);
  facts.command_line = Text(raw.command_line);
}

template <uint64_t ThreadSlot::*member>
uint64_t Sum(const std::vector<ThreadSlot>& threads) {
  uint64_t sum = 0;
  for (const ThreadSlot& slot : threads) sum += slot.*member;
  return sum;
}

CostSums Since(const syncline_cost& now, const syncline_cost& then) {
  return {Since(now.samples, then.samples),
          Since(now.calls, then.calls),
          Since(now.sampled_ns, then.sampled_ns),
          Since(now.squares, then.squares),
          Since(now.timed_ns, then.timed_ns),
          Since(now.interrupted, then.interrupted),
          Since(now.interrupted_ns, then.interrupted_ns)};
}

void FillGate(const syncline_block& raw, Block& block) {
  GateAnswer& gate = block.gate;
  gate.generation = raw.generation;
  gate.stacks_asked = raw.stacks_asked;
  gate.generation_seen = raw.generation_seen;
  gate.recording_generation = raw.recording_generation;
  gate.asked_monotonic_ns = raw.asked_monotonic_ns;
  gate.on_monotonic_ns = raw.on_monotonic_ns;
  gate.off_monotonic_ns = raw.off_monotonic_ns;
  gate.lost_before_on = raw.lost_before_on;
  gate.paused = raw.paused != 0;
  gate.pauses = raw.pauses;
  if (raw.recording_generation == 0) return;
  gate.events_since_on = Since(block.events(), raw.events_at_on);
  gate.lost_since_on = Since(block.lost(), raw.lost_at_on);
  gate.cost_ns_since_on = Since(block.cost_ns(), raw.cost_ns_at_on);
  gate.cost_since_on = Since(raw.cost, raw.cost_at_on);
}

}  // namespace

std::string BlockFileName(const BlockId& id) { return absl::StrCat(Stem(id), ".block"); }
std::string NamesFileName(const BlockId& id) { return absl::StrCat(Stem(id), ".names"); }

std::optional<BlockId> ParseBlockFileName(std::string_view name) {
  if (!name.ends_with(kBlockSuffix)) return std::nullopt;
  name.remove_suffix(kBlockSuffix.size());
  const std::vector<std::string> parts = absl::StrSplit(AbslView(name), '-');
  BlockId id;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &id.pid_namespace) ||
      !absl::SimpleAtoi(parts[1], &id.pid) || !absl::SimpleAtoi(parts[2], &id.start_ticks) ||
      id.pid <= 0) {
    return std::nullopt;
  }
  // One spelling only: "+1" and "01" are other files.
  if (Stem(id) != name) return std::nullopt;
  return id;
}

uint64_t Block::events() const { return Sum<&ThreadSlot::events>(threads); }
uint64_t Block::lost() const { return Sum<&ThreadSlot::lost>(threads); }
uint64_t Block::cost_ns() const { return Sum<&ThreadSlot::cost_ns>(threads); }

absl::StatusOr<Block> ParseBlock(std::span<const uint8_t> bytes) {
  syncline_block raw;
  if (bytes.size() < sizeof raw.magic || std::memcmp(bytes.data(), SYNCLINE_BLOCK_MAGIC, 8) != 0) {
    return absl::InvalidArgumentError("Not a control block: no SYNCBLK1 at the start");
  }
  if (bytes.size() < sizeof raw) {
    return absl::DataLossError(absl::StrCat("Control block cut short: ", bytes.size(), " of ",
                                            sizeof raw, " bytes of header"));
  }
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.version != SYNCLINE_BLOCK_VERSION || raw.header_bytes < sizeof raw) {
    return absl::FailedPreconditionError(
        absl::StrCat("Control block of version ", raw.version, ", this program reads ",
                     SYNCLINE_BLOCK_VERSION, ": use a Syncline as new as the job's libraries"));
  }
  Block block;
  FillFacts(raw, block.facts);
  block.names_bytes = raw.names_bytes;
  block.names_count = raw.names_count;
  block.names_refused = raw.names_refused;
  block.bytes_expected =
      raw.header_bytes + uint64_t{SYNCLINE_BLOCK_THREADS} * sizeof(syncline_thread_slot);
  const uint32_t used = std::min(raw.thread_slots_used, SYNCLINE_BLOCK_THREADS);
  for (uint32_t i = 0; i < used; ++i) {
    const uint64_t at = raw.header_bytes + uint64_t{i} * sizeof(syncline_thread_slot);
    if (at + sizeof(syncline_thread_slot) > bytes.size()) break;
    syncline_thread_slot slot;
    std::memcpy(&slot, bytes.data() + at, sizeof slot);
    if (slot.thread_key == 0) continue;
    block.threads.push_back({slot.thread_key, slot.tid, slot.events, slot.lost, slot.cost_ns,
                             slot.cost_samples, Text(slot.name)});
  }
  FillGate(raw, block);
  return block;
}

std::string_view NameTable::Text(uint32_t id) const {
  if (!Has(id)) return {};
  const Entry& entry = entries_[id - 1];
  return std::string_view(texts_).substr(entry.offset, entry.text_bytes);
}

NameKind NameTable::Kind(uint32_t id) const {
  return Has(id) ? entries_[id - 1].kind : NameKind::kNone;
}

absl::StatusOr<NameTable> ParseNames(std::span<const uint8_t> bytes) {
  NameTable table;
  if (bytes.empty()) return table;
  syncline_names_header header;
  if (bytes.size() < sizeof header ||
      std::memcmp(bytes.data(), SYNCLINE_NAMES_MAGIC, sizeof header.magic) != 0) {
    return absl::InvalidArgumentError("Not a table of names: no SYNCNAM1 at the start");
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != SYNCLINE_BLOCK_VERSION) {
    return absl::FailedPreconditionError(
        absl::StrCat("Table of names of version ", header.version, ", this program reads ",
                     SYNCLINE_BLOCK_VERSION, ": use a Syncline as new as the job's libraries"));
  }
  if (bytes.size() > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError("Table of names larger than 4 GiB");
  }
  table.texts_.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  uint64_t at = sizeof header;
  while (at + sizeof(syncline_name_record) <= bytes.size()) {
    syncline_name_record record;
    std::memcpy(&record, bytes.data() + at, sizeof record);
    if (record.id != table.entries_.size() + 1) break;
    const uint64_t text_at = at + sizeof record;
    const uint64_t next = (text_at + record.text_bytes + 1 + 3) & ~uint64_t{3};
    if (next > bytes.size()) break;
    const auto kind = record.kind <= 7 ? static_cast<NameKind>(record.kind) : NameKind::kOther;
    table.entries_.push_back({static_cast<uint32_t>(text_at), record.text_bytes, kind});
    at = next;
  }
  table.valid_bytes_ = at;
  table.damaged_ = std::any_of(bytes.begin() + static_cast<ptrdiff_t>(std::min(at, bytes.size())),
                               bytes.end(), [](uint8_t byte) { return byte != 0; });
  return table;
}

}  // namespace syncline::control_block
