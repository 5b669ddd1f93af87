// SPDX-License-Identifier: Apache-2.0
// What the agent and the coordinator wrote of processes and clocks, but for the JSON.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clocksync/sample_file.h"
#include "common/status.h"
#include "common/text.h"
#include "control_block/block_file.h"
#include "coordinator/pack/redact_files.h"
#include "instrumentation/abi/control_block.h"

namespace syncline::pack {
namespace {

std::string_view TextOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void Put(std::string_view text, size_t at, std::span<uint8_t> bytes) {
  std::copy(text.begin(), text.end(), bytes.begin() + static_cast<ptrdiff_t>(at));
}

// A field of fixed size: its text up to the NUL, and nothing behind that.
template <class Replace>
void Field(std::span<uint8_t> field, const Replace& replace) {
  const std::string_view whole = TextOf(field);
  const size_t size = std::min(whole.find('\0'), whole.size());
  const std::string made = replace(whole.substr(0, size));
  std::fill(field.begin(), field.end(), uint8_t{0});
  Put(made, 0, field);
}

int Nibble(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Texts of the evidence: "=", then bytes up to the blank, 7f and '%' as '%' and two digits.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && Nibble(text[i + 1]) >= 0 &&
        Nibble(text[i + 2]) >= 0) {
      plain.push_back(static_cast<char>(Nibble(text[i + 1]) * 16 + Nibble(text[i + 2])));
      i += 2;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

std::string Escaped(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte != 0x7f && byte != '%') {
      escaped.push_back(c);
    } else {
      escaped += {'%', kHex[byte >> 4], kHex[byte & 15u]};
    }
  }
  return escaped;
}

std::string EvidenceText(char line, std::string_view text, Pseudonyms* names) {
  if (text.empty()) return "";
  if (line == 'P' || line == 'T') return names->Name(text);  // a process, a thread
  if (line == 'G') return names->Text(text);
  return std::string(kRemovedText);
}

}  // namespace

absl::Status RedactSamples(std::span<uint8_t> bytes, Pseudonyms* names) {
  SYNCLINE_ASSIGN_OR_RETURN(const clocksync::Edge edge, clocksync::DecodeSamples(TextOf(bytes)));
  Put(clocksync::EncodeSamplesHeader(names->Host(edge.local), names->Host(edge.remote)), 0, bytes);
  return absl::OkStatus();
}

absl::Status RedactTuples(std::span<uint8_t> bytes, Pseudonyms* names) {
  SYNCLINE_ASSIGN_OR_RETURN(const clocksync::HostClocks clocks,
                            clocksync::DecodeTuples(TextOf(bytes)));
  Put(clocksync::EncodeTuplesHeader(names->Host(clocks.node)), 0, bytes);
  return absl::OkStatus();
}

absl::Status RedactBlock(std::span<uint8_t> bytes, Pseudonyms* names) {
  SYNCLINE_RETURN_IF_ERROR(control_block::ParseBlock(bytes).status());
  const auto text = [&](size_t at, size_t size, const char* kind) {
    Field(bytes.subspan(at, size), [&](std::string_view old) { return names->Text(old, kind); });
  };
  text(offsetof(syncline_block, job), sizeof(syncline_block::job), "job");
  text(offsetof(syncline_block, incarnation), sizeof(syncline_block::incarnation), "incarnation");
  text(offsetof(syncline_block, role), sizeof(syncline_block::role), "role");
  text(offsetof(syncline_block, executable), sizeof(syncline_block::executable), "path");
  text(offsetof(syncline_block, command_line), sizeof(syncline_block::command_line), "argument");
  Field(bytes.subspan(offsetof(syncline_block, hostname), sizeof(syncline_block::hostname)),
        [&](std::string_view old) { return names->Host(old); });
  Field(bytes.subspan(offsetof(syncline_block, boot_id), sizeof(syncline_block::boot_id)),
        [&](std::string_view old) { return names->BootId(old); });
  uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data() + offsetof(syncline_block, header_bytes),
              sizeof header_bytes);
  for (size_t at = header_bytes; at + sizeof(syncline_thread_slot) <= bytes.size();
       at += sizeof(syncline_thread_slot)) {
    Field(bytes.subspan(at + offsetof(syncline_thread_slot, name),
                        sizeof(syncline_thread_slot::name)),
          [&](std::string_view old) { return names->Name(old); });
  }
  return absl::OkStatus();
}

absl::Status RedactNames(std::span<uint8_t> bytes, Pseudonyms* names) {
  SYNCLINE_ASSIGN_OR_RETURN(const control_block::NameTable table, control_block::ParseNames(bytes));
  if (table.damaged()) return absl::DataLossError("it is damaged");
  constexpr size_t kFirst = sizeof(syncline_names_header) + sizeof(syncline_name_record);
  for (uint32_t id = 1; id <= table.size(); ++id) {
    const std::string_view text = table.Text(id);
    Put(names->Name(text), kFirst + static_cast<size_t>(text.data() - table.Text(1).data()), bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> RedactEvidence(std::string_view text, Pseudonyms* names) {
  std::vector<std::string> lines = absl::StrSplit(AbslView(text), '\n');
  // What has no end may be half a name.
  if (!lines.empty()) lines.back().clear();
  for (std::string& line : lines) {
    if (line.find('=') == line.npos) continue;
    std::vector<std::string> words = absl::StrSplit(line, ' ');
    for (std::string& word : words) {
      if (!word.starts_with('=')) continue;
      word = absl::StrCat(
          "=",
          Escaped(EvidenceText(line.front(), Unescaped(std::string_view(word).substr(1)), names)));
    }
    line = absl::StrJoin(words, " ");
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace syncline::pack
