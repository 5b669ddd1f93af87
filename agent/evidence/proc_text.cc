// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/proc_text.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "evidence/evidence.h"

namespace syncline::agent {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kNoMemoryLimit = int64_t{1} << 62;  // v1 writes the largest number of pages
constexpr size_t kState = 0;  // fields of /proc/PID/stat behind the name, counted from 0
constexpr size_t kMinorFaults = 7;
constexpr size_t kMajorFaults = 9;
constexpr size_t kUserTime = 11;
constexpr size_t kSystemTime = 12;
constexpr size_t kThreads = 17;
constexpr size_t kProcessor = 36;
// Words of a CPU's line in /proc/stat, counted from 0 behind its name; the time of guests, which
// comes behind these, is a part of `user`.
constexpr size_t kIdle = 3;
constexpr size_t kWaitingForStorage = 4;
constexpr size_t kStolen = 7;

// The next word of `*text`, which loses it; empty at the end.
std::string_view NextWord(std::string_view* text, std::string_view blanks = " \t\n") {
  const size_t begin = text->find_first_not_of(blanks);
  if (begin == std::string_view::npos) {
    *text = {};
    return {};
  }
  const size_t end = std::min(text->find_first_of(blanks, begin), text->size());
  const std::string_view word = text->substr(begin, end - begin);
  text->remove_prefix(end);
  return word;
}

std::string_view NextLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

std::optional<int64_t> NumberOf(std::string_view word) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || word.empty()) return std::nullopt;
  return number;
}

// mountinfo writes blanks and the like as \040.
std::string Unescaped(std::string_view word) {
  std::string text;
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\\' && i + 3 < word.size() && is_octal(word[i + 1]) && is_octal(word[i + 2]) &&
        is_octal(word[i + 3])) {
      text.push_back(static_cast<char>((word[i + 1] - '0') * 64 + (word[i + 2] - '0') * 8 +
                                       (word[i + 3] - '0')));
      i += 3;
    } else {
      text.push_back(word[i]);
    }
  }
  return text;
}

bool HasItem(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == item) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// Whether `path` is `root` or lies below it.
bool IsBelow(std::string_view path, std::string_view root) {
  if (root == "/") return path.starts_with('/');
  return path == root || (path.starts_with(root) && path[root.size()] == '/');
}

}  // namespace

std::map<uint32_t, CpuTimes> ParseCpuTimes(std::string_view text, int64_t ticks_per_second) {
  constexpr std::string_view kCpu = "cpu";
  std::map<uint32_t, CpuTimes> cpus;
  if (ticks_per_second <= 0) return cpus;
  while (text.starts_with(kCpu)) {  // their lines come first
    std::string_view line = NextLine(&text);
    const auto cpu = NumberOf(NextWord(&line).substr(kCpu.size()));
    if (!cpu.has_value() || *cpu < 0 || *cpu > UINT32_MAX) continue;  // all of them together
    CpuTimes times;
    size_t field = 0;
    for (; field <= kStolen; ++field) {
      const auto ticks = NumberOf(NextWord(&line));
      if (!ticks.has_value() || *ticks < 0) break;
      const int64_t seconds = *ticks / ticks_per_second;
      if (seconds > INT64_MAX / kNsPerSecond / 16) break;  // 18 years; up to eight are added up
      const int64_t ns =
          seconds * kNsPerSecond + *ticks % ticks_per_second * kNsPerSecond / ticks_per_second;
      if (field == kStolen) {
        times.stolen_ns = ns;
      } else if (field != kIdle && field != kWaitingForStorage) {
        times.busy_ns += ns;
      }
    }
    if (field > kStolen) cpus.emplace(static_cast<uint32_t>(*cpu), times);
  }
  return cpus;
}

