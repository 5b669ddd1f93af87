// SPDX-License-Identifier: Apache-2.0
#include "agent/host/process_table.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::agent {
namespace {

constexpr uint64_t kProcFileBytesMax = 8 << 20;

struct Framework {
  const char* library;
  const char* name;
};
constexpr std::array<Framework, 4> kFrameworks = {{
    {"libtorch_cpu", "PyTorch"},
    {"libtensorflow", "TensorFlow"},
    {"_pywrap_tensorflow", "TensorFlow"},
    {"libdnnl", "oneDNN"},
}};

uint64_t NamespaceInode(const std::filesystem::path& link) {
  std::error_code error;
  const std::string target =
      std::filesystem::read_symlink(link, error).string();  // "pid:[4026531836]"
  const size_t open = target.find('[');
  const size_t close = target.find(']');
  uint64_t inode = 0;
  if (error || open == std::string::npos || close == std::string::npos) return 0;
  return absl::SimpleAtoi(target.substr(open + 1, close - open - 1), &inode) ? inode : 0;
}

// pid (comm) state ppid ...; num_threads is field 20, starttime 22, exit_code 52; comm may hold
// blanks and parentheses.
bool ParseStat(std::string_view text, ProcessEntry* entry) {
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return false;
  entry->name = std::string(text.substr(open + 1, close - open - 1));
  const std::vector<absl::string_view> rest =
      absl::StrSplit(AbslView(text.substr(close + 1)), ' ', absl::SkipEmpty());
  if (rest.size() < 20) return false;
  entry->state = rest[0][0];
  if (!absl::SimpleAtoi(rest[1], &entry->parent_pid)) return false;
  if (!absl::SimpleAtoi(rest[17], &entry->threads)) return false;
  int status = 0;
  if (rest.size() > 49 && absl::SimpleAtoi(rest[49], &status)) entry->exit_status = status;
  return absl::SimpleAtoi(rest[19], &entry->start_ticks);
}

void ParseStatus(const std::string& text, ProcessEntry* entry) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const bool is_uid = absl::ConsumePrefix(&line, "Uid:");
    if (!is_uid && !absl::ConsumePrefix(&line, "NSpid:")) continue;
    const std::vector<absl::string_view> values =
        absl::StrSplit(line, absl::ByAnyChar("\t "), absl::SkipEmpty());
    if (values.empty()) continue;
    if (is_uid) {
      if (!absl::SimpleAtoi(values.front(), &entry->uid)) entry->uid = 0;
    } else if (!absl::SimpleAtoi(values.back(), &entry->own_pid)) {
      entry->own_pid = entry->pid;
    }
  }
}

absl::StatusOr<ProcessEntry> LookAt(const std::filesystem::path& proc, int32_t pid) {
  ProcessEntry entry;
  entry.pid = pid;
  entry.own_pid = pid;
  const std::filesystem::path directory = proc / std::to_string(pid);
  SYNCLINE_ASSIGN_OR_RETURN(const std::string stat,
                            ReadFile(directory / "stat", kProcFileBytesMax));
  SYNCLINE_ASSIGN_OR_RETURN(const std::string status,
                            ReadFile(directory / "status", kProcFileBytesMax));
  if (!ParseStat(stat, &entry)) return absl::NotFoundError("no such process");
  ParseStatus(status, &entry);
  entry.pid_namespace = NamespaceInode(directory / "ns" / "pid");
  return entry;
}

}  // namespace

std::string ProcFile(const std::filesystem::path& path) {
  auto text = ReadFile(path);
  return text.ok() ? *std::move(text) : std::string();
}

