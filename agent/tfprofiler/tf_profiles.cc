// SPDX-License-Identifier: Apache-2.0
#include "agent/tfprofiler/tf_profiles.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"

namespace syncline::agent {
namespace {

// Level 3 alone names both ends of a tensor that crosses to another machine with one key, so that
// arrows need no second source.
constexpr int kLevelDefault = 3;
// Of all answers that are received at one time.
constexpr uint64_t kAnswersBytesMax = 512 << 20;

}  // namespace

void TfProfiles::Find() {
  std::vector<FoundProfiler> found = finder_->Find();
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
  ProfileLimits limits = limits_;
  limits.answer_bytes_max =
      std::min<uint64_t>(limits.answer_bytes_max, kAnswersBytesMax / found_.size());
  for (const FoundProfiler& worker : found_) {
    const bool unsafe = worker.runs_collectives && !window.collectives_too;
    if (worker.port == 0 || unsafe) {
      ProfileEntry entry = EntryOf(worker);
      entry.record.state = xspace::ProfileState::kMissing;
      entry.record.failure = worker.port == 0 ? worker.absence : kCollectivesAreUnsafe;
      entry.left_alone = worker.port != 0;
      Keep(std::move(entry));
    } else {
      workers_.push_back(std::make_unique<WorkerProfile>(
          worker, asked, limits, clock_, [this](ProfileEntry entry) { Keep(std::move(entry)); }));
    }
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
  return ComplainOfProfiles(std::exchange(entries_, {}));
}

void TfProfiles::Keep(ProfileEntry entry) {
  log_->Line(entry.record.failure.empty() ? LogLevel::kInfo : LogLevel::kWarning, "tf_profiler",
             {{"pid", absl::StrCat(entry.pid)},
              {"port", absl::StrCat(entry.record.port)},
              {"task", entry.record.task},
              {"piece", absl::StrCat(entry.record.piece)},
              {"state", std::string(xspace::ProfileStateName(entry.record.state))},
              {"bytes", absl::StrCat(entry.record.bytes)},
              {"failure", entry.record.failure}});
  const std::lock_guard lock(entries_mutex_);
  entries_.push_back(std::move(entry));
  // At once, so that an agent that is killed leaves a list of what there is.
  log_->Failure("tf_profiler",
                WriteFileAtomically(directory_ / "profiles.json", FormatEntries(entries_), 0600));
}

}  // namespace syncline::agent
