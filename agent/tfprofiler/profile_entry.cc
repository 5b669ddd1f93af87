// SPDX-License-Identifier: Apache-2.0
#include "agent/tfprofiler/profile_entry.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncline::agent {

using xspace::ProfileRecord;
using xspace::ProfileState;

ProfileEntry EntryOf(const FoundProfiler& worker) {
  ProfileEntry entry{.pid = worker.process.pid, .process_name = worker.process.name};
  entry.record.own_pid = worker.process.own_pid;
  entry.record.pid_namespace_inode = worker.process.pid_namespace;
  entry.record.start_ticks = worker.process.start_ticks;
  entry.record.port = worker.port;
  entry.record.address = worker.address;
  entry.record.framework = worker.jax ? "JAX" : "";
  entry.record.task = worker.task;
  entry.record.incarnation = worker.incarnation;
  return entry;
}

std::string FormatEntries(const std::vector<ProfileEntry>& entries) {
  std::vector<ProfileRecord> records;
  for (const ProfileEntry& entry : entries) records.push_back(entry.record);
  return xspace::FormatProfileList(std::move(records));
}

std::vector<v1::Complaint> ComplainOfProfiles(const std::vector<ProfileEntry>& entries) {
  std::vector<v1::Complaint> complaints;
  std::set<int32_t> named;
  for (const ProfileEntry& entry : entries) {
    const ProfileRecord& record = entry.record;
    const bool busy = record.state == ProfileState::kBusy;
    if (!busy && record.state != ProfileState::kFailed && !entry.left_alone) continue;
    if (!named.insert(entry.pid).second) continue;
    v1::Complaint& complaint = complaints.emplace_back();
    complaint.set_severity(v1::Complaint::WARNING);
    complaint.set_pid(entry.pid);
    complaint.set_what(absl::StrCat(
        "Process ", entry.pid, " (", record.task.empty() ? entry.process_name : record.task,
        ") gave no ", record.framework.empty() ? "TensorFlow" : record.framework,
        " operators: ", record.failure));
    complaint.set_fix(entry.left_alone ? kAskAllTheSame
                      : busy ? "end that profile (TensorBoard's, or tf.profiler in the program) "
                               "before you record, or record with --no-tf-profiler"
                             : "the rest of the recording is not affected; --no-tf-profiler does "
                               "not request profiles");
  }
  return complaints;
}

}  // namespace syncline::agent
