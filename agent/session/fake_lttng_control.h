// SPDX-License-Identifier: Apache-2.0
// LttngControl for tests: remembers what it was told, fails where it was told to.
#ifndef SYNCLINE_AGENT_SESSION_FAKE_LTTNG_CONTROL_H_
#define SYNCLINE_AGENT_SESSION_FAKE_LTTNG_CONTROL_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/session/lttng_control.h"

namespace syncline::agent {

class FakeLttngControl : public LttngControl {
 public:
  absl::StatusOr<bool> DaemonAlive() override { return alive; }
  absl::Status Create(const SessionSpec& new_spec) override {
    calls.push_back("create");
    spec = new_spec;
    if (const absl::Status status = Failure("create"); !status.ok()) return status;
    if (running.count(new_spec.name) != 0) return absl::AlreadyExistsError("exists");
    running[new_spec.name] = false;
    return absl::OkStatus();
  }
  absl::Status Start(const std::string& session) override { return Switch("start", session, true); }
  absl::Status Stop(const std::string& session) override { return Switch("stop", session, false); }
  absl::StatusOr<std::vector<ChannelCounters>> Counters(const std::string& session) override {
    if (running.count(session) == 0) return absl::NotFoundError("no session");
    return counters;
  }
  absl::Status Destroy(const std::string& session, int wait_ms) override {
    calls.push_back("destroy");
    destroy_wait_ms = wait_ms;
    if (running.erase(session) == 0) return absl::NotFoundError("no session");
    return Failure("destroy");
  }
  absl::StatusOr<std::vector<std::string>> Sessions() override {
    if (const absl::Status status = Failure("sessions"); !status.ok()) return status;
    std::vector<std::string> names;
    for (const auto& [name, is_running] : running) names.push_back(name);
    return names;
  }
  absl::StatusOr<std::vector<int32_t>> Programs() override {
    if (const absl::Status status = Failure("programs"); !status.ok()) return status;
    return programs;
  }

  bool alive = true;
  SessionSpec spec;                              // of the last Create
  std::map<std::string, bool> running;           // sessions, started or not
  std::map<std::string, absl::Status> failures;  // by method
  std::map<std::string, int> failures_left;      // by method: how often; without: always
  std::vector<ChannelCounters> counters;
  std::vector<int32_t> programs;
  std::vector<std::string> calls;
  int destroy_wait_ms = 0;  // the last

 private:
  absl::Status Failure(const std::string& method) {
    const auto it = failures.find(method);
    if (it == failures.end()) return absl::OkStatus();
    const auto left = failures_left.find(method);
    if (left != failures_left.end() && left->second-- <= 0) return absl::OkStatus();
    return it->second;
  }
  absl::Status Switch(const std::string& method, const std::string& session, bool on) {
    calls.push_back(method);
    if (const absl::Status status = Failure(method); !status.ok()) return status;
    if (running.count(session) == 0) return absl::NotFoundError("no session");
    running[session] = on;
    return absl::OkStatus();
  }
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SESSION_FAKE_LTTNG_CONTROL_H_
