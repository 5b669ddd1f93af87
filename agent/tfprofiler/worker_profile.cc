// SPDX-License-Identifier: Apache-2.0
#include "agent/tfprofiler/worker_profile.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"

namespace syncline::agent {
namespace {

constexpr int64_t kPieceWorthwhileNs = 50'000'000;  // a shorter rest is left out

std::string NameOf(const FoundProfiler& worker, int piece) {
  const ProcessEntry& process = worker.process;
  return absl::StrCat(process.own_pid, "-", process.start_ticks, "-", piece);
}

}  // namespace

Piece PlanPiece(int64_t now_realtime_ns, int64_t window_start_realtime_ns, int64_t end_realtime_ns,
                int64_t piece_ns) {
  Piece piece;
  piece.start_realtime_ns = std::max(now_realtime_ns, window_start_realtime_ns);
  piece.duration_ns = piece_ns;
  if (end_realtime_ns != 0) {
    const int64_t left_ns = end_realtime_ns - piece.start_realtime_ns;
    piece.duration_ns = left_ns < kPieceWorthwhileNs ? 0 : std::min(piece_ns, left_ns);
  }
  return piece;
}

WorkerProfile::WorkerProfile(FoundProfiler worker, EvidenceWindow window, ProfileLimits limits,
                             Clock* clock, Keep keep)
    : worker_(std::move(worker)),
      window_(std::move(window)),
      limits_(limits),
      clock_(clock),
      keep_(std::move(keep)),
      thread_([this] { Run(); }) {}

WorkerProfile::~WorkerProfile() {
  End();
  Join();
}

void WorkerProfile::End() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(ending_, true)) return;
  give_up_monotonic_ns_ = clock_->MonotonicNs() + limits_.give_up_ns;
  wake_.notify_all();
}

void WorkerProfile::Join() {
  if (thread_.joinable()) thread_.join();
}

bool WorkerProfile::ending() {
  const std::lock_guard lock(mutex_);
  return ending_;
}

bool WorkerProfile::WaitUntilAskingTime() {
  std::unique_lock lock(mutex_);
  const int64_t wait_ns = window_.start_raw_ns - limits_.ahead_ns - clock_->RawNs();
  wake_.wait_for(lock, std::chrono::nanoseconds(wait_ns), [this] { return ending_; });
  return !ending_;
}

ProfileEntry WorkerProfile::NewEntry(int number) const {
  ProfileEntry entry = EntryOf(worker_);
  entry.record.piece = number;
  entry.record.host_tracer_level = window_.host_tracer_level;
  return entry;
}

void WorkerProfile::Run() {
  if (!WaitUntilAskingTime()) return;
  const auto client = ProfilerClient::Connect({.pid = worker_.process.pid,
                                               .net_namespace = worker_.net_namespace,
                                               .address = worker_.address,
                                               .port = worker_.port},
                                              limits_.connect_limit_ms, limits_.answer_bytes_max);
  if (!client.ok()) {
    ProfileEntry entry = NewEntry(0);
    entry.record.begin_realtime_ns = entry.record.end_realtime_ns = clock_->RealtimeNs();
    entry.record.failure = std::string(client.status().message());
    keep_(std::move(entry));
    return;
  }
  // The window in the worker's wall clock, which is this host's.
  // Asked too late, it still ends when the window does.
  const int64_t wait_ns = window_.start_raw_ns == 0 ? 0 : window_.start_raw_ns - clock_->RawNs();
  const int64_t begin_ns = clock_->RealtimeNs() + wait_ns;
  const int64_t end_ns =
      window_.length_ns == 0 ? 0 : begin_ns + window_.length_ns + limits_.tail_ns;
  int64_t piece_ns = limits_.piece_ns;
  for (int number = 0; !ending(); ++number) {
    const Piece piece =
        PlanPiece(clock_->RealtimeNs(), begin_ns - limits_.head_ns, end_ns, piece_ns);
    if (piece.duration_ns == 0) return;
    Outcome outcome = RunPiece(**client, piece, number);
    const xspace::ProfileState state = outcome.entry.record.state;
    keep_(std::move(outcome.entry));
    if (outcome.too_large && piece_ns > limits_.piece_ns_min) {
      piece_ns = std::max(piece_ns / 2, limits_.piece_ns_min);
    } else if (state != xspace::ProfileState::kComplete && state != xspace::ProfileState::kEmpty) {
      return;
    }
  }
}

