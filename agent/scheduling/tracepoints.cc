// SPDX-License-Identifier: Apache-2.0
#include "agent/scheduling/tracepoints.h"

#include <optional>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::agent {
namespace {

constexpr char kField[] = "\tfield:";

// The number behind "offset:" and the like, up to ";".
std::optional<uint32_t> NumberBehind(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const size_t begin = at + key.size();
  uint32_t number = 0;
  if (!absl::SimpleAtoi(AbslView(line.substr(begin, line.find(';', begin) - begin)), &number)) {
    return std::nullopt;
  }
  return number;
}

// "pid_t prev_pid" and "char prev_comm[16]" declare prev_pid and prev_comm.
std::string DeclaredName(std::string_view declaration) {
  declaration = declaration.substr(0, declaration.find('['));
  const size_t blank = declaration.rfind(' ');
  return std::string(blank == std::string_view::npos ? declaration : declaration.substr(blank + 1));
}

// Collects the fields that are needed, and what is not as it should be.
class Needs {
 public:
  Needs(const std::filesystem::path& events, std::string name) : name_(std::move(name)) {
    auto text = ReadFile(events / name_ / "format");
    if (!text.ok()) {
      status_ = text.status();
      return;
    }
    auto parsed = ParseTracepoint(*text);
    if (parsed.ok()) {
      tracepoint_ = *std::move(parsed);
    } else {
      status_ = absl::FailedPreconditionError(
          absl::StrCat("the kernel's description of ", name_, " is not understood"));
    }
  }
  uint32_t id() const { return tracepoint_.id; }
  const absl::Status& status() const { return status_; }
  TraceField Field(std::string_view field, uint32_t size) {
    const auto found = tracepoint_.fields.find(field);
    if (found != tracepoint_.fields.end() && found->second.size == size) return found->second;
    if (status_.ok()) {
      status_ = absl::FailedPreconditionError(absl::StrCat(
          "the kernel's event ", name_, " has no field ", AbslView(field), " of ", size, " bytes"));
    }
    return {};
  }

 private:
  std::string name_;
  Tracepoint tracepoint_;
  absl::Status status_;
};

absl::StatusOr<SchedulerTracepoints> ReadTracepoints(const std::filesystem::path& events) {
  Needs switches(events, "sched_switch");
  Needs wakings(events, "sched_waking");
  Needs moves(events, "sched_migrate_task");
  SchedulerTracepoints all;
  all.switch_id = switches.id();
  all.waking_id = wakings.id();
  all.migrate_id = moves.id();
  all.flags = wakings.Field("common_flags", 1);
  all.current = wakings.Field("common_pid", 4);
  all.prev_tid = switches.Field("prev_pid", 4);
  all.prev_state = switches.Field("prev_state", sizeof(long));
  all.prev_name = switches.Field("prev_comm", 16);
  all.next_tid = switches.Field("next_pid", 4);
  all.next_name = switches.Field("next_comm", 16);
  all.woken_tid = wakings.Field("pid", 4);
  all.woken_cpu = wakings.Field("target_cpu", 4);
  all.moved_tid = moves.Field("pid", 4);
  all.moved_to = moves.Field("dest_cpu", 4);
  for (const Needs* needs : {&switches, &wakings, &moves}) {
    SYNCLINE_RETURN_IF_ERROR(needs->status());
  }
  return all;
}

}  // namespace

absl::StatusOr<Tracepoint> ParseTracepoint(std::string_view text) {
  Tracepoint tracepoint;
  bool has_id = false;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::string_view view = line;
    if (view.starts_with("ID:")) {
      has_id = absl::SimpleAtoi(AbslView(view.substr(3)), &tracepoint.id);
    }
    if (!view.starts_with(kField)) continue;
    const auto declaration = view.substr(sizeof kField - 1, view.find(';') - (sizeof kField - 1));
    const auto offset = NumberBehind(view, "offset:");
    const auto size = NumberBehind(view, "size:");
    if (offset && size) tracepoint.fields[DeclaredName(declaration)] = {*offset, *size};
  }
  if (!has_id || tracepoint.fields.empty()) {
    return absl::InvalidArgumentError("It is no description of a tracepoint");
  }
  return tracepoint;
}

absl::StatusOr<SchedulerTracepoints> FindSchedulerTracepoints(
    const std::vector<std::filesystem::path>& mounts) {
  absl::Status why = absl::NotFoundError("tracefs is not mounted");
  for (const std::filesystem::path& mount : mounts) {
    auto found = ReadTracepoints(mount / "events" / "sched");
    if (found.ok()) return found;
    if (!absl::IsNotFound(found.status())) why = found.status();
  }
  return why;
}

}  // namespace syncline::agent
