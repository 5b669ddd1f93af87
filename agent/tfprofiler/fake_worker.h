// SPDX-License-Identifier: Apache-2.0
// A TensorFlow worker's port for tests: its profiler and its status, as a real worker behaves
// towards a client (one profile at a time, Terminate, the texts of its refusals).
#ifndef SYNCLINE_AGENT_TFPROFILER_FAKE_WORKER_H_
#define SYNCLINE_AGENT_TFPROFILER_FAKE_WORKER_H_

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tensorflow/profiler.grpc.pb.h"

namespace syncline::agent {

enum class Behaviour {
  kRecords,  // answers `xspace` when the time is over, or Terminate comes
  kBusy,     // somebody else's profile runs
  kHangs,    // never answers; not even Terminate helps
  kEmpty,    // nothing ran
  kTooOld,   // does not know emit_xspace
};

class FakeWorker : public tensorflow::ProfilerService::Service {
 public:
  explicit FakeWorker(Behaviour behaviour) : behaviour_(behaviour) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    builder.RegisterService(&status_);
    server_ = builder.BuildAndStart();
  }
  ~FakeWorker() override { Kill(); }

  uint16_t port() const { return static_cast<uint16_t>(port_); }
  std::string xspace = "xspace bytes";

  // Every call ends, and the port is closed.
  void Kill() {
    {
      const std::lock_guard lock(mutex_);
      killed_ = true;
      wake_.notify_all();
    }
    if (server_ != nullptr) server_->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
    server_.reset();
  }
  std::vector<tensorflow::ProfileRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // Returns when so many profiles have been asked for.
  void AwaitRequests(size_t count) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return requests_.size() >= count; });
  }
  int monitors() {
    const std::lock_guard lock(mutex_);
    return monitors_;
  }

 private:
  class Status : public tensorflow::WorkerService::Service {
    grpc::Status GetStatus(grpc::ServerContext*, const tensorflow::GetStatusRequest*,
                           tensorflow::GetStatusResponse* response) override {
      tensorflow::DeviceAttributes& device = *response->add_device_attributes();
      device.set_name("/job:worker/replica:0/task:0/device:CPU:0");
      device.set_incarnation_number(0xabcdef);
      return grpc::Status::OK;
    }
  };

  grpc::Status Monitor(grpc::ServerContext*, const tensorflow::MonitorRequest*,
                       tensorflow::MonitorResponse*) override {
    const std::lock_guard lock(mutex_);
    ++monitors_;
    return {grpc::StatusCode::UNIMPLEMENTED, "unimplemented."};
  }
  grpc::Status Terminate(grpc::ServerContext*, const tensorflow::TerminateRequest* request,
                         tensorflow::TerminateResponse*) override {
    const std::lock_guard lock(mutex_);
    terminated_.insert(request->session_id());
    wake_.notify_all();
    return grpc::Status::OK;
  }
  grpc::Status Profile(grpc::ServerContext* context, const tensorflow::ProfileRequest* request,
                       tensorflow::ProfileResponse* response) override {
    std::unique_lock lock(mutex_);
    requests_.push_back(*request);
    wake_.notify_all();
    if (behaviour_ == Behaviour::kBusy) {
      return {grpc::StatusCode::INTERNAL, "Another profiling session active."};
    }
    const auto over = [&] {
      if (killed_ || context->IsCancelled()) return true;
      return behaviour_ != Behaviour::kHangs && terminated_.count(request->session_id()) != 0;
    };
    // A server is not told of a cancelled call: it looks now and then, as TensorFlow does.
    constexpr std::chrono::milliseconds kStep(1);
    for (uint64_t ms = 0; !over(); ++ms) {
      if (behaviour_ != Behaviour::kHangs && ms >= request->opts().duration_ms()) break;
      wake_.wait_for(lock, kStep);
    }
    if (killed_) return {grpc::StatusCode::UNAVAILABLE, "Socket closed"};
    if (behaviour_ == Behaviour::kTooOld) return grpc::Status::OK;
    response->set_empty_trace(behaviour_ == Behaviour::kEmpty);
    response->set_xspace(xspace);
    return grpc::Status::OK;
  }

  const Behaviour behaviour_;
  Status status_;
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<tensorflow::ProfileRequest> requests_;
  std::set<std::string> terminated_;
  int monitors_ = 0;
  bool killed_ = false;
  std::unique_ptr<grpc::Server> server_;  // last: it uses the others
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_TFPROFILER_FAKE_WORKER_H_