std::optional<SchedStat> ParseSchedStat(std::string_view text) {
  const auto on_cpu = NumberOf(NextWord(&text));
  const auto run_queue = NumberOf(NextWord(&text));
  if (!on_cpu.has_value() || !run_queue.has_value() || *on_cpu < 0 || *run_queue < 0) {
    return std::nullopt;
  }
  return SchedStat{*on_cpu, *run_queue};
}

std::optional<ProcStat> ParseProcStat(std::string_view text, int64_t ticks_per_second) {
  // The name stands in parentheses and may hold anything.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || ticks_per_second <= 0) return std::nullopt;
  text.remove_prefix(name_end + 1);
  ProcStat stat;
  const std::string_view state = NextWord(&text);
  if (!evidence::IsState(state)) return std::nullopt;
  stat.state = state[0];
  int64_t ticks = 0;
  for (size_t field = kState + 1; field <= kProcessor; ++field) {
    const std::string_view word = NextWord(&text);
    if (word.empty()) return std::nullopt;
    const bool time = field == kUserTime || field == kSystemTime;
    const bool faults = field == kMinorFaults || field == kMajorFaults;
    if (!time && !faults && field != kThreads && field != kProcessor) continue;
    const auto number = NumberOf(word);
    if (!number.has_value() || *number < 0) return std::nullopt;
    if (field == kProcessor) {
      stat.cpu = static_cast<int32_t>(*number);
    } else if (field == kThreads) {
      stat.threads = static_cast<uint32_t>(*number);
    } else if (field == kMinorFaults) {
      stat.minor_faults = *number;
    } else if (field == kMajorFaults) {
      stat.major_faults = *number;
    } else {
      ticks += *number;
    }
  }
  stat.cpu_ns = ticks * (kNsPerSecond / ticks_per_second);
  return stat;
}

std::optional<SwitchCounts> ParseSwitchCounts(std::string_view status) {
  std::optional<int64_t> voluntary, involuntary;
  while (!status.empty()) {
    std::string_view line = NextLine(&status);
    const std::string_view key = NextWord(&line);
    if (key == "voluntary_ctxt_switches:") voluntary = NumberOf(NextWord(&line));
    if (key == "nonvoluntary_ctxt_switches:") involuntary = NumberOf(NextWord(&line));
  }
  if (voluntary.value_or(-1) < 0 || involuntary.value_or(-1) < 0) return std::nullopt;
  return SwitchCounts{*voluntary, *involuntary};
}

std::optional<int64_t> ParseReadBytes(std::string_view text) {
  // A line without an end may hold a part of a number.
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    std::string_view line = text.substr(0, end);
    if (NextWord(&line) != "read_bytes:") continue;
    const auto bytes = NumberOf(NextWord(&line));
    return bytes.has_value() && *bytes >= 0 ? bytes : std::nullopt;
  }
  return std::nullopt;
}

std::optional<CpuStat> ParseCpuStat(std::string_view text) {
  CpuStat stat;
  bool known = false;
  while (!text.empty()) {
    std::string_view line = NextLine(&text);
    const std::string_view key = NextWord(&line);
    const auto value = NumberOf(NextWord(&line));
    if (!value.has_value() || *value < 0) continue;
    if (key == "nr_periods") {
      stat.periods = *value;
    } else if (key == "nr_throttled") {
      stat.throttled_periods = *value;
      known = true;
    } else if (key == "throttled_time") {
      stat.throttled_ns = *value;
    } else if (key == "throttled_usec") {
      stat.throttled_ns = *value * 1000;
    }
  }
  return known ? std::optional(stat) : std::nullopt;
}

std::optional<Quota> ParseCpuMax(std::string_view text) {
  const std::string_view quota_word = NextWord(&text);
  const auto period = NumberOf(NextWord(&text));
  if (!period.has_value() || *period <= 0) return std::nullopt;
  if (quota_word == "max") return Quota{-1, *period * 1000};
  const auto quota = NumberOf(quota_word);
  if (!quota.has_value() || *quota <= 0) return std::nullopt;
  return Quota{*quota * 1000, *period * 1000};
}

