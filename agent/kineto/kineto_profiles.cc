// SPDX-License-Identifier: Apache-2.0
#include "agent/kineto/kineto_profiles.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "agent/host/process_table.h"
#include "agent/recording/block_gate.h"
#include "common/files.h"
#include "common/status.h"
#include "control_block/live_block.h"

namespace syncline::agent {
namespace {

using control_block::BlockId;
using xspace::ProfileRecord;
using xspace::ProfileState;

constexpr char kFolder[] = "kineto";
constexpr auto kWatchPeriod = std::chrono::milliseconds(250);
constexpr int64_t kPollNs = 50'000'000;
// A piece of the largest size takes a few seconds to be put together and written.
constexpr int64_t kGiveUpNs = 15'000'000'000;
constexpr char kNotEnded[] =
    "the process did not end its profile within 15 s after the recording: the process is stopped, "
    "is inside a long call, or has become another program (exec)";

}  // namespace

void KinetoProfiles::Reset(const EvidenceWindow& window) {
  recording_id_ = window.recording_id;
  directory_ = window.directory / kFolder;
  adopted_ = false;
  begun_monotonic_ns_ = 0;
  pieces_.clear();
  users_.clear();
}

void KinetoProfiles::Begin(const EvidenceWindow& window) {
  {
    const std::lock_guard lock(mutex_);
    if (recording_id_ == window.recording_id) return;
  }
  watcher_ = {};  // it may want the mutex before it ends
  const std::lock_guard lock(mutex_);
  Reset(window);
  begun_monotonic_ns_ = clock_->MonotonicNs();
  for (const auto& [uid, runtime] : directories_()) {  // what a recording before gave up
    const auto folder = PieceFolder::Open(runtime, uid);
    if (!folder.ok()) continue;
    const absl::Status cleared = folder->Clear(options_.folder_entries_max);
    if (cleared.ok()) continue;
    std::string& failure = users_[uid].clear_failure;
    failure = absl::StrCat("The folder kineto in \"", runtime.string(), "\" of user ", uid, " ",
                           cleared.message());
    log_->Warning("kineto", {{"user", absl::StrCat(uid)}, {"failure", failure}});
  }
  watcher_ = std::jthread([this](const std::stop_token& stop) { Watch(stop); });
}

void KinetoProfiles::Adopt(const EvidenceWindow& window) {
  watcher_ = {};
  const std::lock_guard lock(mutex_);
  Reset(window);
  adopted_ = true;  // and Begin has cleared what was older
}

void KinetoProfiles::Watch(const std::stop_token& stop) {
  std::condition_variable_any wake;
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    Round round = {.enough = [&] { return stop.stop_requested(); }};
    Take(&round);
    wake.wait_for(lock, stop, kWatchPeriod, [] { return false; });
  }
}

const ProcessEntry* KinetoProfiles::Find(const BlockId& process, Round* round) const {
  if (!round->processes.has_value()) {
    round->processes = ListProcesses(options_.proc).value_or(std::vector<ProcessEntry>());
  }
  const ProcessEntry* found = FindProcess(*round->processes, process);
  // What has ended stays listed until its parent asks.
  return found != nullptr && found->ended() ? nullptr : found;
}

void KinetoProfiles::Take(Round* round) {
  for (const auto& [uid, runtime] : directories_()) TakeFrom(uid, runtime, round);
}

bool KinetoProfiles::Awaits(Round* round) const {
  return std::any_of(pieces_.begin(), pieces_.end(), [&](const auto& entry) {
    const auto& [key, piece] = entry;
    return piece.record.end_realtime_ns == 0 && Find(std::get<BlockId>(key), round) != nullptr;
  });
}

void KinetoProfiles::TakeFrom(uint32_t uid, const std::filesystem::path& runtime, Round* round) {
  const auto folder = PieceFolder::Open(runtime, uid);
  if (!folder.ok()) return;
  // Processes that are recorded, with the user's own right to say so.
  const auto known = control_block::ListBlocks(runtime, uid);
  if (!known.ok()) return;
  for (const BlockId& process : *known) {
    if (round->enough()) return;
    absl::StatusOr<std::vector<ProfileRecord>> records = folder->Records(process);
    if (absl::IsNotFound(records.status())) continue;
    if (!records.ok()) {
      std::string& failure = users_[uid].list_failure;
      if (failure.empty()) {
        failure = std::string(records.status().message());
        log_->Warning("kineto", {{"user", absl::StrCat(uid)}, {"failure", failure}});
      }
      continue;
    }
    for (ProfileRecord& record : *records) {
      if (round->enough()) return;
      const Key key(uid, process, record.piece);
      const auto found = pieces_.find(key);
      if (found != pieces_.end() && found->second.settled) continue;
      if (found != pieces_.end() || Accepts(key, record, round)) {
        TakePiece(key, *folder, std::move(record));
      } else {
        folder->Remove(record.file);
      }
    }
  }
}

