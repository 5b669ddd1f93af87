// SPDX-License-Identifier: Apache-2.0
// One TensorFlow worker's port, spoken to over gRPC as TensorFlow does: in plain text, on a
// connection that was made beforehand. Nothing is ever called here that could change what the
// program or another profiler's user gets. Thread-safe.
#ifndef SYNCLINE_AGENT_TFPROFILER_PROFILER_CLIENT_H_
#define SYNCLINE_AGENT_TFPROFILER_PROFILER_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/tfprofiler/dial.h"

namespace syncline::agent {

struct ProfileRequest {
  std::string session;  // never used twice: a Terminate that comes too late would end the next one
  int host_tracer_level = 0;
  int device_tracer_level = 0;
  int64_t start_realtime_ns = 0;
  int64_t duration_ns = 0;
  int64_t timeout_ns = 0;  // of the whole call
};

struct ProfileAnswer {
  bool empty = false;  // the worker says that there was nothing to see
  std::string xspace;  // as it came
};

struct WorkerIdentity {
  std::string task;
  std::string incarnation;  // 16 hex digits
};

class ProfilerClient {
 public:
  // A call that runs until `on_done` is called, once, on a thread of gRPC's.
  class Call {
   public:
    virtual ~Call() = default;  // only after it is done
    virtual void Cancel() = 0;
  };
  using OnDone = std::function<void(absl::StatusOr<ProfileAnswer>)>;

  // Answers of more than `answer_bytes_max` are refused. Status as of Dial().
  static absl::StatusOr<std::unique_ptr<ProfilerClient>> Connect(const Destination& to,
                                                                 int timeout_ms,
                                                                 uint64_t answer_bytes_max);
  virtual ~ProfilerClient() = default;

  // OK: a profiler service is behind the port. DeadlineExceeded: nobody answered; NotFound: it is
  // something else.
  virtual absl::Status Check(int timeout_ms) = 0;
  // NotFound: the port serves a profiler, and no worker.
  virtual absl::StatusOr<WorkerIdentity> Identify(int timeout_ms) = 0;
  // AlreadyExists: somebody else's profile runs. ResourceExhausted: the answer was too large.
  virtual std::unique_ptr<Call> Profile(const ProfileRequest& request, OnDone on_done) = 0;
  // The profile answers at once, with what it has.
  virtual absl::Status Terminate(const std::string& session, int timeout_ms) = 0;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_TFPROFILER_PROFILER_CLIENT_H_