std::string CommIn(const std::filesystem::path& folder) {
  std::string name = ProcFile(folder / "comm");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

std::vector<int32_t> ListThreads(const std::filesystem::path& proc, int32_t pid) {
  std::vector<int32_t> tids;
  std::error_code error;
  for (std::filesystem::directory_iterator it(proc / std::to_string(pid) / "task", error), end;
       !error && it != end; it.increment(error)) {
    int32_t tid = 0;
    if (absl::SimpleAtoi(it->path().filename().string(), &tid)) tids.push_back(tid);
  }
  std::sort(tids.begin(), tids.end());
  return tids;
}

std::optional<ProcessEntry> ReadProcess(const std::filesystem::path& proc, int32_t pid) {
  auto entry = LookAt(proc, pid);
  return entry.ok() ? std::optional<ProcessEntry>(*std::move(entry)) : std::nullopt;
}

absl::StatusOr<std::vector<ProcessEntry>> ListProcesses(const std::filesystem::path& proc) {
  std::vector<ProcessEntry> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator it(proc, error), end; !error && it != end;
       it.increment(error)) {
    int32_t pid = 0;
    if (!absl::SimpleAtoi(it->path().filename().string(), &pid) || pid <= 0) continue;
    auto entry = LookAt(proc, pid);
    if (absl::IsResourceExhausted(entry.status())) return entry.status();
    if (entry.ok()) entries.push_back(*std::move(entry));
  }
  if (error) return ErrnoStatus(error.value(), absl::StrCat("Cannot list \"", proc.string(), "\""));
  std::sort(entries.begin(), entries.end(),
            [](const ProcessEntry& a, const ProcessEntry& b) { return a.pid < b.pid; });
  return entries;
}

std::string FrameworkOf(const std::filesystem::path& proc, int32_t pid) {
  const auto maps = ReadFile(proc / std::to_string(pid) / "maps", kProcFileBytesMax);
  if (!maps.ok()) return "";
  for (const Framework& framework : kFrameworks) {
    if (maps->find(framework.library) != std::string::npos) return framework.name;
  }
  return "";
}

std::optional<bool> HasMapped(const std::filesystem::path& proc, int32_t pid,
                              std::string_view file_name) {
  const auto maps = ReadFile(proc / std::to_string(pid) / "maps", kProcFileBytesMax);
  if (!maps.ok() || maps->empty()) return std::nullopt;
  return maps->find(file_name) != std::string::npos;
}

std::optional<bool> HasOpen(const std::filesystem::path& proc, int32_t pid, std::string_view text) {
  std::error_code error;
  std::filesystem::directory_iterator entry(proc / std::to_string(pid) / "fd", error);
  if (error) return std::nullopt;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code gone;
    const std::string file = std::filesystem::read_symlink(entry->path(), gone).string();
    if (file.find(text) != std::string::npos) return true;
  }
  return false;
}

std::optional<double> AgeSeconds(const std::filesystem::path& proc, const ProcessEntry& entry) {
  const auto text = ReadFile(proc / "uptime", kProcFileBytesMax);  // "5000.12 9800.00"
  double uptime = 0;
  if (!text.ok() || !absl::SimpleAtod(text->substr(0, text->find(' ')), &uptime)) {
    return std::nullopt;
  }
  return uptime -
         static_cast<double>(entry.start_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::optional<uint64_t> DescriptorsLeft(const std::filesystem::path& proc, int32_t pid) {
  const std::filesystem::path directory = proc / std::to_string(pid);
  const auto text = ReadFile(directory / "limits", kProcFileBytesMax);
  std::error_code error;
  std::filesystem::directory_iterator entry(directory / "fd", error);
  if (!text.ok() || error) return std::nullopt;
  uint64_t open = 0;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) ++open;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (!absl::ConsumePrefix(&line, "Max open files")) continue;
    const std::vector<absl::string_view> limits =  // soft, hard, unit
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t limit = 0;
    if (limits.empty() || !absl::SimpleAtoi(limits.front(), &limit)) return std::nullopt;
    return limit > open ? limit - open : 0;
  }
  return std::nullopt;
}

std::optional<std::string> EnvironmentOf(const std::filesystem::path& proc, int32_t pid,
                                         std::string_view name) {
  const auto text = ReadFile(proc / std::to_string(pid) / "environ", kProcFileBytesMax);
  if (!text.ok()) return std::nullopt;
  for (absl::string_view variable : absl::StrSplit(*text, '\0')) {
    if (absl::ConsumePrefix(&variable, AbslView(name)) && absl::ConsumePrefix(&variable, "=")) {
      return std::string(variable);
    }
  }
  return std::nullopt;
}

uint64_t OwnPidNamespace(const std::filesystem::path& proc) {
  return NamespaceInode(proc / "self" / "ns" / "pid");
}

}  // namespace syncline::agent
