// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <sstream>

#include "coordinator/cli/command_line.h"
#include "coordinator/fleet/fake_agent.h"
#include "coordinator/host/fake_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using Answer = absl::StatusOr<v1::StacksResponse>;

class StacksAgent : public fleet::FakeAgent {
 public:
  StacksAgent(host::FakeClock* clock, Answer answer)
      : FakeAgent(clock), answer_(std::move(answer)) {}
  Answer Stacks(const v1::StacksRequest&, Timeout) override { return answer_; }

 private:
  const Answer answer_;
};

class StacksCommand : public testing::Test {
 protected:
  StacksCommand() {
    context_.environment = [](const char*) { return std::string(); };
    context_.clock = &clock_;
    context_.interrupts = &interrupts_;
    context_.out = &out_;
    context_.err = &err_;
    context_.local_node = hosts::Node();
    context_.local_node->name = "here";
    context_.local_node->socket_path = "/run/here";
    context_.ensure_local_agent = [] { return false; };
    context_.connect = [this](const hosts::Node&, const certs::Credentials&) {
      return std::make_unique<StacksAgent>(&clock_, answer_);
    };
  }
  int Run(const std::vector<std::string>& words) {
    const std::optional<int> code = ParseCommandLine(words, &context_);
    return code.has_value() ? *code : context_.action();
  }
  static v1::StacksResponse With(std::vector<v1::ProcessStacks::Source> sources) {
    v1::StacksResponse response;
    for (const auto source : sources) {
      v1::ProcessStacks& process = *response.add_processes();
      process.set_source(source);
      process.mutable_process()->set_pid(7);
      process.mutable_process()->set_rank(-1);
    }
    return response;
  }

  host::FakeClock clock_;
  record::Interrupts interrupts_;
  std::ostringstream out_;
  std::ostringstream err_;
  Answer answer_ = v1::StacksResponse();
  Context context_;
};

TEST_F(StacksCommand, WithStacksOfAllItIsDone) {
  answer_ = With({v1::ProcessStacks::HOOK, v1::ProcessStacks::PY_SPY});
  EXPECT_EQ(Run({"stacks"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("PROCESS · node here · pid 7"));
}

TEST_F(StacksCommand, WithStacksOfSomeItIsIncomplete) {
  answer_ = With({v1::ProcessStacks::HOOK, v1::ProcessStacks::KERNEL});
  EXPECT_EQ(Run({"stacks"}), kIncomplete);
}

TEST_F(StacksCommand, WithoutAnyItFails) {
  answer_ = With({v1::ProcessStacks::KERNEL});
  EXPECT_EQ(Run({"stacks"}), kFailed);
  answer_ = v1::StacksResponse();
  EXPECT_EQ(Run({"stacks"}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("there is no program to look at"));
}

TEST_F(StacksCommand, AnOlderAgentIsSaidToBeOne) {
  answer_ = absl::UnimplementedError("");
  EXPECT_EQ(Run({"stacks"}), kFailed);
  EXPECT_THAT(err_.str(), StartsWith("error: here: the agent is older than `syncline stacks`"));
}

TEST_F(StacksCommand, JsonIsNothingElse) {
  answer_ = With({v1::ProcessStacks::HOOK});
  EXPECT_EQ(Run({"stacks", "--json"}), kDone);
  EXPECT_THAT(out_.str(), StartsWith("{\n  \"format_version\": 1,\n  \"groups\": []"));
}

TEST_F(StacksCommand, CompletionAndHelpKnowIt) {
  EXPECT_EQ(Run({"stacks", "--help"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("BEHIND names the ranks"));
  EXPECT_EQ(Run({"completion", "bash"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("\"stacks\") words=\""));
}

}  // namespace
}  // namespace syncline::cli
