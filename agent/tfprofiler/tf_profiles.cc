// SPDX-License-Identifier: Apache-2.0
#include "agent/tfprofiler/tf_profiles.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/tfprofiler/profile_shares.h"
#include "common/files.h"

namespace syncline::agent {
namespace {

// Level 3 alone names both ends of a tensor that crosses to another machine with one key, so that
// arrows need no second source.
constexpr int kLevelDefault = 3;
// Of all answers that are received at one time.
constexpr uint64_t kAnswersBytesMax = 512 << 20;

// Why the worker is not asked; empty: it is.
std::string WhyLeftOut(const FoundProfiler& worker, bool collectives_too) {
  if (worker.port == 0) return worker.absence;
  return worker.runs_collectives && !collectives_too ? kCollectivesAreUnsafe : "";
}

v1::Complaint ComplainOfTooMany(uint32_t user, size_t processes) {
  v1::Complaint complaint;
  complaint.set_severity(v1::Complaint::WARNING);
  complaint.set_what(absl::StrCat("User ", user, " runs more TensorFlow profilers than the ",
                                  kProfilesOfUserMax, " that are asked: ", processes,
                                  " of these processes gave no TensorFlow operators"));
  complaint.set_fix("the rest of the recording is not affected");
  return complaint;
}

}  // namespace

void TfProfiles::Find(const std::vector<uint32_t>& left_out) {
  std::vector<FoundProfiler> found = finder_->Find();
  // A profiler serves one at a time: who is recorded by somebody else would lose his profile.
  std::erase_if(found, [&](const FoundProfiler& worker) {
    return std::count(left_out.begin(), left_out.end(), worker.process.uid) != 0;
  });
  const std::lock_guard lock(mutex_);
  found_ = std::move(found);
}

void TfProfiles::Begin(const EvidenceWindow& window) {
  const std::lock_guard lock(mutex_);
  if (recording_id_ == window.recording_id || found_.empty()) return;
  recording_id_ = window.recording_id;
  const std::filesystem::path directory = window.directory / "xspace";
  if (const absl::Status made = MakeDirectories(directory, 0700); !made.ok()) {
    log_->Failure("tf_profiler", made);
    return;
  }
  {
    const std::lock_guard entries_lock(entries_mutex_);
    directory_ = directory;
    entries_.clear();
  }
  EvidenceWindow asked = window;
  if (asked.host_tracer_level == 0) asked.host_tracer_level = kLevelDefault;
  std::vector<const FoundProfiler*> workers;
  std::vector<uint32_t> users;
  std::vector<ProfileEntry> left_out;
  for (const FoundProfiler& worker : found_) {
    std::string why = WhyLeftOut(worker, window.collectives_too);
    if (why.empty()) {
      workers.push_back(&worker);
      users.push_back(worker.process.uid);
      continue;
    }
    ProfileEntry& entry = left_out.emplace_back(EntryOf(worker));
    entry.record.state = xspace::ProfileState::kMissing;
    entry.record.failure = std::move(why);
    entry.left_alone = worker.port != 0;
  }
  Keep(std::move(left_out));
  const std::vector<uint64_t> shares = ShareBytes(users, kAnswersBytesMax);
  not_asked_.clear();
  for (size_t i = 0; i < workers.size(); ++i) {
    if (shares[i] == 0) {
      ++not_asked_[users[i]];
      continue;
    }
    ProfileLimits limits = limits_;
    limits.answer_bytes_max = std::min(limits.answer_bytes_max, shares[i]);
    workers_.push_back(std::make_unique<WorkerProfile>(*workers[i], asked, limits, clock_,
                                                       [this](ProfileEntry entry) {
                                                         std::vector<ProfileEntry> entries;
                                                         entries.push_back(std::move(entry));
                                                         Keep(std::move(entries));
                                                       }));
  }
}

void TfProfiles::End() {
  const std::lock_guard lock(mutex_);
  for (const auto& worker : workers_) worker->End();
}

std::vector<v1::Complaint> TfProfiles::Collect() {
  const std::lock_guard lock(mutex_);
  for (const auto& worker : workers_) worker->Join();
  workers_.clear();
  found_.clear();
  recording_id_.clear();
  const std::lock_guard entries_lock(entries_mutex_);
  std::vector<v1::Complaint> complaints = ComplainOfProfiles(std::exchange(entries_, {}));
  for (const auto& [user, processes] : std::exchange(not_asked_, {})) {
    complaints.push_back(ComplainOfTooMany(user, processes));
  }
  return complaints;
}

void TfProfiles::Keep(std::vector<ProfileEntry> entries) {
  if (entries.empty()) return;
  for (const ProfileEntry& entry : entries) {
    log_->Line(entry.record.failure.empty() ? LogLevel::kInfo : LogLevel::kWarning, "tf_profiler",
               {{"pid", absl::StrCat(entry.pid)},
                {"port", absl::StrCat(entry.record.port)},
                {"task", entry.record.task},
                {"piece", absl::StrCat(entry.record.piece)},
                {"state", std::string(xspace::ProfileStateName(entry.record.state))},
                {"bytes", absl::StrCat(entry.record.bytes)},
                {"failure", entry.record.failure}});
  }
  const std::lock_guard lock(entries_mutex_);
  std::move(entries.begin(), entries.end(), std::back_inserter(entries_));
  // At once, so that an agent that is killed leaves a list of what there is.
  log_->Failure("tf_profiler",
                WriteFileAtomically(directory_ / "profiles.json", FormatEntries(entries_), 0600));
}

}  // namespace syncline::agent
