// SPDX-License-Identifier: Apache-2.0
#include "coordinator/fleet/grpc_agent_client.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/utf8.h"
#include "coordinator/fleet/diagnosis.h"
#include "proto/grpc_status.h"
#include "proto/texts.h"
#include "syncline/v1/agent.grpc.pb.h"

namespace syncline::fleet {
namespace {

using Timeout = AgentClient::Timeout;

constexpr int kMessageBytesMax = 64 << 20;

grpc::ChannelArguments ArgumentsFor(const hosts::Node& node) {
  grpc::ChannelArguments arguments;
  if (!node.local()) arguments.SetSslTargetNameOverride(node.name);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  // This one also limits how long a connection may take to come up (not how soon it is tried
  // again).
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Two channels to one target share a connection unless each has a pool of its own; a bulk fetch
  // would then delay status and clock probes.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  return arguments;
}

std::shared_ptr<grpc::Channel> MakeChannel(const hosts::Node& node,
                                           const certs::Credentials& credentials) {
  if (node.local()) {
    return grpc::CreateCustomChannel(node.Address(), grpc::InsecureChannelCredentials(),
                                     ArgumentsFor(node));
  }
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = credentials.authority;
  options.pem_cert_chain = credentials.certificate;
  options.pem_private_key = credentials.key;
  return grpc::CreateCustomChannel(node.Address(), grpc::SslCredentials(options),
                                   ArgumentsFor(node));
}

// The calls that are running, so that all can be cancelled at once.
class RunningCalls {
 public:
  class Registration {
   public:
    Registration(RunningCalls* calls, grpc::ClientContext* context)
        : calls_(*calls), context_(context) {
      const std::lock_guard<std::mutex> lock(calls_.mutex_);
      calls_.contexts_.insert(context_);
    }
    ~Registration() {
      const std::lock_guard<std::mutex> lock(calls_.mutex_);
      calls_.contexts_.erase(context_);
    }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    RunningCalls& calls_;
    grpc::ClientContext* const context_;
  };

  void CancelAll() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (grpc::ClientContext* context : contexts_) context->TryCancel();
  }

 private:
  std::mutex mutex_;
  std::set<grpc::ClientContext*> contexts_;  // guarded by mutex_
};

// Cancels a streaming call when it is silent for too long; gRPC has deadlines for whole calls only.
class SilenceWatch {
 public:
  SilenceWatch(grpc::ClientContext* context, Timeout timeout)
      : context_(context),
        timeout_(timeout),
        thread_([this](std::stop_token stop) { Run(stop); }) {}

  void Heard() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++heard_;
  }
  bool silent() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return silent_;
  }

 private:
  void Run(const std::stop_token& stop) {
    std::unique_lock<std::mutex> lock(mutex_);
    uint64_t last = heard_;
    while (!stop.stop_requested()) {
      if (wake_.wait_for(lock, stop, timeout_, [&] { return false; })) return;
      if (stop.stop_requested()) return;
      if (heard_ == last) {
        silent_ = true;
        context_->TryCancel();
        return;
      }
      last = heard_;
    }
  }

  grpc::ClientContext* const context_;
  const Timeout timeout_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  uint64_t heard_ = 0;   // guarded by mutex_
  bool silent_ = false;  // guarded by mutex_
  std::jthread thread_;  // last: it uses the others
};

class GrpcClockStream : public ClockStream {
 public:
  GrpcClockStream(std::shared_ptr<grpc::Channel> channel, std::function<int64_t()> raw_ns)
      : stub_(v1::Agent::NewStub(channel)), raw_ns_(std::move(raw_ns)) {
    stream_ = stub_->ClockExchange(&context_);
  }
  ~GrpcClockStream() override {
    context_.TryCancel();
    if (!finished_) stream_->Finish();
  }

  absl::StatusOr<Exchange> Probe(uint64_t sequence_number) override {
    Exchange exchange;
    v1::ClockProbe probe;
    probe.set_sequence_number(sequence_number);
    exchange.sent_raw_ns = raw_ns_();
    probe.set_t1_monotonic_raw_ns(static_cast<uint64_t>(exchange.sent_raw_ns));
    if (!stream_->Write(probe)) return Ended();
    const bool answered = stream_->Read(&exchange.reply);
    exchange.received_raw_ns = raw_ns_();
    if (!answered) return Ended();
    if (exchange.reply.sequence_number() != sequence_number) {
      return absl::DataLossError("a clock probe was answered out of order");
    }
    return exchange;
  }

  void Cancel() override { context_.TryCancel(); }

 private:
  absl::Status Ended() {
    if (finished_) return absl::FailedPreconditionError("the clock stream has ended");
    finished_ = true;
    const absl::Status status = FromGrpcStatus(stream_->Finish());
    return status.ok() ? absl::UnavailableError("the agent ended the clock stream") : status;
  }

  grpc::ClientContext context_;
  std::unique_ptr<v1::Agent::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClockProbe, v1::ClockProbeReply>> stream_;
  std::function<int64_t()> raw_ns_;
  bool finished_ = false;
};

class GrpcAgentClient : public AgentClient {
 public:
  GrpcAgentClient(const hosts::Node& node, const certs::Credentials& credentials,
                  const ClientClocks& clocks)
      : node_(node),
        credentials_(credentials),
        clocks_(clocks),
        stub_(v1::Agent::NewStub(MakeChannel(node, credentials))) {}

