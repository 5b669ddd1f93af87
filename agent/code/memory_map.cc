// SPDX-License-Identifier: Apache-2.0
#include "agent/code/memory_map.h"

#include <algorithm>
#include <charconv>

#include "evidence/code_samples.h"

namespace syncline::agent {
namespace {

// Up to `end`, which is taken, too.
std::optional<uint64_t> TakeHex(std::string_view* text, char end) {
  uint64_t value = 0;
  const char* const last = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), last, value, 16);
  if (error != std::errc() || at == last || *at != end) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(at - text->data()) + 1);
  return value;
}

// Memory that was filled at run time has no name, or one of these.
bool IsGenerated(std::string_view path) {
  return path.empty() || path.starts_with("//anon") || path.starts_with("/dev/zero") ||
         path.starts_with("/memfd:") || path.starts_with("/SYSV") || path.starts_with("[anon") ||
         path == "[heap]" || path == "[stack]";
}

// "BEGIN-END rwxp OFFSET MAJOR:MINOR INODE   PATH"
std::optional<MappedCode> ParseLine(std::string_view line) {
  MappedCode code;
  const auto begin = TakeHex(&line, '-');
  const auto end = begin ? TakeHex(&line, ' ') : std::nullopt;
  if (!end || *begin >= *end || line.size() < 5 || line[2] != 'x') return std::nullopt;
  line.remove_prefix(5);
  const auto offset = TakeHex(&line, ' ');
  if (!offset) return std::nullopt;
  for (int words = 0; words < 2; ++words) {  // device, inode
    line.remove_prefix(std::min(line.size(), line.find(' ')));
    if (words == 0 && !line.empty()) line.remove_prefix(1);
  }
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
  code.begin = *begin;
  code.end = *end;
  code.file_offset = *offset;
  code.module = IsGenerated(line) ? evidence::kGeneratedModule : std::string(line);
  return code;
}

}  // namespace

std::vector<MappedCode> ParseMaps(std::string_view text) {
  std::vector<MappedCode> all;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (auto code = ParseLine(text.substr(0, end)); code.has_value()) {
      all.push_back(*std::move(code));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::sort(all.begin(), all.end(),
            [](const MappedCode& a, const MappedCode& b) { return a.begin < b.begin; });
  return all;
}

const MappedCode* FindCode(const std::vector<MappedCode>& code, uint64_t address) {
  auto behind =
      std::upper_bound(code.begin(), code.end(), address,
                       [](uint64_t value, const MappedCode& one) { return value < one.begin; });
  if (behind == code.begin()) return nullptr;
  const MappedCode& found = *--behind;
  return address < found.end ? &found : nullptr;
}

}  // namespace syncline::agent
