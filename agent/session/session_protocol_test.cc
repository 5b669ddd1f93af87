// SPDX-License-Identifier: Apache-2.0
#include "agent/session/session_protocol.h"

#include "agent/session/fake_lttng_control.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

TEST(SessionProtocol, ACallSurvivesTheWay) {
  SessionCall call{.method = "create", .session = "s", .wait_ms = 5};
  call.spec.name = "s";
  call.spec.trace_directory = "/a \"b\"\xff";
  call.spec.buffers_per_process = true;
  call.spec.subbuffer_bytes = uint64_t{1} << 40;
  call.spec.subbuffer_count = 4;
  call.spec.events = {"a:*", "b:c"};
  call.spec.only_users = {0, 4294967295u};
  const auto decoded = DecodeCall(EncodeCall(call));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->method, "create");
  EXPECT_EQ(decoded->wait_ms, 5);
  EXPECT_EQ(decoded->spec.subbuffer_bytes, uint64_t{1} << 40);
  EXPECT_TRUE(decoded->spec.buffers_per_process);
  EXPECT_EQ(decoded->spec.events, call.spec.events);
  EXPECT_EQ(decoded->spec.only_users, call.spec.only_users);
}

TEST(SessionProtocol, AReplySurvivesTheWay) {
  SessionReply reply{.status = absl::NotFoundError("no session"), .alive = true};
  reply.counters = {{.name = "c", .discarded_events = ~uint64_t{0}, .lost_packets = 2}};
  reply.sessions = {"x"};
  reply.programs = {7, 4711};
  const auto decoded = DecodeReply(EncodeReply(reply));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->status, reply.status);
  EXPECT_EQ(decoded->counters[0].discarded_events, ~uint64_t{0});
  EXPECT_EQ(decoded->sessions, reply.sessions);
  EXPECT_EQ(decoded->programs, reply.programs);
}

TEST(SessionProtocol, GarbageIsAnError) {
  EXPECT_FALSE(DecodeCall("").ok());
  EXPECT_FALSE(DecodeCall("[1]").ok());
  EXPECT_FALSE(DecodeReply("{").ok());
  EXPECT_TRUE(DecodeCall("{\"method\":7}").ok()) << "of the wrong type: as if absent";
}

TEST(SessionProtocol, PerformReachesTheTracer) {
  FakeLttngControl lttng;
  SessionCall create{.method = "create"};
  create.spec.name = "s";
  EXPECT_TRUE(Perform(lttng, create).status.ok());
  EXPECT_EQ(Perform(lttng, {.method = "sessions"}).sessions, std::vector<std::string>{"s"});
  EXPECT_EQ(Perform(lttng, {.method = "start", .session = "t"}).status.code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Perform(lttng, {.method = "dance"}).status.code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace syncline::agent
