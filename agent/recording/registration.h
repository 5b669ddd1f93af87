// SPDX-License-Identifier: Apache-2.0
// Whether LTTng's session daemon knows the programs that are about to be recorded. It drops a
// program that did not answer within its limit (LTTNG_APP_SOCKET_TIMEOUT, 5 s), and one that was
// there before the daemon asks for it only every 5 s: such a program comes back by itself, and a
// recording that begins before that has nothing of it.
#ifndef SYNCLINE_AGENT_RECORDING_REGISTRATION_H_
#define SYNCLINE_AGENT_RECORDING_REGISTRATION_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/host/process_table.h"
#include "agent/probe/clock.h"
#include "agent/recording/gate.h"
#include "agent/session/lttng_control.h"

namespace syncline::agent {

// Who is not waited for again: a program that another session daemon has never comes, and of the
// users beside the agent's own anybody can have one that never does, on purpose. Thread-compatible.
class RegistrationPatience {
 public:
  bool IsSpent(const v1::ProcessInfo& process, uint32_t own_uid, int64_t now_raw_ns) const;
  // It was waited for to the end, and did not come. Of the agent's own user that is this process,
  // of another one all of his, for ten minutes.
  void Spend(const v1::ProcessInfo& process, uint32_t own_uid, int64_t now_raw_ns);

 private:
  // Pid namespace, pid and start of a process, or zeros; its user.
  using Key = std::tuple<int64_t, int32_t, uint64_t, uint32_t>;
  static Key KeyOf(const v1::ProcessInfo& process, uint32_t own_uid);
  std::map<Key, int64_t> until_raw_ns_;
};

// Waits a few seconds until the daemon knows each process of `gate` that has a control block and is
// not stopped, as long as one of them is worth it; returns those that live on unknown. Errors: what
// LTTng said.
absl::StatusOr<std::vector<v1::ProcessInfo>> AwaitRegistration(LttngControl& lttng, Gate& gate,
                                                               Clock& clock,
                                                               RegistrationPatience* patience);
// Programs that are registered with LTTng and stopped (SIGSTOP, a debugger): LTTng waits 5 s for
// each, one after the other, whenever it tells all programs something. Where processes cannot be
// listed, or not looked at, they are not among them.
std::vector<ProcessEntry> StoppedPrograms(const std::filesystem::path& proc,
                                          const std::vector<uint32_t>& but_of_users = {});
// So many of them are waited for: 20 s of the 30 that LTTng has to begin
// (agent/session/session_process.h).
inline constexpr size_t kStoppedMax = 4;
// That LTTng waits for these, and what to do, for people.
std::string HeldUpBy(const std::vector<ProcessEntry>& programs);

// Waits a while for LTTng's answer where it may still wait for `stopped` programs, from the
// recording before. FailedPrecondition: it does not answer yet. Other errors are left to who asks
// it next.
absl::Status AwaitAnswer(LttngControl& lttng, Clock& clock, const std::filesystem::path& proc,
                         std::vector<ProcessEntry> stopped);

// The users whose `stopped` programs would hold up everybody. A few are borne; where there are
// more, those users are left out who have most of them. The complaints are added to
// `response`. FailedPrecondition: `own_uid` alone has too many.
absl::StatusOr<std::set<uint32_t>> UsersWhoHoldUp(const std::vector<ProcessEntry>& stopped,
                                                  uint32_t own_uid, v1::PrepareResponse* response);

v1::Complaint NotRegistered(const v1::ProcessInfo& process,
                            const std::filesystem::path& proc = "/proc");

// That LTTng cannot hand its buffers to the process, for want of descriptors there; nullopt: it
// can, or nobody may see.
std::optional<v1::Complaint> WantOfDescriptors(const std::filesystem::path& proc,
                                               const v1::ProcessInfo& process);

// That LTTng-UST would abort the process as soon as the session daemon says something to it: it has
// closed LTTng's descriptors, and our preloaded library (instrumentation/net/tracer.c) is not there
// to prevent that. nullopt: it would not, or nobody may see.
std::optional<v1::Complaint> WouldBeAborted(const std::filesystem::path& proc,
                                            const v1::ProcessInfo& process);

// The users with such a process that has a control block: LTTng must not say anything to their
// programs. The complaints are added to `response`. FailedPrecondition: `own_uid` is one of them.
absl::StatusOr<std::set<uint32_t>> UsersLeftOut(const std::filesystem::path& proc, uint32_t own_uid,
                                                v1::PrepareResponse* response);

// Processes that the daemon knew (they are not among `unknown`) and that made calls in the window
// of which it took none. Such a program gave up waiting for an answer as the recording began
// (instrumentation/abi/tracer.h, or what the user set); the daemon has closed its second connection
// to it, and never reaches it again.
std::vector<int32_t> Unreached(const std::vector<v1::ProcessCoverage>& coverage,
                               const std::vector<v1::ProcessInfo>& unknown);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_REGISTRATION_H_