WorkerProfile::Outcome WorkerProfile::RunPiece(ProfilerClient& client, const Piece& piece,
                                               int number) {
  ProfileEntry entry = NewEntry(number);
  entry.record.session =
      absl::StrCat("syncline-", window_.recording_id, "-", NameOf(worker_, number));
  entry.record.asked_start_realtime_ns = piece.start_realtime_ns;
  entry.record.asked_duration_ns = piece.duration_ns;
  entry.record.begin_realtime_ns = clock_->RealtimeNs();
  {
    const std::lock_guard lock(mutex_);
    answer_.reset();
  }
  const int64_t lead_ns =
      std::max<int64_t>(0, piece.start_realtime_ns - entry.record.begin_realtime_ns);
  const auto call =
      client.Profile({.session = entry.record.session,
                      .host_tracer_level = window_.host_tracer_level,
                      .device_tracer_level = window_.device_tracer_level,
                      .start_realtime_ns = piece.start_realtime_ns,
                      .duration_ns = piece.duration_ns,
                      .timeout_ns = lead_ns + piece.duration_ns + limits_.answer_limit_ns},
                     [this](absl::StatusOr<ProfileAnswer> answer) {
                       const std::lock_guard lock(mutex_);
                       answer_ = std::move(answer);
                       wake_.notify_all();
                     });
  bool cut = false;
  const absl::StatusOr<ProfileAnswer> answer = Await(client, *call, entry, &cut);
  entry.record.end_realtime_ns = clock_->RealtimeNs();
  Store(answer, cut, &entry);
  return {std::move(entry), absl::IsResourceExhausted(answer.status())};
}

absl::StatusOr<ProfileAnswer> WorkerProfile::Await(ProfilerClient& client,
                                                   ProfilerClient::Call& call,
                                                   const ProfileEntry& entry, bool* cut) {
  std::unique_lock lock(mutex_);
  const auto answered = [this] { return answer_.has_value(); };
  wake_.wait(lock, [&] { return answered() || ending_; });
  if (!answered()) {
    const int64_t left_ns = entry.record.asked_start_realtime_ns + entry.record.asked_duration_ns -
                            clock_->RealtimeNs();
    if (left_ns > 2 * limits_.tail_ns) {
      *cut = true;
      lock.unlock();
      // If this fails, the answer does not come either, and says more.
      client.Terminate(entry.record.session, limits_.terminate_limit_ms).IgnoreError();
      lock.lock();
    }
    const int64_t patience_ns = give_up_monotonic_ns_ - clock_->MonotonicNs();
    if (!wake_.wait_for(lock, std::chrono::nanoseconds(patience_ns), answered)) {
      lock.unlock();
      call.Cancel();
      lock.lock();
      wake_.wait(lock, answered);  // a cancelled call is done at once
      if (!answer_->ok()) {
        return absl::AbortedError(absl::StrCat("it did not deliver its profile within ",
                                               limits_.give_up_ns / 1'000'000,
                                               " ms after the end of the recording"));
      }
    }
  }
  return *std::move(answer_);
}

std::string WorkerProfile::FailureText(const absl::Status& status) const {
  // Nobody here cancels a call whose status comes to this.
  if (absl::IsUnavailable(status) || absl::IsCancelled(status)) {
    return absl::StrCat("it exited while its profile was running (", status.message(), ")");
  }
  if (absl::IsDeadlineExceeded(status)) return "it did not deliver its profile in time";
  if (absl::IsResourceExhausted(status)) {
    return absl::StrCat("its profile was larger than ", limits_.answer_bytes_max >> 20,
                        " MiB; record for less time, or with --tf-profiler-level 1");
  }
  return std::string(status.message());
}

void WorkerProfile::Store(const absl::StatusOr<ProfileAnswer>& answer, bool cut,
                          ProfileEntry* entry) const {
  if (!answer.ok()) {
    const bool busy = absl::IsAlreadyExists(answer.status());
    entry->record.state = busy ? xspace::ProfileState::kBusy : xspace::ProfileState::kFailed;
    entry->record.failure = FailureText(answer.status());
    return;
  }
  if (answer->xspace.empty()) {
    entry->record.failure = "its TensorFlow is too old to send its profile";
    return;
  }
  entry->record.bytes = answer->xspace.size();
  const std::string name =
      absl::StrCat(worker_.process.pid_namespace, "-", NameOf(worker_, entry->record.piece));
  const std::string file = absl::StrCat(name, ".xspace.pb");
  const absl::Status written =
      WriteFileAtomically(window_.directory / "xspace" / file, answer->xspace, 0600);
  if (!written.ok()) {
    entry->record.failure = absl::StrCat("its profile could not be kept: ", written.message());
    return;
  }
  entry->record.file = file;
  entry->record.state = answer->empty ? xspace::ProfileState::kEmpty
                        : cut         ? xspace::ProfileState::kCut
                                      : xspace::ProfileState::kComplete;
}

}  // namespace syncline::agent
