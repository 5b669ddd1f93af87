// SPDX-License-Identifier: Apache-2.0
#include "agent/tfprofiler/listening_ports.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <string>

#include "agent/probe/clock.h"
#include "agent/tfprofiler/fake_proc.h"
#include "agent/tfprofiler/fake_worker.h"
#include "agent/tfprofiler/port_prober.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(TcpTableTest, ListeningSocketsAndNothingElse) {
  const auto sockets = ParseTcpTable(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 0100007F:08AE 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
      "4711 1 0 100 0 0 10 0\n"
      "   1: 0100007F:08AE 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 "
      "4712 1 0 100 0 0 10 0\n"
      "   2: 00000000000000000000000000000000:08AF 00000000000000000000000000000000:0000 0A "
      "00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100 0 0 10 0\n");
  ASSERT_THAT(sockets, SizeIs(2));
  EXPECT_EQ(sockets[0].address, "127.0.0.1");
  EXPECT_EQ(sockets[0].port, 2222);
  EXPECT_EQ(sockets[0].inode, 4711u);
  EXPECT_EQ(sockets[1].address, "::");
  EXPECT_EQ(sockets[1].port, 2223);
}

TEST(TcpTableTest, WhatIsNoTableIsNoSocket) {
  EXPECT_THAT(ParseTcpTable(""), IsEmpty());
  EXPECT_THAT(ParseTcpTable("\n\n   \nnonsense\n"), IsEmpty());
  EXPECT_THAT(ParseTcpTable("0: 0100007F:XYZW 0:0 0A 0:0 0:0 0 0 0 4711"), IsEmpty());
  EXPECT_THAT(ParseTcpTable("0: 0100007F 0:0 0A 0:0 0:0 0 0 0 4711"), IsEmpty());
  EXPECT_THAT(ParseTcpTable("0: 01007F:08AE 0:0 0A 0:0 0:0 0 0 0 4711"), IsEmpty());
  EXPECT_THAT(ParseTcpTable("0: 0100007F:08AE 0:0 0A 0:0 0:0 0 0 0 -1"), IsEmpty());
  EXPECT_THAT(ParseTcpTable("0: 0100007F:FFFFF 0:0 0A 0:0 0:0 0 0 0 4711"), IsEmpty());
}

TEST(FindTensorFlowTest, ProcessesWithTheLibraryAndTheirPorts) {
  FakeProc proc;
  proc.Add({.pid = 26, .own_pid = 7, .start_ticks = 100, .sockets = {{4711, 2222}}});
  proc.Add({.pid = 27, .library = "libtorch_cpu.so", .sockets = {{4712, 2223}}});
  const auto found = FindTensorFlow(proc.root(), 0);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].entry.pid, 26);
  EXPECT_EQ(found[0].entry.own_pid, 7);
  EXPECT_EQ(found[0].entry.start_ticks, 100u);
  ASSERT_THAT(found[0].sockets, SizeIs(1));
  EXPECT_EQ(found[0].sockets[0].port, 2222);
}

TEST(FindTensorFlowTest, JaxIsFoundAndToldApart) {
  FakeProc proc;
  proc.Add({.pid = 25, .library = "site-packages/jaxlib/libjax_common.so"});
  proc.Add({.pid = 26});
  proc.Add({.pid = 27, .library = "site-packages/jaxlib/xla_extension.so"});
  const auto found = FindTensorFlow(proc.root(), 0);
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_TRUE(found[0].jax);
  EXPECT_FALSE(found[1].jax);
  EXPECT_TRUE(found[2].jax);
}

TEST(FindTensorFlowTest, OtherUsersAreLeftAlone) {
  FakeProc proc;
  proc.Add({.pid = 26, .uid = 1000});
  EXPECT_THAT(FindTensorFlow(proc.root(), 0), SizeIs(1)) << "root may";
  EXPECT_THAT(FindTensorFlow(proc.root(), 1000), SizeIs(1));
  EXPECT_THAT(FindTensorFlow(proc.root(), 1001), IsEmpty());
}

TEST(FindTensorFlowTest, AForkedDataLoaderIsNotASecondWorker) {
  FakeProc proc;
  proc.Add({.pid = 26, .start_ticks = 200, .sockets = {{4711, 2222}}});
  proc.Add({.pid = 25, .start_ticks = 100, .sockets = {{4711, 2222}}});
  const auto found = FindTensorFlow(proc.root(), 0);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].entry.pid, 25);
}

