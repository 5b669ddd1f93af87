// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/registration.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/host/process_table.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

// LTTng-UST asks every 5 s for a daemon that was not there; a little more than that.
constexpr int64_t kWaitNs = 6'000'000'000;
constexpr int64_t kAskEveryNs = 200'000'000;
// A coordinator waits 60 s for a node that prepares, which else takes a few.
constexpr int64_t kAnswerWaitNs = 40'000'000'000;
constexpr size_t kNamedMax = 5;
constexpr const char* kContinueThem =
    "continue them, or end them: `ps -eo pid,user,stat,args` shows state T";
constexpr int64_t kForgivenAfterNs = 600'000'000'000;
// Its buffers take two for each CPU (guess: who has this many left does not stand at its limit).
constexpr uint64_t kDescriptorsMin = 4;

absl::StatusOr<std::vector<v1::ProcessInfo>> Unknown(LttngControl& lttng, Gate& gate) {
  std::vector<v1::Complaint> said_already;
  std::vector<v1::ProcessInfo> unknown;
  SYNCLINE_ASSIGN_OR_RETURN(const std::vector<int32_t> known, lttng.Programs());
  for (v1::ProcessInfo& process : gate.Processes(&said_already)) {
    if (!process.has_control_block() || process.stopped()) continue;
    // Programs register under the pid that they have for themselves.
    if (std::find(known.begin(), known.end(), process.own_pid()) != known.end()) continue;
    unknown.push_back(std::move(process));
  }
  return unknown;
}

// What LTTng-UST maps in each program that is registered, and in one that is recorded. It keeps the
// descriptor for as long as the mapping.
constexpr const char* kTracerFiles[] = {"/shm-event-notifier-error-accounting",
                                        "/shm-ust-consumer"};

// Without what and fix.
v1::Complaint NothingRecordedOf(const v1::ProcessInfo& process) {
  v1::Complaint complaint;
  complaint.set_severity(v1::Complaint::WARNING);
  complaint.set_pid(process.pid());
  complaint.set_not_recorded(true);
  return complaint;
}

}  // namespace

std::optional<v1::Complaint> WantOfDescriptors(const std::filesystem::path& proc,
                                               const v1::ProcessInfo& process) {
  const std::optional<uint64_t> left = DescriptorsLeft(proc, process.pid());
  if (!left.has_value() || *left >= kDescriptorsMin) return std::nullopt;
  v1::Complaint complaint = NothingRecordedOf(process);
  complaint.set_what(absl::StrCat("Process ", process.pid(), " (", process.command_line(),
                                  ") can open ", *left == 0 ? "no" : absl::StrCat("only ", *left),
                                  " more files: LTTng cannot pass its buffers to the process, and "
                                  "none of its events will be recorded"));
  complaint.set_fix(absl::StrCat("find out which files it keeps open (ls /proc/", process.pid(),
                                 "/fd), or raise its limit (prlimit --nofile, ulimit -n)"));
  return complaint;
}

std::optional<v1::Complaint> WouldBeAborted(const std::filesystem::path& proc,
                                            const v1::ProcessInfo& process) {
  const auto mapped = [&](const char* file) {
    return HasMapped(proc, process.pid(), file).value_or(false);
  };
  // Mapped before and after: not just now closed by LTTng-UST itself.
  const bool closed =
      std::any_of(std::begin(kTracerFiles), std::end(kTracerFiles), [&](const char* file) {
        return mapped(file) && !HasOpen(proc, process.pid(), file).value_or(true) && mapped(file);
      });
  if (!closed || mapped("/libsyncline_net.so")) return std::nullopt;
  v1::Complaint complaint = NothingRecordedOf(process);
  complaint.set_what(absl::StrCat("Process ", process.pid(), " (", process.command_line(),
                                  ") has closed LTTng's descriptors, and LTTng would abort the "
                                  "process in a recording: no program of user ",
                                  process.uid(), " is recorded"));
  complaint.set_fix(
      "start the program with `syncline run` without --no-messages, which prevents that, or end "
      "it");
  return complaint;
}

