// SPDX-License-Identifier: Apache-2.0
// The agent's log: one line per event, "time level event key=value ...", to standard error or a
// file; and, while a recording is in hand, into its agent.log as well. Values with blanks are
// quoted; control characters never get through. Thread-safe.
#ifndef SYNCLINE_AGENT_HOST_LOG_H_
#define SYNCLINE_AGENT_HOST_LOG_H_

#include <filesystem>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "agent/probe/clock.h"

namespace syncline::agent {

enum class LogLevel { kInfo, kWarning, kError };

using LogField = std::pair<std::string_view, std::string>;

// One line without the newline; pure.
std::string FormatLogLine(int64_t realtime_ns, LogLevel level, std::string_view event,
                          std::initializer_list<LogField> fields);

class Log {
 public:
  // `fd` is written to and not owned; -1: silent. `clock` is not owned.
  Log(int fd, Clock* clock) : fd_(fd), clock_(clock) {}
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void Line(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});
  void Info(std::string_view event, std::initializer_list<LogField> fields = {}) {
    Line(LogLevel::kInfo, event, fields);
  }
  void Warning(std::string_view event, std::initializer_list<LogField> fields = {}) {
    Line(LogLevel::kWarning, event, fields);
  }
  // OK is not logged.
  void Failure(std::string_view event, const absl::Status& status);

  // Lines go into `path` too, until Detach.
  void Attach(const std::filesystem::path& path);
  void Detach();

 private:
  const int fd_;
  Clock* const clock_;
  std::mutex mutex_;
  int attached_ ABSL_GUARDED_BY(mutex_) = -1;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_HOST_LOG_H_
