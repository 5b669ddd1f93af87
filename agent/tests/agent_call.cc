// SPDX-License-Identifier: Apache-2.0
// One call to an agent, for the integration test: no part of the product.
//   agent_call TARGET METHOD [JSON-REQUEST] [--tls DIR ROLE SERVERNAME]
// METHOD: an RPC's name; prints the response as one line of JSON. Fetch writes below the current
// directory and checks every CRC; ClockExchange makes ten exchanges. Exit code 0, or 100 + gRPC's
// code.
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "common/checksum.h"
#include "common/files.h"
#include "syncline/v1/agent.grpc.pb.h"

namespace syncline {
namespace {

using google::protobuf::util::JsonStringToMessage;
using google::protobuf::util::MessageToJsonString;

constexpr int kExchanges = 10;

int Report(const grpc::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%d %s\n", status.error_code(), status.error_message().c_str());
  return 100 + status.error_code();
}

template <class Request, class Response>
int Unary(v1::Agent::Stub* stub,
          grpc::Status (v1::Agent::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
          const std::string& json) {
  Request request;
  if (!JsonStringToMessage(json, &request).ok()) return 2;
  Response response;
  grpc::ClientContext context;
  const grpc::Status status = (stub->*method)(&context, request, &response);
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  MessageToJsonString(response, &text, options).ok();
  if (status.ok()) std::printf("%s\n", text.c_str());
  return Report(status);
}

int Fetch(v1::Agent::Stub* stub, const std::string& json) {
  v1::FetchRequest request;
  if (!JsonStringToMessage(json, &request).ok()) return 2;
  grpc::ClientContext context;
  const auto reader = stub->Fetch(&context, request);
  v1::FetchChunk chunk;
  int files = 0;
  while (reader->Read(&chunk)) {
    if (chunk.has_data()) {
      const v1::FileData& data = chunk.data();
      if (Crc32c(data.data()) != data.crc32c()) return 3;
      const auto parent = std::filesystem::path(data.path()).parent_path();
      if (!parent.empty()) std::filesystem::create_directories(parent);
      // Resumed files are cut at the offset, so appending puts every byte where it belongs.
      std::ofstream(data.path(),
                    std::ios::binary | (data.offset_bytes() == 0 ? std::ios::trunc : std::ios::app))
          << data.data();
    }
    if (chunk.has_end()) ++files;
  }
  std::printf("{\"files\":%d}\n", files);
  return Report(reader->Finish());
}

int ClockExchange(v1::Agent::Stub* stub) {
  grpc::ClientContext context;
  const auto stream = stub->ClockExchange(&context);
  bool ordered = true;
  int tuples = 0;
  for (int i = 0; i < kExchanges; ++i) {
    v1::ClockProbe probe;
    probe.set_sequence_number(static_cast<uint64_t>(i));
    probe.set_t1_monotonic_raw_ns(1);
    v1::ClockProbeReply reply;
    if (!stream->Write(probe) || !stream->Read(&reply)) break;
    ordered = ordered && reply.sequence_number() == static_cast<uint64_t>(i) &&
              reply.t2_monotonic_raw_ns() <= reply.t3_monotonic_raw_ns() &&
              reply.t1_monotonic_raw_ns() == 1;
    if (reply.has_tuple()) ++tuples;
  }
  stream->WritesDone();
  std::printf("{\"ordered\":%s,\"tuples\":%d}\n", ordered ? "true" : "false", tuples);
  return Report(stream->Finish());
}

std::shared_ptr<grpc::Channel> MakeChannel(int argc, char** argv) {
  for (int i = 1; i + 3 < argc; ++i) {
    if (std::string(argv[i]) != "--tls") continue;
    const std::filesystem::path directory = argv[i + 1];
    const std::string role = argv[i + 2];
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ReadFile(directory / "ca.pem").value_or("");
    options.pem_cert_chain = ReadFile(directory / (role + ".pem")).value_or("");
    options.pem_private_key = ReadFile(directory / (role + ".key")).value_or("");
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(argv[i + 3]);
    return grpc::CreateCustomChannel(argv[1], grpc::SslCredentials(options), arguments);
  }
  return grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials());
}

int Main(int argc, char** argv) {
  if (argc < 3) return 2;
  const auto stub = v1::Agent::NewStub(MakeChannel(argc, argv));
  const std::string method = argv[2];
  const std::string json = argc > 3 && argv[3][0] == '{' ? argv[3] : "{}";
  using Stub = v1::Agent::Stub;
  if (method == "Describe") return Unary(stub.get(), &Stub::Describe, json);
  if (method == "Stacks") return Unary(stub.get(), &Stub::Stacks, json);
  if (method == "Prepare") return Unary(stub.get(), &Stub::Prepare, json);
  if (method == "Start") return Unary(stub.get(), &Stub::Start, json);
  if (method == "Stop") return Unary(stub.get(), &Stub::Stop, json);
  if (method == "Status") return Unary(stub.get(), &Stub::Status, json);
  if (method == "Release") return Unary(stub.get(), &Stub::Release, json);
  if (method == "Fetch") return Fetch(stub.get(), json);
  if (method == "ClockExchange") return ClockExchange(stub.get());
  return 2;
}

}  // namespace
}  // namespace syncline

int main(int argc, char** argv) { return syncline::Main(argc, argv); }
