// SPDX-License-Identifier: Apache-2.0
#include "agent/vtune/vtune_finder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/text.h"
#include "common/utf8.h"
#include "vtune/commands.h"

namespace syncline::agent {
namespace {

constexpr size_t kVersionBytesMax = 120;

bool IsProgram(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<uint64_t> NumbersOf(std::string_view version) {
  std::vector<uint64_t> numbers;
  for (const absl::string_view part : absl::StrSplit(AbslView(version), '.')) {
    if (!absl::SimpleAtoi(part, &numbers.emplace_back(0))) numbers.back() = 0;
  }
  return numbers;
}

bool IsVersion(std::string_view name) { return !name.empty() && name[0] >= '0' && name[0] <= '9'; }

}  // namespace

absl::Status CheckOnlyRoots(const std::filesystem::path& file) {
  for (std::filesystem::path part = file;; part = part.parent_path()) {
    struct stat facts {};
    if (::lstat(part.c_str(), &facts) != 0) {
      return ErrnoStatus(errno, absl::StrCat("Cannot look at ", part.string()));
    }
    if (facts.st_uid != 0 || S_ISLNK(facts.st_mode) || (facts.st_mode & 0022) != 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "\"", part.string(),
          "\" must belong to root and be writable by root alone: ", "this agent runs as root"));
    }
    if (part == part.root_path()) return absl::OkStatus();
  }
}

bool IsOlderVersion(std::string_view a, std::string_view b) { return NumbersOf(a) < NumbersOf(b); }

std::string VtuneFinder::FindFile() const {
  if (!options_.profiler_directory.empty()) {
    const std::filesystem::path file =
        std::filesystem::path(options_.profiler_directory) / "bin64" / "vtune";
    if (IsProgram(file)) return file.string();
  }
  for (const absl::string_view directory : absl::StrSplit(options_.path, ':')) {
    if (directory.empty() || directory[0] != '/') continue;  // not where the agent was started
    const std::filesystem::path file = std::filesystem::path(std::string(directory)) / "vtune";
    if (IsProgram(file)) return file.string();
  }
  std::string newest;
  std::error_code error;
  for (std::filesystem::directory_iterator it(options_.versions, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!IsVersion(name) || !IsProgram(it->path() / "bin64" / "vtune")) continue;
    if (newest.empty() || IsOlderVersion(newest, name)) newest = name;
  }
  return newest.empty() ? "" : (options_.versions / newest / "bin64" / "vtune").string();
}

void VtuneFinder::AskVersion(v1::NodeTool* tool) const {
  const auto said =
      runner_->Run({.arguments = vtune::VersionCommand(tool->path())}, options_.version_limit_ms);
  if (!said.ok()) {
    tool->set_detail(
        absl::StrCat("it did not say its version within ", options_.version_limit_ms, " ms"));
    return;
  }
  const std::string line = said->output.substr(0, said->output.find('\n'));
  const std::string_view first = CutText(line, kVersionBytesMax);
  if (said->exit_code != 0) {
    tool->set_problem(absl::StrCat("`vtune -version` ends with code ", said->exit_code, ": ",
                                   OnlyPrintable(first, '?')));
    return;
  }
  tool->set_version(OnlyPrintable(first, ' '));
}

std::optional<v1::NodeTool> VtuneFinder::Find() {
  const std::string found = FindFile();
  const std::lock_guard lock(mutex_);
  if (found.empty()) {
    known_.reset();
    return std::nullopt;
  }
  std::error_code error;
  // Links on the way may be somebody's who could change them behind the check.
  const std::string file = std::filesystem::canonical(found, error).string();
  const auto changed = std::filesystem::last_write_time(file, error);
  // Who may write there is looked at each time.
  const absl::Status trusted = options_.only_roots ? CheckOnlyRoots(file) : absl::OkStatus();
  if (known_.has_value() && trusted.ok() && !error && known_->path() == file &&
      known_time_ == changed && !known_->version().empty()) {
    return known_;
  }
  v1::NodeTool tool;
  tool.set_name("vtune");
  tool.set_path(file);
  if (trusted.ok()) {
    AskVersion(&tool);
  } else {
    tool.set_problem(std::string(trusted.message()));
  }
  known_ = tool;
  known_time_ = changed;
  return tool;
}

}  // namespace syncline::agent
