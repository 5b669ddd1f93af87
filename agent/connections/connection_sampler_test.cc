// SPDX-License-Identifier: Apache-2.0
#include "agent/connections/connection_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_split.h"
#include "agent/connections/connection_recorder.h"
#include "agent/evidence/fake_node.h"
#include "agent/host/log.h"
#include "evidence/connection_samples.h"

namespace syncline::agent {
namespace {

using evidence::ConnectionValue;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SocketState StateOf(uint64_t inode, uint64_t sent_bytes) {
  SocketState state{.inode = inode, .local = "10.0.0.1:1", .remote = "10.0.0.2:2"};
  state.values.Set(ConnectionValue::kSentBytes, sent_bytes);
  return state;
}

class ConnectionSamplerTest : public FakeNode {
 protected:
  // What the kernel will say of namespace 77.
  struct FakeSource : SocketSource {
    explicit FakeSource(const std::vector<SocketState>* states) : given(states) {}
    absl::StatusOr<std::vector<SocketState>> Read(const WantedSockets& wanted) override {
      std::vector<SocketState> states;
      for (const SocketState& state : *given) {
        if (wanted(state.inode)) states.push_back(state);
      }
      return states;
    }
    const std::vector<SocketState>* given;
  };

  ConnectionSamplerTest() {
    Link("ns/net", "net:[77]");
    Link("fd/3", "socket:[500]");
    Link("fd/4", "/dev/null");
    Link("fd/5", "socket:[501]");
  }
  void Link(const char* name, const char* target) {
    const fs::path link = proc_ / "1234" / name;
    fs::create_directories(link.parent_path());
    fs::remove(link);
    fs::create_symlink(target, link);
  }
  ConnectionSampler MakeSampler(size_t descriptors_max = 1000) {
    ConnectionSamplerOptions options{
        .proc = proc_, .connections_max = 2, .descriptors_max = descriptors_max};
    options.open = [this](const fs::path&, int32_t pid,
                          uint64_t inode) -> absl::StatusOr<std::unique_ptr<SocketSource>> {
      EXPECT_EQ(pid, 1234);
      EXPECT_EQ(inode, 77U);
      ++opened_;
      if (!refusal_.ok()) return refusal_;
      return std::make_unique<FakeSource>(&states_);
    };
    return ConnectionSampler(Directories(), &clock_, options);
  }
  evidence::ConnectionSamples ParsedOf(ConnectionSampler* sampler) {
    if (text_.empty()) evidence::AppendConnectionsHead(&text_);
    text_ += sampler->TakeText();
    auto parsed = evidence::ParseConnectionSamples(text_);
    EXPECT_TRUE(parsed.ok());
    EXPECT_EQ(parsed->damaged_lines, 0U) << text_;
    return *std::move(parsed);
  }