absl::StatusOr<std::set<uint32_t>> UsersLeftOut(const std::filesystem::path& proc, uint32_t own_uid,
                                                v1::PrepareResponse* response) {
  std::set<uint32_t> left_out;
  for (const v1::ProcessInfo& process : response->processes()) {
    if (!process.has_control_block()) continue;
    auto complaint = WouldBeAborted(proc, process);
    if (!complaint.has_value()) continue;
    if (process.uid() == own_uid) {
      return absl::FailedPreconditionError(absl::StrCat(complaint->what(), "; ", complaint->fix()));
    }
    left_out.insert(process.uid());
    complaint->set_uid(process.uid());
    *response->add_complaints() = *std::move(complaint);
  }
  return left_out;
}

std::vector<ProcessEntry> StoppedPrograms(const std::filesystem::path& proc,
                                          const std::vector<uint32_t>& but_of_users) {
  std::vector<ProcessEntry> stopped = ListProcesses(proc).value_or(std::vector<ProcessEntry>());
  std::erase_if(stopped, [&](const ProcessEntry& entry) {
    return !entry.stopped() ||
           std::count(but_of_users.begin(), but_of_users.end(), entry.uid) != 0 ||
           !HasMapped(proc, entry.pid, kTracerFiles[0]).value_or(false);
  });
  return stopped;
}

std::string HeldUpBy(const std::vector<ProcessEntry>& programs) {
  std::string text = absl::StrCat("LTTng waits up to 5 s for each program that is stopped, and ",
                                  programs.size(), programs.size() == 1 ? " is: " : " are: ");
  for (size_t i = 0; i < std::min(programs.size(), kNamedMax); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", "process ", programs[i].pid, " (", programs[i].name,
                    ") of user ", programs[i].uid);
  }
  if (programs.size() > kNamedMax) {
    absl::StrAppend(&text, " and ", programs.size() - kNamedMax, " more");
  }
  return absl::StrCat(text, "; ", kContinueThem);
}