std::optional<int64_t> ParseMicroseconds(std::string_view text) {
  return NumberOf(NextWord(&text));
}

std::optional<int64_t> ParseMemoryFull(int version, std::string_view text) {
  if (version == 1) {
    const auto count = NumberOf(NextWord(&text));
    return count.has_value() && *count >= 0 ? count : std::nullopt;
  }
  std::optional<int64_t> full;
  while (!text.empty()) {
    std::string_view line = NextLine(&text);
    const std::string_view key = NextWord(&line);
    const auto count = NumberOf(NextWord(&line));
    if ((key != "high" && key != "max") || !count.has_value() || *count < 0) continue;
    full = full.value_or(0) + *count;
  }
  return full;
}

int64_t ParseMemoryLimit(std::string_view text) {
  const auto bytes = NumberOf(NextWord(&text));
  return bytes.has_value() && *bytes >= 0 && *bytes < kNoMemoryLimit ? *bytes : -1;
}

std::vector<CgroupMount> ParseMounts(std::string_view mountinfo, std::string_view controller) {
  std::vector<CgroupMount> mounts;
  while (!mountinfo.empty()) {
    std::string_view line = NextLine(&mountinfo);
    std::array<std::string_view, 5> fields;
    for (std::string_view& field : fields) field = NextWord(&line);
    // Optional fields, then "-", the type of the file system, its source, its options.
    std::string_view word = NextWord(&line);
    while (!word.empty() && word != "-") word = NextWord(&line);
    const std::string_view type = NextWord(&line);
    NextWord(&line);
    const std::string_view options = NextWord(&line);
    const bool v1 = type == "cgroup" && HasItem(options, controller);
    if (!v1 && type != "cgroup2") continue;
    mounts.push_back({v1 ? 1 : 2, Unescaped(fields[3]), Unescaped(fields[4])});
  }
  return mounts;
}

std::vector<CgroupPath> ParseCgroups(std::string_view text, std::string_view controller) {
  std::vector<CgroupPath> paths;
  while (!text.empty()) {
    const std::string_view line = NextLine(&text);
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = line.substr(0, first) == "0" && controllers.empty();
    if (!v2 && !HasItem(controllers, controller)) continue;
    paths.push_back({v2 ? 2 : 1, std::string(line.substr(second + 1))});
  }
  return paths;
}

std::vector<SeenGroup> GroupsOf(const std::vector<CgroupPath>& paths,
                                const std::vector<CgroupMount>& mounts) {
  std::vector<SeenGroup> groups;
  for (const CgroupPath& path : paths) {
    const auto mount = std::find_if(mounts.begin(), mounts.end(), [&](const CgroupMount& one) {
      return one.version == path.version && IsBelow(path.path, one.root);
    });
    if (mount == mounts.end() || path.path.find("/..") != std::string::npos) continue;
    std::string left = path.path;
    while (IsBelow(left, mount->root)) {
      const std::string below = mount->root == "/" ? left : left.substr(mount->root.size());
      groups.push_back({path.version, left, mount->point + (below == "/" ? "" : below)});
      if (left == mount->root || left == "/") break;
      const size_t slash = left.rfind('/');
      left = slash == 0 ? "/" : left.substr(0, slash);
    }
  }
  return groups;
}

std::optional<int32_t> ParseOwnTid(std::string_view status) {
  constexpr std::string_view kKey = "NSpid:";
  while (!status.empty()) {
    std::string_view line = NextLine(&status);
    if (!line.starts_with(kKey)) continue;
    line.remove_prefix(kKey.size());
    std::optional<int64_t> last;
    for (std::string_view word = NextWord(&line); !word.empty(); word = NextWord(&line)) {
      last = NumberOf(word);
    }
    if (!last.has_value()) return std::nullopt;
    return static_cast<int32_t>(*last);
  }
  return std::nullopt;
}

}  // namespace syncline::agent
