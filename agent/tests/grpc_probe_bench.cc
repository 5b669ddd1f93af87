// SPDX-License-Identifier: Apache-2.0
// syncline-grpc-probe-bench: how well clocks are known by the gRPC stream alone.
//
//   probe HOST:PORT --samples FILE [--tls DIR ROLE SERVERNAME]
//       exchanges with an agent as the coordinator does: bursts of eight, ten bursts a second
//   respond HOST:PORT
//       answers in plain text. No agent does that, and none may: it is here to tell what of the
//       width is TLS.
//
// A tool for tests and measurements, no part of the product. FILE is for syncline-testbed-judge.
#include <grpcpp/grpcpp.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "clocksync/sample_file.h"
#include "common/files.h"
#include "syncline/v1/agent.grpc.pb.h"

namespace syncline {
namespace {

constexpr int kExchangesPerBurst = 8;
constexpr int64_t kPeriodNs = 100'000'000;
constexpr double kNsPerSecond = 1e9;

struct Options {
  std::string address;
  std::string samples;
  std::vector<std::string> tls;  // directory, role, server name; empty: plain text
  double seconds = 8;
};

int64_t RawNs() {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void Wait(int64_t ns) {
  const timespec time{static_cast<time_t>(ns / 1'000'000'000), ns % 1'000'000'000};
  ::nanosleep(&time, nullptr);
}

// The agent's loop without its tuples: AgentService::ClockExchange.
class PlainResponder final : public v1::Agent::Service {
 public:
  grpc::Status ClockExchange(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::ClockProbeReply, v1::ClockProbe>* stream) override {
    v1::ClockProbe probe;
    v1::ClockProbeReply reply;
    while (stream->Read(&probe)) {
      reply.set_t2_monotonic_raw_ns(static_cast<uint64_t>(RawNs()));
      reply.set_sequence_number(probe.sequence_number());
      reply.set_t1_monotonic_raw_ns(probe.t1_monotonic_raw_ns());
      reply.set_t3_monotonic_raw_ns(static_cast<uint64_t>(RawNs()));
      if (!stream->Write(reply)) break;
    }
    return grpc::Status::OK;
  }
};

int Respond(const Options& options) {
  PlainResponder responder;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials());
  builder.RegisterService(&responder);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  Wait(static_cast<int64_t>(options.seconds * kNsPerSecond));
  server->Shutdown();
  return 0;
}

std::shared_ptr<grpc::Channel> MakeChannel(const Options& options) {
  if (options.tls.empty()) {
    return grpc::CreateChannel(options.address, grpc::InsecureChannelCredentials());
  }
  const std::string stem = options.tls[0] + "/" + options.tls[1];
  grpc::SslCredentialsOptions credentials;
  credentials.pem_root_certs = ReadFile(options.tls[0] + "/ca.pem").value_or("");
  credentials.pem_cert_chain = ReadFile(stem + ".pem").value_or("");
  credentials.pem_private_key = ReadFile(stem + ".key").value_or("");
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(options.tls[2]);
  return grpc::CreateCustomChannel(options.address, grpc::SslCredentials(credentials), arguments);
}

int Probe(const Options& options) {
  const auto stub = v1::Agent::NewStub(MakeChannel(options));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  const auto stream = stub->ClockExchange(&context);
  std::string bytes = clocksync::EncodeSamplesHeader("asking", "answering");
  const int64_t end_ns = RawNs() + static_cast<int64_t>(options.seconds * kNsPerSecond);
  bool answered = true;
  for (uint64_t number = 0; answered && RawNs() < end_ns; Wait(kPeriodNs)) {
    for (int i = 0; answered && i < kExchangesPerBurst; ++i) {
      v1::ClockProbe probe;
      v1::ClockProbeReply reply;
      clocksync::ProbeSample sample;
      probe.set_sequence_number(++number);
      sample.t1_local_ns = RawNs();
      probe.set_t1_monotonic_raw_ns(static_cast<uint64_t>(sample.t1_local_ns));
      answered = stream->Write(probe) && stream->Read(&reply);
      sample.t4_local_ns = RawNs();
      sample.t2_remote_ns = static_cast<int64_t>(reply.t2_monotonic_raw_ns());
      sample.t3_remote_ns = static_cast<int64_t>(reply.t3_monotonic_raw_ns());
      if (answered) clocksync::AppendSample(sample, &bytes);
    }
  }
  if (answered) stream->WritesDone();
  const grpc::Status status = stream->Finish();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.error_message().c_str());
  return status.ok() && WriteFileAtomically(options.samples, bytes).ok() ? 0 : 1;
}

}  // namespace
}  // namespace syncline

int main(int argc, char** argv) {
  syncline::Options options;
  CLI::App app("Clock probes over gRPC between two hosts, for syncline-testbed-judge.");
  app.require_subcommand(1);
  CLI::App* const respond = app.add_subcommand("respond", "Answer, in plain text");
  CLI::App* const probe = app.add_subcommand("probe", "Ask");
  for (CLI::App* command : {respond, probe}) {
    command->add_option("ADDRESS", options.address, "HOST:PORT")->required();
    command->add_option("--seconds", options.seconds, "How long")->capture_default_str();
  }
  probe->add_option("--samples", options.samples, "File to write them to")->required();
  probe->add_option("--tls", options.tls, "Directory, role, server name")->expected(3);
  CLI11_PARSE(app, argc, argv);
  return respond->parsed() ? syncline::Respond(options) : syncline::Probe(options);
}