  std::vector<SocketState> states_;
  absl::Status refusal_;
  int opened_ = 0;
};

TEST_F(ConnectionSamplerTest, OnlySocketsOfRecordedProcessesAreWritten) {
  ConnectionSampler sampler = MakeSampler();
  states_ = {StateOf(500, 10), StateOf(999, 20)};
  sampler.Search();
  sampler.Round();
  const auto found = ParsedOf(&sampler);
  ASSERT_THAT(found.processes, SizeIs(1));
  EXPECT_EQ(found.processes[0].own_pid, 1234);
  EXPECT_EQ(found.processes[0].pid_namespace_inode, 4026531836);
  ASSERT_THAT(found.connections, SizeIs(1));
  EXPECT_EQ(found.connections[0].network_namespace, 77U);
  ASSERT_THAT(found.samples, SizeIs(1));
  EXPECT_EQ(found.samples[0].values.Get(ConnectionValue::kSentBytes), 10);
  EXPECT_THAT(found.rounds_ns, SizeIs(1));
}

TEST_F(ConnectionSamplerTest, WhatHasNotChangedIsNotWrittenAgain) {
  ConnectionSampler sampler = MakeSampler();
  states_ = {StateOf(500, 10), StateOf(501, 20)};
  states_[1].local = "10.0.0.1:3";
  sampler.Search();
  sampler.Round();
  sampler.Round();
  states_[1].values.Set(ConnectionValue::kSentBytes, 25);
  sampler.Search();
  sampler.Round();
  const auto found = ParsedOf(&sampler);
  EXPECT_THAT(found.connections, SizeIs(2));
  EXPECT_THAT(std::vector<std::string>(absl::StrSplit(text_, "\ns ")), SizeIs(1 + 3));
  EXPECT_EQ(found.samples.back().connection, 1U);
  EXPECT_EQ(found.samples.back().values.Get(ConnectionValue::kSentBytes), 25);
  EXPECT_THAT(found.rounds_ns, SizeIs(3));
  EXPECT_EQ(opened_, 1);
}

// A number that the kernel gives anew, to another connection of the same process.
TEST_F(ConnectionSamplerTest, ASocketThatIsAnotherConnectionIsOneOfItsOwn) {
  ConnectionSampler sampler = MakeSampler();
  states_ = {StateOf(500, 10)};
  sampler.Search();
  sampler.Round();
  states_[0].remote = "10.0.0.3:9";
  sampler.Round();
  const auto found = ParsedOf(&sampler);
  ASSERT_THAT(found.connections, SizeIs(2));
  EXPECT_EQ(found.connections[1].remote, "10.0.0.3:9");
  states_[0].remote = "10.0.0.4:9";
  sampler.Round();
  EXPECT_THAT(ParsedOf(&sampler).connections, SizeIs(2));
  EXPECT_THAT(sampler.TakeComplaints(), ElementsAre(HasSubstr("there were more than 2")));
}

TEST_F(ConnectionSamplerTest, ANamespaceThatMayNotBeEnteredIsSaidOnce) {
  refusal_ = absl::PermissionDeniedError("its network namespace cannot be entered");
  ConnectionSampler sampler = MakeSampler();
  sampler.Search();
  sampler.Search();
  sampler.Round();
  EXPECT_THAT(sampler.TakeComplaints(), ElementsAre(HasSubstr("cannot be entered")));
  const auto found = ParsedOf(&sampler);
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("of python (x): its network namespace")));
  EXPECT_THAT(found.samples, IsEmpty());
}

TEST_F(ConnectionSamplerTest, OfTooManyOpenFilesItIsSaid) {
  ConnectionSampler sampler = MakeSampler(2);
  sampler.Search();
  EXPECT_THAT(sampler.TakeComplaints(), ElementsAre(HasSubstr("they have 2 files open or more")));
}

TEST_F(ConnectionSamplerTest, UsersWhoAreLeftOutAreNotLookedAt) {
  ConnectionSampler sampler = MakeSampler();
  states_ = {StateOf(500, 10)};
  sampler.LeaveOut({static_cast<uint32_t>(::geteuid())});
  sampler.Search();
  sampler.Round();
  EXPECT_THAT(ParsedOf(&sampler).connections, IsEmpty());
  EXPECT_EQ(opened_, 0);
}

TEST(ConnectionRecorder, ItPausesLongerWhereARoundCostsMore) {
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(ConnectionRecorder::PauseNs(100'000, 10'000), kSecond / 2);
  EXPECT_EQ(ConnectionRecorder::PauseNs(10'000'000, 10'000), 2 * kSecond);
  EXPECT_EQ(ConnectionRecorder::PauseNs(100'000, 220'000), kSecond * 22 / 10);
  EXPECT_EQ(ConnectionRecorder::PauseNs(kSecond, 0), 30 * kSecond);
}

TEST_F(ConnectionSamplerTest, ARecordingHasAWholeFileAtItsEnd) {
  Log log(-1, &clock_);
  ConnectionRecorder recorder(
      Directories(), &clock_, &log,
      {.proc = proc_,
       .open = [this](const fs::path&, int32_t,
                      uint64_t) -> absl::StatusOr<std::unique_ptr<SocketSource>> {
         return std::make_unique<FakeSource>(&states_);
       }});
  states_ = {StateOf(500, 10)};
  recorder.Find({});
  recorder.Begin({.recording_id = "a", .directory = root_});
  recorder.Begin({.recording_id = "a", .directory = root_});
  recorder.End();
  EXPECT_THAT(recorder.Collect(), IsEmpty());
  const auto text = ReadFile(root_ / "evidence" / evidence::kConnectionsFileName);
  ASSERT_TRUE(text.ok());
  const auto found = evidence::ParseConnectionSamples(*text);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(found->samples, SizeIs(1));
  EXPECT_THAT(found->rounds_ns, SizeIs(2));
  EXPECT_GE(found->cost_ns, 0);
  EXPECT_TRUE(found->ended);
}

}  // namespace
}  // namespace syncline::agent
