// SPDX-License-Identifier: Apache-2.0
#include "agent/host/cpu_list.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/text.h"

namespace syncline::agent {
namespace {

constexpr uint32_t kCpusMax = 1 << 16;
constexpr uint64_t kStatusBytesMax = 1 << 20;

}  // namespace

std::optional<CpuSet> ParseCpuList(std::string_view text) {
  CpuSet cpus;
  const absl::string_view list = absl::StripAsciiWhitespace(AbslView(text));
  if (list.empty()) return cpus;
  for (absl::string_view part : absl::StrSplit(list, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    uint32_t first = 0;
    uint32_t last = 0;
    if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) ||
        last < first || last >= kCpusMax) {
      return std::nullopt;
    }
    for (uint32_t cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

std::string CpuListOf(const CpuSet& cpus) {
  std::string text;
  for (auto it = cpus.begin(); it != cpus.end();) {
    const uint32_t first = *it;
    uint32_t last = first;
    while (++it != cpus.end() && *it == last + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", first);
    if (last != first) absl::StrAppend(&text, "-", last);
  }
  return text;
}

std::optional<std::string> AllowedCpuList(std::string_view status) {
  for (absl::string_view line : absl::StrSplit(AbslView(status), '\n')) {
    if (!absl::ConsumePrefix(&line, "Cpus_allowed_list:")) continue;
    return std::string(absl::StripAsciiWhitespace(line));
  }
  return std::nullopt;
}

std::optional<CpuSet> CpusAllowed(const std::filesystem::path& proc, int32_t pid) {
  const auto text = ReadFile(proc / std::to_string(pid) / "status", kStatusBytesMax);
  if (!text.ok()) return std::nullopt;
  const auto list = AllowedCpuList(*text);
  return list.has_value() ? ParseCpuList(*list) : std::nullopt;
}

uint32_t ThreadsAskedBy(std::string_view setting) {
  uint32_t threads = 0;
  const std::string_view outer = setting.substr(0, setting.find(','));
  return absl::SimpleAtoi(AbslView(outer), &threads) ? threads : 0;
}

}  // namespace syncline::agent
