// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/block_complaints.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace syncline::agent {

v1::Complaint MakeComplaint(v1::Complaint::Severity severity, int32_t pid, std::string what,
                            std::string fix) {
  v1::Complaint complaint;
  complaint.set_severity(severity);
  complaint.set_pid(pid);
  complaint.set_what(std::move(what));
  complaint.set_fix(std::move(fix));
  return complaint;
}

v1::Complaint StoppedComplaint(const ProcessEntry& entry) {
  return MakeComplaint(
      v1::Complaint::WARNING, entry.pid,
      absl::StrCat("Process ", entry.pid, " (", entry.name,
                   ") is stopped: none of its events is recorded until it continues, and LTTng may "
                   "omit it from this recording"),
      absl::StrCat("kill -CONT ", entry.pid, ", or detach the debugger that holds the process"));
}

v1::Complaint UnreachableComplaint(const control_block::BlockId& id) {
  return MakeComplaint(
      v1::Complaint::WARNING, 0,
      absl::StrCat("Process ", id.pid, " of pid namespace ", id.pid_namespace,
                   " has a control block here but is not visible: it was killed, or it runs in a "
                   "sibling pid namespace of the agent's, from which LTTng refuses programs"),
      "run the agent in the host's pid namespace (hostPID: true, docker run --pid=host) or in the"
      " job's own container");
}

v1::Complaint ReplacedComplaint(const control_block::BlockId& id, const ProcessEntry* entry) {
  const std::string name = entry == nullptr ? "" : absl::StrCat(" (", entry->name, ")");
  return MakeComplaint(v1::Complaint::WARNING, entry == nullptr ? 0 : entry->pid,
                       absl::StrCat("Process ", entry == nullptr ? id.pid : entry->pid, name,
                                    " became another program (exec) while it was recorded: the "
                                    "events of the new program are not in this recording"),
                       "record again: the new program will be recorded");
}

v1::Complaint LeftComplaint(const ProcessEntry& entry) {
  return MakeComplaint(
      v1::Complaint::NOTE, entry.pid,
      absl::StrCat(
          "Process ", entry.pid, " (", entry.name,
          ") became another program (exec) while it was recorded: the new program has made "
          "no call that can be recorded"),
      "");
}

v1::Complaint StillComplaint(const ProcessEntry& entry) {
  return MakeComplaint(
      v1::Complaint::NOTE, entry.pid,
      absl::StrCat("Process ", entry.pid, " (", entry.name,
                   ") is stopped as the recording ends: it has made no call since it was stopped, "
                   "so nothing of it is lost by that"),
      "");
}

v1::Complaint DescriptorComplaint(absl::string_view what, absl::string_view why) {
  return MakeComplaint(v1::Complaint::WARNING, 0, absl::StrCat(what, ": ", why),
                       "start the agent with a higher limit of open files (ulimit -Hn, "
                       "LimitNOFILE=)");
}

v1::Complaint ForeignComplaint(uint32_t uid, size_t blocks, const ProcessEntry& one) {
  return MakeComplaint(
      v1::Complaint::WARNING, 0,
      absl::StrCat("User ", uid, " has ", blocks, " control blocks in the name of processes that ",
                   "belong to others (", one.pid, " belongs to user ", one.uid,
                   "): they are not used"),
      absl::StrCat("ask user ", uid, "; the processes of other users are not affected"));
}

v1::Complaint PlantedComplaint(uint32_t owner, const std::vector<std::string>& names) {
  return MakeComplaint(
      v1::Complaint::WARNING, 0,
      absl::StrCat("User ", owner, " has put ", names.size(),
                   " entries into shared memory under the names of other users' runtime "
                   "directories (",
                   names.front(), names.size() > 1 ? ", ..." : "",
                   "): programs of those users cannot be recorded"),
      absl::StrCat("remove \"", names.front(), "\" and what else is there; ask user ", owner));
}

v1::Complaint SkippedComplaint(uint32_t uid, const std::filesystem::path& directory,
                               const absl::Status& why) {
  v1::Complaint complaint = MakeComplaint(
      v1::Complaint::WARNING, 0,
      absl::StrCat("Processes of user ", uid, " are skipped: ", why.message()),
      absl::IsFailedPrecondition(why) ? "record again then; other users are not affected"
      : absl::IsAborted(why)          ? "record again; other users are not affected"
                             : absl::StrCat("make \"", directory.string(), "\" belong to user ",
                                            uid, " with mode 0700; other users are not affected"));
  complaint.set_uid(uid);
  complaint.set_not_recorded(true);
  return complaint;
}

v1::Complaint TooManyComplaint(uint32_t uid, const std::filesystem::path& directory, size_t blocks,
                               size_t blocks_max) {
  return MakeComplaint(
      v1::Complaint::WARNING, 0,
      absl::StrCat("User ", uid, " has ", blocks, " control blocks: only ", blocks_max,
                   " of them are used"),
      absl::StrCat("remove what ended processes have left in \"", directory.string(), "\""));
}

v1::Complaint CrowdedComplaint(uint32_t uid, size_t blocks_max) {
  return MakeComplaint(
      v1::Complaint::WARNING, 0,
      absl::StrCat("User ", uid, " had more control blocks than the ", blocks_max,
                   " of one user that are open at a time: processes of this user that began later "
                   "may be missing from this recording"),
      absl::StrCat("look at what user ", uid, " runs here; other users are not affected"));
}

v1::Complaint UnlistedComplaint(uint32_t uid, const std::filesystem::path& directory,
                                size_t blocks) {
  return MakeComplaint(
      v1::Complaint::WARNING, 0,
      absl::StrCat(blocks, " more control blocks of user ", uid,
                   " are of processes that are not visible here: they are not listed"),
      absl::StrCat("remove what is left of them in \"", directory.string(), "\""));
}

}  // namespace syncline::agent