bool KinetoProfiles::Accepts(const Key& key, const ProfileRecord& record, Round* round) {
  // A recording before this one left it, or it does not say.
  if (record.begin_monotonic_ns == 0 || record.begin_monotonic_ns < begun_monotonic_ns_) {
    return false;
  }
  const uint32_t uid = std::get<uint32_t>(key);
  User& user = users_[uid];
  if (user.pieces >= options_.pieces_max) {
    if (!std::exchange(user.said, true)) {
      log_->Warning("kineto", {{"user", absl::StrCat(uid)},
                               {"failure", "more pieces than the agent keeps for one user"}});
    }
    return false;
  }
  // A control block is easily named like another user's process.
  const ProcessEntry* const process = Find(std::get<BlockId>(key), round);
  return process == nullptr || process->uid == uid;
}

void KinetoProfiles::TakePiece(const Key& key, const PieceFolder& folder, ProfileRecord record) {
  const std::string file = std::exchange(record.file, {});
  User& user = users_[std::get<uint32_t>(key)];
  const auto [found, is_new] = pieces_.try_emplace(key);
  if (is_new) ++user.pieces;
  Piece& piece = found->second;
  piece.record = std::move(record);
  piece.settled = !file.empty();
  if (file.empty()) return;
  // Different users may have processes of one name.
  const std::string kept = absl::StrCat(std::get<uint32_t>(key), "-", file);
  const auto bytes = TakeFile(folder, file, kept, options_.bytes_max - user.bytes);
  if (bytes.ok()) {
    piece.record.file = kept;
    piece.record.bytes = *bytes;
    user.bytes += *bytes;
  } else {
    piece.record.state = ProfileState::kFailed;
    piece.record.failure = std::string(bytes.status().message());
  }
}

absl::StatusOr<uint64_t> KinetoProfiles::TakeFile(const PieceFolder& folder,
                                                  const std::string& file, const std::string& kept,
                                                  uint64_t bytes_left) {
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(directory_, 0700));
  const uint64_t bytes_max = std::min(options_.piece_bytes_max, bytes_left);
  absl::StatusOr<uint64_t> taken = folder.Take(file, directory_ / kept, bytes_max);
  if (!absl::IsNotFound(taken.status()) || !adopted_) return taken;
  // The agent before this one has taken it.
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(directory_ / kept, error);
  return error ? taken : absl::StatusOr<uint64_t>(bytes);
}

std::vector<v1::Complaint> KinetoProfiles::Complain() const {
  std::vector<v1::Complaint> complaints;
  const auto complain = [&](int32_t pid, std::string what) {
    v1::Complaint& complaint = complaints.emplace_back();
    complaint.set_severity(v1::Complaint::WARNING);
    complaint.set_pid(pid);
    complaint.set_what(std::move(what));
    complaint.set_fix("the rest of the recording is not affected; docs/pytorch.md");
  };
  std::set<std::pair<int32_t, std::string>> said;
  for (const auto& [key, piece] : pieces_) {
    const ProfileRecord& record = piece.record;
    if (record.state == ProfileState::kComplete || record.failure.empty()) continue;
    if (!said.emplace(record.own_pid, record.failure).second) continue;
    complain(
        record.own_pid,
        absl::StrCat("Process ", record.own_pid,
                     " delivered no Kineto profile for part of the recording: ", record.failure));
  }
  for (const auto& [uid, user] : users_) {
    if (!user.list_failure.empty()) {
      complain(0, absl::StrCat("The Kineto profiles of user ", uid,
                               " are missing: ", user.list_failure));
    }
    if (!user.clear_failure.empty()) complain(0, user.clear_failure);
    if (!user.said) continue;
    complain(0, absl::StrCat("User ", uid, "'s processes wrote more than ", options_.pieces_max,
                             " pieces of Kineto profiles: the remaining pieces are not kept"));
  }
  return complaints;
}

std::vector<v1::Complaint> KinetoProfiles::Collect() {
  watcher_ = {};
  const std::lock_guard lock(mutex_);
  if (recording_id_.empty()) return {};
  recording_id_.clear();
  const int64_t give_up_ns = clock_->MonotonicNs() + kGiveUpNs;
  const auto too_late = [&] { return clock_->MonotonicNs() >= give_up_ns; };
  for (bool again = true; again;) {
    Round round = {.enough = too_late};
    Take(&round);
    again = Awaits(&round) && !too_late();
    if (again) clock_->SleepNs(kPollNs);
  }
  if (pieces_.empty()) return Complain();
  std::vector<ProfileRecord> records;
  Round last = {.enough = too_late};
  for (auto& [key, piece] : pieces_) {
    ProfileRecord& record = piece.record;
    if (record.end_realtime_ns == 0) {
      record.end_realtime_ns = clock_->RealtimeNs();
      // It has said what is true should it be gone.
      if (Find(std::get<BlockId>(key), &last) != nullptr) record.failure = kNotEnded;
    }
    log_->Line(record.failure.empty() ? LogLevel::kInfo : LogLevel::kWarning, "kineto",
               {{"pid", absl::StrCat(record.own_pid)},
                {"piece", absl::StrCat(record.piece)},
                {"state", std::string(xspace::ProfileStateName(record.state))},
                {"bytes", absl::StrCat(record.bytes)},
                {"failure", record.failure}});
    records.push_back(record);
  }
  absl::Status kept = MakeDirectories(directory_, 0700);
  if (kept.ok()) {
    kept = WriteFileAtomically(directory_ / "profiles.json",
                               xspace::FormatProfileList(std::move(records)), 0600);
  }
  log_->Failure("kineto", kept);
  return Complain();
}

}  // namespace syncline::agent