  absl::StatusOr<v1::DescribeResponse> Describe(const v1::DescribeRequest& request,
                                                Timeout timeout) override {
    return Call<v1::DescribeResponse>(&v1::Agent::Stub::Describe, request, timeout);
  }
  absl::StatusOr<v1::PrepareResponse> Prepare(const v1::PrepareRequest& request,
                                              Timeout timeout) override {
    return Call<v1::PrepareResponse>(&v1::Agent::Stub::Prepare, request, timeout);
  }
  absl::StatusOr<v1::StartResponse> Start(const v1::StartRequest& request,
                                          Timeout timeout) override {
    return Call<v1::StartResponse>(&v1::Agent::Stub::Start, request, timeout);
  }
  absl::StatusOr<v1::StopResponse> Stop(const v1::StopRequest& request, Timeout timeout) override {
    return Call<v1::StopResponse>(&v1::Agent::Stub::Stop, request, timeout);
  }
  absl::StatusOr<v1::StatusResponse> Status(const v1::StatusRequest& request,
                                            Timeout timeout) override {
    return Call<v1::StatusResponse>(&v1::Agent::Stub::Status, request, timeout);
  }
  absl::StatusOr<v1::ReleaseResponse> Release(const v1::ReleaseRequest& request,
                                              Timeout timeout) override {
    return Call<v1::ReleaseResponse>(&v1::Agent::Stub::Release, request, timeout);
  }

  absl::StatusOr<v1::ProbePlanReply> Probe(const v1::ProbePlan& plan, Timeout timeout) override {
    return Call<v1::ProbePlanReply>(&v1::Agent::Stub::Probe, plan, timeout);
  }
  absl::StatusOr<v1::ProbeSamplesReply> ProbeSamples(const v1::ProbeSamplesRequest& request,
                                                     Timeout timeout) override {
    return Call<v1::ProbeSamplesReply>(&v1::Agent::Stub::ProbeSamples, request, timeout);
  }

  absl::StatusOr<v1::StacksResponse> Stacks(const v1::StacksRequest& request,
                                            Timeout timeout) override {
    return Call<v1::StacksResponse>(&v1::Agent::Stub::Stacks, request, timeout);
  }

  absl::Status Fetch(const v1::FetchRequest& request, Timeout timeout,
                     const ChunkSink& sink) override {
    grpc::ClientContext context;
    const RunningCalls::Registration registration(&calls_, &context);
    SilenceWatch watch(&context, timeout);
    // Trace data on a connection of its own, so that status calls are not stuck behind it.
    const std::unique_ptr<v1::Agent::Stub> stub =
        v1::Agent::NewStub(MakeChannel(node_, credentials_));
    const auto reader = stub->Fetch(&context, request);
    v1::FetchChunk chunk;
    while (reader->Read(&chunk)) {
      watch.Heard();
      const absl::Status taken = sink(chunk);
      if (!taken.ok()) {
        context.TryCancel();
        reader->Finish();
        return taken;
      }
      watch.Heard();
    }
    const grpc::Status finished = reader->Finish();
    if (watch.silent()) {
      return absl::DeadlineExceededError(
          absl::StrCat("the agent sent nothing for ", timeout.count() / 1000, " s"));
    }
    return Translate(finished, timeout);
  }

  absl::StatusOr<std::unique_ptr<ClockStream>> OpenClockStream() override {
    return std::make_unique<GrpcClockStream>(MakeChannel(node_, credentials_),
                                             clocks_.monotonic_raw_ns);
  }

  void Cancel() override { calls_.CancelAll(); }

 private:
  template <class Response, class Method, class Request>
  absl::StatusOr<Response> Call(Method method, const Request& request, Timeout timeout) {
    grpc::ClientContext context;
    // By the monotonic clock: a wall clock that steps must not end or prolong a call.
    const gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                               gpr_time_from_millis(timeout.count(), GPR_TIMESPAN));
    context.set_deadline(deadline);
    const RunningCalls::Registration registration(&calls_, &context);
    Response response;
    Request repaired = request;
    RewriteTexts(&repaired, &RepairedUtf8);  // a user's or a host's name is any bytes
    const grpc::Status status = (stub_.get()->*method)(&context, repaired, &response);
    if (!status.ok()) return Translate(status, timeout);
    return response;
  }

  absl::Status Translate(const grpc::Status& status, Timeout timeout) {
    const absl::Status own = FromGrpcStatus(status);
    // The agent's own limits (LTTng did not answer it) say more; ours has nobody's words.
    if (absl::IsDeadlineExceeded(own) && own.message() == "Deadline Exceeded") {
      return absl::DeadlineExceededError(absl::StrCat("no answer within ", timeout.count() / 1000.0,
                                                      " s: the agent or its machine is busy, ",
                                                      "stopped or cut off"));
    }
    if (!absl::IsUnavailable(own)) return own;
    const absl::Status cause = Diagnose(node_, credentials_, {.now_unix_s = clocks_.unix_s()});
    if (!cause.ok()) return cause;
    return absl::UnavailableError(
        absl::StrCat("the connection broke (", own.message(), "); the agent answers again"));
  }

  const hosts::Node node_;
  const certs::Credentials credentials_;
  const ClientClocks clocks_;
  const std::unique_ptr<v1::Agent::Stub> stub_;
  RunningCalls calls_;
};

}  // namespace

std::unique_ptr<AgentClient> MakeGrpcAgentClient(const hosts::Node& node,
                                                 const certs::Credentials& credentials,
                                                 const ClientClocks& clocks) {
  return std::make_unique<GrpcAgentClient>(node, credentials, clocks);
}

void SilenceGrpcLog() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace syncline::fleet
