// SPDX-License-Identifier: Apache-2.0
#include "agent/tfprofiler/profiler_client.h"

#include <grpc/support/time.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "proto/grpc_status.h"
#include "tensorflow/profiler.grpc.pb.h"

namespace syncline::agent {
namespace {

// What TensorFlow's profiler answers to Monitor; a server without that service says it otherwise.
constexpr const char* kMonitorRefusal = "unimplemented.";
constexpr const char* kBusyRefusal = "Another profiling session active";
// Workers that do not know emit_xspace write files below repository_root instead, and an empty one
// is the job's working directory. Nothing can be made below this path: such a worker then fails
// and leaves nothing behind. Those that know emit_xspace do not look at it (tried with 2.21).
constexpr const char* kNowhere = "/dev/null/syncline";
constexpr int64_t kNsPerMs = 1'000'000;

grpc::ClientContext& SetTimeout(grpc::ClientContext& context, int64_t timeout_ns) {
  context.set_deadline(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(timeout_ns, GPR_TIMESPAN)));
  return context;
}

absl::Status ToStatus(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::INTERNAL &&
      absl::StrContains(status.error_message(), kBusyRefusal)) {
    return absl::AlreadyExistsError("its profiler is in use by another client");
  }
  return FromGrpcStatus(status);
}

class ProfileCall : public ProfilerClient::Call {
 public:
  ProfileCall(tensorflow::ProfilerService::Stub* stub, const ProfileRequest& request,
              ProfilerClient::OnDone on_done)
      : on_done_(std::move(on_done)) {
    const auto duration_ms = static_cast<uint64_t>((request.duration_ns + kNsPerMs - 1) / kNsPerMs);
    request_.set_duration_ms(duration_ms);
    request_.set_repository_root(kNowhere);
    request_.set_session_id(request.session);
    request_.set_host_name("syncline");
    request_.set_emit_xspace(true);
    tensorflow::ProfileOptions& options = *request_.mutable_opts();
    options.set_version(1);
    options.set_host_tracer_level(static_cast<uint32_t>(request.host_tracer_level));
    options.set_device_tracer_level(static_cast<uint32_t>(request.device_tracer_level));
    options.set_start_timestamp_ns(static_cast<uint64_t>(request.start_realtime_ns));
    options.set_duration_ms(duration_ms);
    SetTimeout(context_, request.timeout_ns);
    stub->async()->Profile(&context_, &request_, &response_,
                           [this](const grpc::Status& status) { Finish(status); });
  }
  void Cancel() override { context_.TryCancel(); }

 private:
  void Finish(const grpc::Status& status) {
    // Whoever is told may delete this call at once.
    const ProfilerClient::OnDone on_done = std::move(on_done_);
    if (!status.ok()) {
      on_done(ToStatus(status));
      return;
    }
    ProfileAnswer answer;
    answer.empty = response_.empty_trace();
    answer.xspace = std::move(*response_.mutable_xspace());
    on_done(std::move(answer));
  }

  ProfilerClient::OnDone on_done_;
  grpc::ClientContext context_;
  tensorflow::ProfileRequest request_;
  tensorflow::ProfileResponse response_;
};

class GrpcProfilerClient : public ProfilerClient {
 public:
  explicit GrpcProfilerClient(const std::shared_ptr<grpc::Channel>& channel)
      : profiler_(tensorflow::ProfilerService::NewStub(channel)),
        worker_(tensorflow::WorkerService::NewStub(channel)) {}

  absl::Status Check(int timeout_ms) override {
    grpc::ClientContext context;
    tensorflow::MonitorResponse response;
    const grpc::Status status = profiler_->Monitor(&SetTimeout(context, timeout_ms * kNsPerMs),
                                                   tensorflow::MonitorRequest(), &response);
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED &&
        status.error_message() == kMonitorRefusal) {
      return absl::OkStatus();
    }
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return absl::DeadlineExceededError("no answer");
    }
    return absl::NotFoundError(absl::StrCat("not a profiler: ", status.error_message()));
  }

  absl::StatusOr<WorkerIdentity> Identify(int timeout_ms) override {
    grpc::ClientContext context;
    tensorflow::GetStatusResponse response;
    const grpc::Status status = worker_->GetStatus(&SetTimeout(context, timeout_ms * kNsPerMs),
                                                   tensorflow::GetStatusRequest(), &response);
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      return absl::NotFoundError("the port serves no worker");
    }
    SYNCLINE_RETURN_IF_ERROR(ToStatus(status));
    WorkerIdentity identity;
    for (const tensorflow::DeviceAttributes& device : response.device_attributes()) {
      const size_t end = device.name().find("/device:");
      if (end == std::string::npos) continue;
      identity.task = device.name().substr(0, end);
      identity.incarnation = absl::StrFormat("%016x", device.incarnation_number());
      if (absl::EndsWith(device.name(), "/device:CPU:0")) break;
    }
    if (identity.task.empty()) return absl::NotFoundError("the worker names no devices");
    return identity;
  }

  std::unique_ptr<Call> Profile(const ProfileRequest& request, OnDone on_done) override {
    return std::make_unique<ProfileCall>(profiler_.get(), request, std::move(on_done));
  }

  absl::Status Terminate(const std::string& session, int timeout_ms) override {
    grpc::ClientContext context;
    tensorflow::TerminateRequest request;
    tensorflow::TerminateResponse response;
    request.set_session_id(session);
    return ToStatus(
        profiler_->Terminate(&SetTimeout(context, timeout_ms * kNsPerMs), request, &response));
  }

 private:
  const std::unique_ptr<tensorflow::ProfilerService::Stub> profiler_;
  const std::unique_ptr<tensorflow::WorkerService::Stub> worker_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ProfilerClient>> ProfilerClient::Connect(const Destination& to,
                                                                        int timeout_ms,
                                                                        uint64_t answer_bytes_max) {
  SYNCLINE_ASSIGN_OR_RETURN(const int fd, Dial(to, timeout_ms));
  grpc::ChannelArguments arguments;
  // Above the data there are a few bytes of the answer itself.
  arguments.SetMaxReceiveMessageSize(static_cast<int>(answer_bytes_max) + 1024);
  return std::make_unique<GrpcProfilerClient>(
      grpc::CreateCustomInsecureChannelFromFd("tensorflow", fd, arguments));
}

}  // namespace syncline::agent