TEST(FindTensorFlowTest, CollectivesShowInTheNamesOfThreads) {
  FakeProc proc;
  proc.Add({.pid = 25, .threads = {"python", "tf_Compute", "collective_ops"}});
  proc.Add({.pid = 26, .threads = {"python", "collective_ops_of_mine", "collective"}});
  const auto found = FindTensorFlow(proc.root(), 0);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_TRUE(found[0].runs_collectives);
  EXPECT_FALSE(found[1].runs_collectives);
}

class PortProberTest : public testing::Test {
 protected:
  std::vector<FoundProfiler> Find() { return prober_.Find(); }
  FakeProc proc_;
  SystemClock clock_;
  PortProber prober_{&clock_, {.proc = proc_.root(), .port_limit_ms = 20'000, .limit_ms = 30'000}};
};

TEST_F(PortProberTest, AWorkerSaysWhoItIsAndIsAskedOnce) {
  FakeWorker worker(Behaviour::kRecords);
  proc_.Add({.pid = 26, .sockets = {{4711, worker.port()}}});
  for (int i = 0; i < 3; ++i) {
    const auto found = Find();
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].port, worker.port());
    EXPECT_EQ(found[0].task, "/job:worker/replica:0/task:0");
    EXPECT_EQ(found[0].incarnation, "0000000000abcdef");
    EXPECT_EQ(found[0].absence, "");
  }
  EXPECT_EQ(worker.monitors(), 1);
}

TEST_F(PortProberTest, APortNumberOfAnotherProcessIsAskedAgain) {
  FakeWorker worker(Behaviour::kRecords);
  proc_.Add({.pid = 26, .start_ticks = 1, .sockets = {{4711, worker.port()}}});
  Find();
  proc_.Add({.pid = 26, .start_ticks = 2, .sockets = {{4799, worker.port()}}});
  EXPECT_THAT(Find(), SizeIs(1));
  EXPECT_EQ(worker.monitors(), 2);
}

TEST_F(PortProberTest, WithoutAPortItSaysWhy) {
  proc_.Add({.pid = 26});
  const auto found = Find();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].port, 0);
  EXPECT_EQ(found[0].absence, "it listens on no port");
}

TEST_F(PortProberTest, JaxWithoutAServerIsToldHowToStartIt) {
  proc_.Add({.pid = 25, .library = "jaxlib/libjax_common.so"});
  const auto found = Find();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].port, 0);
  EXPECT_THAT(found[0].absence, HasSubstr("jax.profiler.start_server(PORT)"));
}

TEST_F(PortProberTest, AnotherServiceIsNoProfiler) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  tensorflow::WorkerService::Service other;
  builder.RegisterService(&other);
  const auto server = builder.BuildAndStart();
  proc_.Add({.pid = 26, .sockets = {{4711, static_cast<uint16_t>(port)}}});
  const auto found = Find();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].port, 0);
  EXPECT_THAT(found[0].absence, HasSubstr("not a profiler"));
}

// A port that takes connections and says nothing.
class SilentPort {
 public:
  SilentPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), bytes), 0);
    EXPECT_EQ(::listen(fd_.get(), 128), 0);
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
    port_ = ntohs(address.sin_port);
  }
  uint16_t port() const { return port_; }

 private:
  const Descriptor fd_;
  uint16_t port_ = 0;
};

TEST_F(PortProberTest, SilentPortsOfAUserHoldUpNobodyElses) {
  FakeWorker worker(Behaviour::kRecords);
  const SilentPort silent;
  for (int pid = 100; pid < 140; ++pid) {  // more than are asked at a time
    proc_.Add(
        {.pid = pid, .uid = 1001, .sockets = {{5000 + static_cast<uint64_t>(pid), silent.port()}}});
  }
  proc_.Add({.pid = 200, .uid = 1002, .sockets = {{4711, worker.port()}}});
  PortProber prober(&clock_, {.proc = proc_.root(), .port_limit_ms = 2'000, .limit_ms = 2'000});
  const auto found = prober.Find();
  ASSERT_THAT(found, SizeIs(41));
  EXPECT_EQ(found.back().port, worker.port()) << found.back().absence;
  EXPECT_EQ(found.front().port, 0);
}

TEST_F(PortProberTest, TheWorkersOwnPortIsPreferred) {
  FakeWorker worker(Behaviour::kRecords);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  tensorflow::ProfilerService::Service nameless;  // its Monitor says nothing: not a profiler
  builder.RegisterService(&nameless);
  const auto server = builder.BuildAndStart();
  proc_.Add({.pid = 26, .sockets = {{4711, static_cast<uint16_t>(port)}, {4712, worker.port()}}});
  const auto found = Find();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].port, worker.port());
}

}  // namespace
}  // namespace syncline::agent
