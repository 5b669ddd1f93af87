// SPDX-License-Identifier: Apache-2.0
#include "agent/host/log.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/text.h"
#include "common/utf8.h"

namespace syncline::agent {
namespace {

constexpr size_t kValueBytesMax = 1000;

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "?";
}

void AppendValue(std::string_view value, std::string* line) {
  value = CutText(value, kValueBytesMax);
  const bool plain = !value.empty() && value.find_first_of(" \"=\\") == std::string_view::npos;
  if (!plain) line->push_back('"');
  for (const char c : OnlyPrintable(value, '?')) {
    if (c == '"' || c == '\\') line->push_back('\\');
    line->push_back(c);
  }
  if (!plain) line->push_back('"');
}

void WriteLine(int fd, const std::string& line) {
  if (fd < 0) return;
  // A log that cannot be written must not end the agent.
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
}

}  // namespace

std::string FormatLogLine(int64_t realtime_ns, LogLevel level, std::string_view event,
                          std::initializer_list<LogField> fields) {
  std::string line =
      absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixNanos(realtime_ns),
                                    absl::UTCTimeZone()),
                   " ", LevelName(level), " ", AbslView(event));
  for (const auto& [key, value] : fields) {
    absl::StrAppend(&line, " ", AbslView(key), "=");
    AppendValue(value, &line);
  }
  return line;
}

Log::~Log() { Detach(); }

void Log::Line(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  const std::string line = FormatLogLine(clock_->RealtimeNs(), level, event, fields) + "\n";
  WriteLine(fd_, line);
  const std::lock_guard lock(mutex_);
  WriteLine(attached_, line);
}

void Log::Failure(std::string_view event, const absl::Status& status) {
  if (!status.ok()) Line(LogLevel::kWarning, event, {{"reason", status.ToString()}});
}

void Log::Attach(const std::filesystem::path& path) {
  Detach();
  const std::lock_guard lock(mutex_);
  attached_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

void Log::Detach() {
  const std::lock_guard lock(mutex_);
  if (attached_ >= 0) ::close(attached_);
  attached_ = -1;
}

}  // namespace syncline::agent
