// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/pseudonyms.h"

#include <algorithm>
#include <set>
#include <string>

#include "coordinator/pack/kept_names.h"
#include "coordinator/pack/leftovers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::pack {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

TEST(Pseudonyms, HaveTheLengthOfTheNameAndAreTheSameForTheSame) {
  Pseudonyms names({"gpu-07.acme.example"});
  for (const std::string text :
       {"load shard 3", "/home/ann/train.py", "a", "", "é", "%", "--lr=0.1"}) {
    EXPECT_THAT(names.Name(text), SizeIs(text.size())) << text;
    EXPECT_THAT(names.Text(text), SizeIs(text.size())) << text;
    EXPECT_EQ(names.Text(text), names.Text(text));
  }
  EXPECT_THAT(names.Text("/home/ann/train.py"), Not(HasSubstr("ann")));
  // A word is the same in a path and in a task's name.
  const std::string path = names.Text("/data/shard");
  EXPECT_THAT(names.Name("load shard 3"), HasSubstr(path.substr(path.rfind('/') + 1)));
  EXPECT_NE(names.Name("load shard 3"), names.Name("load piece 3"));
}

TEST(Pseudonyms, DigitsStayInTasksAndNowhereElse) {
  Pseudonyms names({});
  EXPECT_TRUE(names.Name("bucket 841").ends_with(" 841"));
  EXPECT_THAT(names.Text("--port 7611"), Not(HasSubstr("7611")));
  EXPECT_NE(names.Text("job-17"), names.Text("job-18"));
}

TEST(Pseudonyms, ANameThatHardlyChangesIsNotSought) {
  Pseudonyms names({});
  names.Text("/dev/shm/syncline-7/x");
  EXPECT_FALSE(names.originals().contains("syncline-7"));
  EXPECT_TRUE(names.originals().contains("/dev/shm/syncline-7/x"));
}

TEST(Pseudonyms, WhatMakesAStepAStepStays) {
  Pseudonyms names({});
  EXPECT_EQ(names.Name("step 12"), "step 12");
  EXPECT_TRUE(names.Name("train_step").ends_with("_step"));
  EXPECT_TRUE(names.Name("trainStep").ends_with("Step"));
  EXPECT_FALSE(names.Name("trainStep").starts_with("train"));
  EXPECT_TRUE(names.Name("my_optimizer_step").ends_with("_optimizer_step"));
}

TEST(Pseudonyms, NamesOfFrameworksStayAndWhatTheProgramAddsDoesNot) {
  Pseudonyms names({});
  for (const char* name :
       {"aten::conv2d", "c10d::allreduce_", "gloo:all_reduce", "AddmmBackward0", "PyTorch",
        "Optimizer.step#SGD.step", "autograd::engine::evaluate_function: AddmmBackward0",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "convolution",
        "DistributedDataParallel.forward", "dnnl::primitive::execute", "garbage collection",
        "cpu,convolution,jit:avx512_core,forward_training,src:f32"}) {
    EXPECT_EQ(names.Name(name), name);
  }
  const std::string step = names.Name("Optimizer.step#SecretSgd.step");
  EXPECT_TRUE(step.starts_with("Optimizer.step#") && step.ends_with(".step")) << step;
  EXPECT_THAT(step, Not(HasSubstr("Secret")));
  const std::string backward = names.Name("autograd::engine::evaluate_function: SecretBackward");
  EXPECT_TRUE(backward.ends_with("Backward")) << backward;
  EXPECT_THAT(backward, Not(HasSubstr("Secret")));
  EXPECT_THAT(names.Name("acme::conv"), Not(HasSubstr("acme")));
  EXPECT_THAT(names.Name("FSDP::pre_forward (secret.layers)"), Not(HasSubstr("secret")));
  EXPECT_THAT(names.Name("torch::autograd::CppNode<Secret>"), Not(HasSubstr("Secret")));
}

TEST(Pseudonyms, HostsKeepTheirOrderAndAreFoundInOtherTexts) {
  std::set<std::string> hosts = {"a.example", "master-0", "n1", "worker-0", "worker-1"};
  Pseudonyms names(hosts);
  std::vector<std::string> made;
  for (const std::string& host : hosts) {
    made.push_back(names.Host(host));
    EXPECT_EQ(made.back().size(), host.size());
    EXPECT_FALSE(hosts.contains(made.back()));
  }
  EXPECT_TRUE(std::is_sorted(made.begin(), made.end()));
  EXPECT_EQ(std::set<std::string>(made.begin(), made.end()).size(), hosts.size());
  EXPECT_EQ(names.Text("/mnt/worker-1/x").find(made[4]), 5u);
  EXPECT_THAT(names.Name("load on worker-1"), HasSubstr(made[4]));
}

TEST(Pseudonyms, AThousandHostsAreAThousand) {
  std::set<std::string> hosts;
  for (int i = 1000; i < 2000; ++i) hosts.insert("node" + std::to_string(i));
  Pseudonyms names(hosts);
  std::set<std::string> made;
  for (const std::string& host : hosts) made.insert(names.Host(host));
  EXPECT_EQ(made.size(), 1000u);
}

TEST(Pseudonyms, AddressesStayAddresses) {
  Pseudonyms names({"worker-1"});
  const std::string one = names.Address("10.77.188.1");
  EXPECT_THAT(one, testing::MatchesRegex("[0-9][0-9]\\.[0-9][0-9]\\.[12][0-9][0-9]\\.[0-9]"));
  EXPECT_NE(one, "10.77.188.1");
  EXPECT_NE(one, names.Address("10.77.188.2"));
  EXPECT_EQ(names.Address("10.77.188.1:7611"), one + ":7611");
  EXPECT_EQ(names.Address("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(names.Address("::"), "::");
  EXPECT_EQ(names.Address("worker-1:7611"), names.Host("worker-1") + ":7611");
  const std::string six = names.Address("[fd00:12::ab]:7611");
  EXPECT_TRUE(six.starts_with('[') && six.ends_with("]:7611")) << six;
  EXPECT_THAT(six, Not(HasSubstr("fd00")));
  EXPECT_THAT(names.Address("unix:/run/ann/agent.sock"), Not(HasSubstr("ann/")));
}

TEST(Leftovers, AreFoundInAnyByteAndShortOnesAsWords) {
  const Leftovers names({{"train_model", "task"}, {"anna", "user"}, {"ab", "host"}}, {}, {});
  EXPECT_EQ(names.sought(), 2u);
  EXPECT_EQ(names.Find("xtrain_modelx", true), "task (\"train_model\")");
  EXPECT_EQ(names.Find("/home/anna/x", false), "user (\"anna\")");
  EXPECT_FALSE(names.Find("annabel", false).has_value());
  EXPECT_FALSE(names.Find("ab", false).has_value());
  // In clock readings four bytes may be any.
  EXPECT_FALSE(names
                   .Find(std::string_view("\x01"
                                          "anna\x02",
                                          6),
                         true)
                   .has_value());
  EXPECT_EQ(names.Find(std::string_view("\x01"
                                        "anna\0\x02",
                                        7),
                       true),
            "user (\"anna\")");
}

TEST(Leftovers, WordsOfTheFormatsAndOfKeptNamesAreNotLookedFor) {
  const Leftovers names({{"bytes", "task"}, {"softmax", "path"}, {"2000", "argument"}},
                        {"aten::softmax"}, {"bytes"});
  EXPECT_EQ(names.sought(), 0u);
  EXPECT_EQ(names.ambiguous(), 2u);
  EXPECT_FALSE(names.Find("{\"bytes\": 2000}", false).has_value());
}

}  // namespace
}  // namespace syncline::pack
