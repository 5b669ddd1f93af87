// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/other_collector.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/cli/trial.h"
#include "instrumentation/abi/tracer.h"

namespace syncline::cli {
namespace {

constexpr char kAlsoVariable[] = SYNCLINE_ALSO_COLLECTOR_VARIABLE;

[[noreturn]] void LoadAndExit(const std::string& collector, int report) {
  void* const library = ::dlopen(collector.c_str(), RTLD_LAZY);
  if (library != nullptr && ::dlsym(library, "__itt_api_init") != nullptr) ::_exit(0);
  const char* const reason =
      library == nullptr ? ::dlerror() : "it is no ITT collector (it has no __itt_api_init)";
  if (reason != nullptr) (void)!::write(report, reason, std::strlen(reason));
  ::_exit(1);
}

}  // namespace

bool IsOurs(const std::string& collector) {
  return std::filesystem::path(collector).filename() == kCollectorFile;
}

std::string PlanCollectors(const Environment& current, const std::string& own,
                           const std::string& also, Environment* set) {
  const auto found = current.find(kCollectorVariable);
  const std::string theirs = found == current.end() || found->second == own ? "" : found->second;
  if (!theirs.empty() && IsOurs(theirs)) {
    return absl::StrCat(kCollectorVariable, " is set to ", theirs,
                        ", of another installation of Syncline, and stays");
  }
  (*set)[kCollectorVariable] = own;
  if (const std::string& other = also.empty() ? theirs : also; !other.empty()) {
    (*set)[kAlsoVariable] = other;
  }
  if (also.empty() || theirs.empty() || also == theirs) return "";
  return absl::StrCat(theirs, ", which ", kCollectorVariable, " names, gets no ITT calls: ", also,
                      " does (--also-collector)");
}

std::string CollectorLines(const std::string& own, const std::string& also) {
  const std::string value = absl::StrCat("\"${", kCollectorVariable, ":-}\"");
  const std::string other = also.empty() ? value : ShellQuoted(also);
  std::string lines = absl::StrCat("case ", value, " in\n  '' | ", ShellQuoted(own), ") export ",
                                   kCollectorVariable, "=", ShellQuoted(own));
  if (!also.empty()) absl::StrAppend(&lines, " ", kAlsoVariable, "=", other);
  absl::StrAppend(&lines, " ;;\n  *", kCollectorFile, ") ;;\n  *) export ", kAlsoVariable, "=",
                  other, " ", kCollectorVariable, "=", ShellQuoted(own), " ;;\nesac\n");
  return lines;
}

absl::Status TryCollector(const std::string& collector, int limit_ms) {
  const absl::StatusOr<Trial> trial =
      Try([&](int report) { LoadAndExit(collector, report); }, limit_ms);
  if (!trial.ok()) return WithContext(trial.status(), "Cannot try it");
  if (trial->late) {
    return absl::DeadlineExceededError(absl::StrCat("it did not load in ", limit_ms, " ms"));
  }
  if (WIFEXITED(trial->status) && WEXITSTATUS(trial->status) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(trial->said.empty() ? "it ends the program that loads it"
                                                           : trial->said);
}

std::string DropUnusableOption(std::string* also) {
  const absl::Status tried = also->empty() ? absl::OkStatus() : TryCollector(*also);
  if (tried.ok()) return "";
  return absl::StrCat(std::exchange(*also, ""), " gets no ITT calls: ", tried.message());
}

std::string DropUnusableCollector(Environment* set) {
  const auto also = set->find(kAlsoVariable);
  if (also == set->end()) return "";
  const std::string collector = also->second;
  const absl::Status tried = TryCollector(collector);
  if (tried.ok()) return "";
  set->erase(also);
  set->erase(kCollectorVariable);
  return absl::StrCat(kCollectorVariable, " is set to ", collector,
                      " and stays: the program's ITT tasks are not recorded, for ours cannot call "
                      "it: ",
                      tried.message());
}

}  // namespace syncline::cli