absl::Status AwaitAnswer(LttngControl& lttng, Clock& clock, const std::filesystem::path& proc,
                         std::vector<ProcessEntry> stopped) {
  const int64_t begin_ns = clock.RawNs();
  while (!stopped.empty() && absl::IsDeadlineExceeded(lttng.Sessions().status())) {
    if (clock.RawNs() - begin_ns >= kAnswerWaitNs) {
      return absl::FailedPreconditionError(
          absl::StrCat("LTTng does not answer. ", HeldUpBy(stopped), ". Then record again"));
    }
    clock.SleepNs(kAskEveryNs);
    stopped = StoppedPrograms(proc);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::set<uint32_t>> UsersWhoHoldUp(const std::vector<ProcessEntry>& stopped,
                                                  uint32_t own_uid, v1::PrepareResponse* response) {
  std::map<uint32_t, size_t> stopped_of;
  for (const ProcessEntry& entry : stopped) ++stopped_of[entry.uid];
  size_t borne = 0;
  if (const auto own = stopped_of.find(own_uid); own != stopped_of.end()) {
    borne = own->second;
    stopped_of.erase(own);
  }
  if (borne > kStoppedMax) {
    return absl::FailedPreconditionError(absl::StrCat(
        borne, " programs of this user are stopped, and LTTng would wait 5 s for each; ",
        kContinueThem));
  }
  std::vector<std::pair<size_t, uint32_t>> fewest_first;
  for (const auto& [uid, count] : stopped_of) fewest_first.emplace_back(count, uid);
  std::sort(fewest_first.begin(), fewest_first.end());
  std::set<uint32_t> left_out;
  for (const auto& [count, uid] : fewest_first) {
    borne += count;
    if (borne <= kStoppedMax) continue;
    left_out.insert(uid);
    v1::Complaint& complaint = *response->add_complaints();
    complaint.set_severity(v1::Complaint::WARNING);
    complaint.set_uid(uid);
    complaint.set_not_recorded(true);
    complaint.set_what(absl::StrCat(
        "User ", uid, " has ", count, count == 1 ? " stopped program" : " stopped programs",
        ", and LTTng would wait 5 s for each: no program of user ", uid, " is recorded"));
    complaint.set_fix(kContinueThem);
  }
  return left_out;
}

v1::Complaint NotRegistered(const v1::ProcessInfo& process, const std::filesystem::path& proc) {
  if (auto cause = WantOfDescriptors(proc, process); cause.has_value()) return *std::move(cause);
  v1::Complaint complaint = NothingRecordedOf(process);
  complaint.set_what(absl::StrCat(
      "Process ", process.pid(), " (", process.command_line(),
      ") is not registered with LTTng's session daemon: none of its events will be recorded"));
  complaint.set_fix(
      "if the process was briefly delayed, record again; otherwise it belongs to another session "
      "daemon (another user's, another LTTNG_HOME, another container): run one agent for each "
      "session daemon");
  return complaint;
}

RegistrationPatience::Key RegistrationPatience::KeyOf(const v1::ProcessInfo& process,
                                                      uint32_t own_uid) {
  if (process.uid() != own_uid) return {0, 0, 0, process.uid()};
  return {process.pid_namespace_inode(), process.own_pid(), process.start_ticks(), own_uid};
}

bool RegistrationPatience::IsSpent(const v1::ProcessInfo& process, uint32_t own_uid,
                                   int64_t now_raw_ns) const {
  const auto spent = until_raw_ns_.find(KeyOf(process, own_uid));
  return spent != until_raw_ns_.end() && now_raw_ns < spent->second;
}

void RegistrationPatience::Spend(const v1::ProcessInfo& process, uint32_t own_uid,
                                 int64_t now_raw_ns) {
  std::erase_if(until_raw_ns_, [&](const auto& one) { return one.second <= now_raw_ns; });
  until_raw_ns_.emplace(KeyOf(process, own_uid), now_raw_ns + kForgivenAfterNs);
}

absl::StatusOr<std::vector<v1::ProcessInfo>> AwaitRegistration(LttngControl& lttng, Gate& gate,
                                                               Clock& clock,
                                                               RegistrationPatience* patience) {
  const int64_t begin_ns = clock.RawNs();
  const uint32_t own_uid = gate.Users().front();
  SYNCLINE_ASSIGN_OR_RETURN(std::vector<v1::ProcessInfo> unknown, Unknown(lttng, gate));
  const auto is_worth_it = [&](const v1::ProcessInfo& process) {
    return !patience->IsSpent(process, own_uid, begin_ns);
  };
  while (std::any_of(unknown.begin(), unknown.end(), is_worth_it)) {
    if (clock.RawNs() - begin_ns >= kWaitNs) {
      for (const v1::ProcessInfo& process : unknown) {
        patience->Spend(process, own_uid, clock.RawNs());
      }
      break;
    }
    clock.SleepNs(kAskEveryNs);
    SYNCLINE_ASSIGN_OR_RETURN(unknown, Unknown(lttng, gate));
  }
  return unknown;
}

std::vector<int32_t> Unreached(const std::vector<v1::ProcessCoverage>& coverage,
                               const std::vector<v1::ProcessInfo>& unknown) {
  std::vector<int32_t> pids;
  for (const v1::ProcessCoverage& one : coverage) {
    const bool known = std::none_of(
        unknown.begin(), unknown.end(),
        [&](const v1::ProcessInfo& process) { return process.own_pid() == one.own_pid(); });
    if (known && one.lost_count() > 0 && one.on_monotonic_ns() == 0) pids.push_back(one.own_pid());
  }
  return pids;
}

}  // namespace syncline::agent
