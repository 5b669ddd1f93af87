// SPDX-License-Identifier: Apache-2.0
// What the agent wrote of processes: control blocks, their names, evidence.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "common/text.h"
#include "common/utf8.h"
#include "control_block/block_file.h"
#include "coordinator/pack/redact_files.h"
#include "evidence/evidence.h"
#include "evidence/write.h"
#include "instrumentation/abi/control_block.h"

namespace syncline::pack {
namespace {

template <class T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <size_t n>
std::string_view TextOf(const char (&array)[n]) {
  return {array, ::strnlen(array, n)};
}

// As recording.json has it.
template <size_t n>
std::string RepairedTextOf(const char (&array)[n]) {
  return RepairedUtf8(TextOf(array));
}

// Behind the NUL nothing.
template <size_t n>
void Put(std::string_view text, char (&array)[n]) {
  std::copy_n(text.begin(), std::min(text.size(), n - 1), array);
}

// The numbers of a block; its texts are all zero.
syncline_block NumbersOf(const syncline_block& from, Pseudonyms* names) {
  syncline_block to = {};
  std::copy(std::begin(from.magic), std::end(from.magic), std::begin(to.magic));
  to.version = from.version;
  to.header_bytes = sizeof to;
  to.state = from.state;
  to.sources = from.sources;
  to.pid = from.pid;
  to.uid = names->Uid(from.uid);
  to.pid_namespace = from.pid_namespace;
  to.start_ticks = from.start_ticks;
  to.started_monotonic_ns = from.started_monotonic_ns;
  to.rank = from.rank;
  to.world_size = from.world_size;
  to.local_rank = from.local_rank;
  to.process_key = from.process_key;
  to.generation = from.generation;
  to.generation_seen = from.generation_seen;
  to.thread_slots_used = std::min(from.thread_slots_used, SYNCLINE_BLOCK_THREADS);
  to.on_monotonic_ns = from.on_monotonic_ns;
  to.off_monotonic_ns = from.off_monotonic_ns;
  to.names_bytes = from.names_bytes;
  to.names_count = from.names_count;
  to.names_refused = from.names_refused;
  to.events_at_on = from.events_at_on;
  to.lost_at_on = from.lost_at_on;
  to.cost_ns_at_on = from.cost_ns_at_on;
  to.paused = from.paused;
  to.recording_generation = from.recording_generation;
  to.asked_monotonic_ns = from.asked_monotonic_ns;
  to.lost_before_on = from.lost_before_on;
  to.pauses = from.pauses;
  to.cost = from.cost;
  to.cost_at_on = from.cost_at_on;
  return to;
}

std::string SlotOf(const syncline_thread_slot& from, Pseudonyms* names) {
  syncline_thread_slot to = {};
  if (from.thread_key != 0) {
    to.thread_key = from.thread_key;
    to.tid = from.tid;
    to.events = from.events;
    to.lost = from.lost;
    to.cost_ns = from.cost_ns;
    to.cost_samples = from.cost_samples;
    Put(names->Name(TextOf(from.name)), to.name);
  }
  return std::string(BytesOf(to));
}

bool IsNumber(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  constexpr size_t kLongest = 20;
  return !word.empty() && word.size() <= kLongest &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Where the text of a line stands, counted in words; 0: the line has none. nullopt: no such line.
std::optional<size_t> TextAt(std::string_view letter) {
  if (letter == "P") return 8;
  if (letter == "G" || letter == "L") return 2;
  if (letter == "T") return 4;
  if (letter == "R" || letter == "A") return 3;
  if (letter == "N") return 1;
  if (letter.size() == 1 && std::string_view("MBtgmpusHKE").find(letter) != letter.npos) return 0;
  return std::nullopt;
}

std::string TextFor(std::string_view letter, std::string_view text, Pseudonyms* names) {
  // A list of CPUs says nothing of anybody.
  const bool list = text.find_first_not_of("0123456789,-") == std::string_view::npos;
  if (letter == "A" && list) return std::string(text);
  if (letter == "P" || letter == "T") return names->Name(text);
  return letter == "G" || letter == "L" ? names->Plain(text) : names->Sentence(text);
}

// A letter says what a thread did (R, S, D, ...), and nothing of anybody.
bool IsStateAt(std::string_view letter, size_t at, std::string_view word) {
  constexpr size_t kStateAt = 7;
  return letter == "t" && at == kStateAt && evidence::IsState(word);
}

// A line that is none of the format stays one that is damaged: others count on its number.
std::string RedactLine(std::string_view line, Pseudonyms* names) {
  std::vector<std::string> words = absl::StrSplit(AbslView(line), ' ');
  const std::optional<size_t> text_at = TextAt(words.front());
  if (!text_at.has_value()) return "?";
  const std::string letter = words.front();
  for (size_t i = 1; i < words.size(); ++i) {
    if (i == *text_at && words[i].starts_with('=')) {
      words[i] = evidence::Escaped(TextFor(letter, evidence::Unescaped(words[i]), names));
    } else if (!IsNumber(words[i]) && !IsStateAt(letter, i, words[i])) {
      return letter;
    }
  }
  constexpr size_t kUidAt = 7;
  if (letter == "P" && words.size() > kUidAt) {
    uint32_t uid = 0;
    if (!absl::SimpleAtoi(words[kUidAt], &uid)) return letter;
    words[kUidAt] = absl::StrCat(names->Uid(uid));
  }
  return absl::StrJoin(words, " ");
}

}  // namespace

absl::StatusOr<std::string> RedactBlock(std::span<const uint8_t> bytes, Pseudonyms* names) {
  SYNCLINE_RETURN_IF_ERROR(control_block::ParseBlock(bytes).status());
  syncline_block from;
  std::memcpy(&from, bytes.data(), sizeof from);
  // Where a part is missing, or the slots are said to lie elsewhere, texts would lie where numbers
  // are copied.
  constexpr size_t kBytes = sizeof from + SYNCLINE_BLOCK_THREADS * sizeof(syncline_thread_slot);
  if (from.header_bytes != sizeof from || bytes.size() != kBytes) {
    return absl::DataLossError("it is damaged");
  }
  syncline_block to = NumbersOf(from, names);
  Put(names->Plain(RepairedTextOf(from.job)), to.job);
  Put(names->Plain(RepairedTextOf(from.incarnation)), to.incarnation);
  Put(names->Word(RepairedTextOf(from.role)), to.role);
  Put(names->Plain(RepairedTextOf(from.hostname)), to.hostname);
  Put(names->Uuid(TextOf(from.boot_id)), to.boot_id);
  Put(names->Plain(RepairedTextOf(from.executable)), to.executable);
  Put(names->Plain(RepairedTextOf(from.command_line)), to.command_line);
  std::string made(BytesOf(to));
  for (uint32_t i = 0; i < SYNCLINE_BLOCK_THREADS; ++i) {
    const uint64_t at = from.header_bytes + uint64_t{i} * sizeof(syncline_thread_slot);
    syncline_thread_slot slot = {};
    if (i < to.thread_slots_used) std::memcpy(&slot, bytes.data() + at, sizeof slot);
    made += SlotOf(slot, names);
  }
  return made;
}

absl::StatusOr<std::string> RedactNames(std::span<const uint8_t> bytes, Pseudonyms* names) {
  SYNCLINE_ASSIGN_OR_RETURN(const control_block::NameTable table, control_block::ParseNames(bytes));
  if (bytes.empty()) return std::string();
  if (table.damaged()) return absl::DataLossError("it is damaged");
  syncline_names_header header = {};
  std::memcpy(&header, bytes.data(), sizeof header);
  std::string made(BytesOf(header));
  for (uint32_t id = 1; id <= table.size(); ++id) {
    syncline_name_record record = {};
    std::memcpy(&record, bytes.data() + made.size(), sizeof record);
    const std::string text = names->Name(table.Text(id));
    if (record.id != id || record.text_bytes != text.size()) {
      return absl::InternalError("a name has another length than it had");
    }
    made += BytesOf(record);
    made += text;
    made.append(1 + (3 - text.size() % 4), '\0');
  }
  return made;
}

absl::Status RedactEvidence(std::string_view text, Pseudonyms* names, const Sink& sink) {
  bool head = true;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    // What has no end may be half a name.
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(0, end);
    if (head && line != evidence::kHead) {
      return absl::InvalidArgumentError("it is no evidence of a version that is known");
    }
    const std::string made = absl::StrCat(head ? std::string(line) : RedactLine(line, names), "\n");
    SYNCLINE_RETURN_IF_ERROR(sink({reinterpret_cast<const uint8_t*>(made.data()), made.size()}));
    head = false;
    text.remove_prefix(end + 1);
  }
  return absl::OkStatus();
}

}  // namespace syncline::pack
