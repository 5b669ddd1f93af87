// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/pseudonyms.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "analysis/names.h"
#include "coordinator/pack/name_shape.h"
#include "coordinator/pack/public_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::pack {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Pseudonyms, AreTheSameForTheSameNameAndOthersInTheNextPack) {
  Pseudonyms names(2);
  EXPECT_EQ(names.Plain("gpu-7.acme"), names.Plain("gpu-7.acme"));
  EXPECT_NE(names.Plain("gpu-7.acme"), names.Plain("gpu-8.acme"));
  EXPECT_EQ(names.Name("load shard"), names.Name("load shard"));
  Pseudonyms next(2);
  EXPECT_NE(next.Plain("gpu-7.acme of /home/ann"), names.Plain("gpu-7.acme of /home/ann"));
  EXPECT_TRUE(names.status().ok());
}

// Hole 1 of an earlier attempt: text behind a framework's prefix stayed whole.
TEST(Pseudonyms, NothingStaysBehindAPublicBeginning) {
  Pseudonyms names(2);
  for (const char* name :
       {"torch.acme_secret", "gloo:acme_secret", "dnnl acme_secret", "aten::acme_secret",
        "c10d::acme_secret", "torch::autograd::CppNode<acme_secret>", "FSDP::pre (acme_secret)",
        "FSDP::root_pre_forward (acme_secret)", "Optimizer.step#acme_secret.step",
        "enumerate(DataLoader)#acme_secret", "accelerator initialised: acme_secret",
        "autograd::engine::evaluate_function: acme_secretBackward", "acme_secret::op",
        "acme_secretBackward", "acme_secret_step", "gloo acme_secret", "timeof acme_secret"}) {
    const std::string made = names.Name(name);
    for (const char* part : {"acme", "secret", "cme_", "acm"}) {
      EXPECT_THAT(made, Not(HasSubstr(part))) << name;
    }
    EXPECT_EQ(made.size(), std::string(name).size());
    EXPECT_EQ(MeaningOf(made), MeaningOf(name)) << name << " -> " << made;
  }
}

// Hole 3: addresses inside of names.
TEST(Pseudonyms, AddressesInsideOfNamesGo) {
  Pseudonyms names(256);
  for (const char* name : {"10.77.3.1", "peer 10.77.3.1", "10.77.3.1:7611 up", "to_10.77.3.1_"}) {
    EXPECT_THAT(names.Name(name), Not(HasSubstr("10.77.3.1"))) << name;
  }
  const std::string made = names.Address("10.77.3.1:7611");
  EXPECT_THAT(made, EndsWith(":7611"));
  EXPECT_TRUE(IsIpAddress(made.substr(0, made.size() - 5))) << made;
  EXPECT_THAT(made, Not(HasSubstr("10.77.3.1")));
  EXPECT_EQ(names.Ip("10.77.3.1") + ":7611", made) << "wherever it stands";
  EXPECT_EQ(names.Ip("10.77.3.1").size(), 9u);
  EXPECT_NE(names.Ip("fe80::1234:aa"), "fe80::1234:aa");
  EXPECT_EQ(names.Ip("127.0.0.1"), "127.0.0.1");
  EXPECT_THAT(names.Address("gpu-7.acme:7611"), Not(HasSubstr("gpu")));
  EXPECT_THAT(names.Address("unix:/run/ann/agent"), Not(HasSubstr("ann")));
}

// Hole 4: words that begin like "optimizer".
TEST(Pseudonyms, WordsThatBeginLikePublicOnesGo) {
  Pseudonyms names(2);
  for (const char* name : {"optimus", "optim_acme", "stepan", "iterative acme", "steps of acme"}) {
    EXPECT_NE(names.Name(name).substr(0, 4), std::string(name).substr(0, 4));
  }
}

// Hole 5: runs of letters and digits were taken for numbers.
TEST(Pseudonyms, DigitsInsideOfWordsGo) {
  Pseudonyms names(64);
  const std::string made = names.Name("r1i0n12");
  EXPECT_TRUE(made.find_first_of("0123456789") == std::string::npos) << made;
  EXPECT_THAT(names.Plain("r1i0n12"), Not(HasSubstr("r1i")));
}

// Hole 6 and 8: identifiers of machines.
TEST(Pseudonyms, UuidsAndUidsGo) {
  Pseudonyms names(2);
  const std::string made = names.Uuid("617959CE-3f1f-45a8-9e52-71007814e8a2");
  EXPECT_TRUE(IsUuid(made));
  EXPECT_EQ(made, names.Uuid("617959ce-3f1f-45a8-9e52-71007814e8a2"));
  EXPECT_NE(made, "617959ce-3f1f-45a8-9e52-71007814e8a2");
  EXPECT_EQ(names.Uid(0), 0u);
  EXPECT_NE(names.Uid(48213), 48213u);
  EXPECT_EQ(names.Uid(48213), names.Uid(48213));
}

TEST(Pseudonyms, PublicNamesStayOnlyWhole) {
  Pseudonyms names(2);
  for (const char* name :
       {"aten::addmm", "aten::add_", "gloo:all_reduce", "AddmmBackward0", "Optimizer.step#SGD.step",
        "PyTorch", "c10d::allreduce_", "autograd::engine::evaluate_function: AddmmBackward0",
        "annotations", "number"}) {  // of syncline/annotate.h
    EXPECT_EQ(names.Name(name), name);
    EXPECT_NE(names.Plain(name), name) << "a host may be called so";
  }
  EXPECT_NE(names.Name("aten::addmm "), "aten::addmm ");
}

TEST(Pseudonyms, NumbersThatStandAloneStillGroup) {
  Pseudonyms names(2);
  const auto pattern = [&](const char* name) { return analysis::NamePattern(names.Name(name)); };
  EXPECT_EQ(pattern("load shard 841"), pattern("load shard 7"));
  EXPECT_NE(pattern("load shard 841"), pattern("keep shard 841"));
  EXPECT_NE(names.Name("load shard 841"), names.Name("load shard 842"));
  EXPECT_NE(pattern("conv2d acme"), pattern("conv3d acme"));
  EXPECT_TRUE(analysis::LooksLikeStep(names.Name("acme step 12")));
  EXPECT_EQ(pattern("acme step 12"), pattern("acme step 13"));
}

TEST(Pseudonyms, ListsOfRanksStayWhereTheJobHasThem) {
  Pseudonyms names(9);
  EXPECT_EQ(names.Name("0-3,8"), "0-3,8");
  EXPECT_EQ(names.Name("7"), "7");
  EXPECT_NE(names.Name("48213"), "48213") << "a number of a job";
  EXPECT_NE(names.Name("0-3,9"), "0-3,9");
  EXPECT_NE(names.Name("3,1"), "3,1");
}

TEST(Pseudonyms, DifferentNamesStayDifferent) {
  Pseudonyms names(2);
  std::set<std::string> made;
  size_t count = 0;
  for (char a = 'a'; a <= 'z'; ++a) {
    for (char b = 'a'; b <= 'z'; ++b) {
      made.insert(names.Name(std::string{a, b}));
      ++count;
    }
  }
  for (int i = 10; i < 100; ++i, ++count) made.insert(names.Name("shard " + std::to_string(i)));
  EXPECT_EQ(made.size(), count);
  EXPECT_TRUE(names.status().ok()) << names.status();
}

TEST(Pseudonyms, TooManyShortNamesAreRefused) {
  Pseudonyms names(2);
  for (int c = 1; c < 256; ++c) names.Name(std::string(1, static_cast<char>(c)));
  EXPECT_EQ(names.status().code(), absl::StatusCode::kResourceExhausted);
}

// Names of which little may change: each has another one all the same, and none is refused.
TEST(Pseudonyms, HonestNamesAreNotRefused) {
  Pseudonyms names(2);
  std::set<std::string> made;
  size_t count = 0;
  const auto make = [&](const std::string& name) {
    made.insert(names.Name(name));
    ++count;
    EXPECT_EQ(MeaningOf(names.Name(name)), MeaningOf(name)) << name;
    EXPECT_TRUE(names.status().ok() || absl::IsAborted(names.status()))
        << name << ": " << names.status();
  };
  for (const char* mark : {"/", ":", "-", ",", " ", ".", "|", "=", "@"}) {
    make(std::string("1") + mark + "2");
  }
  for (const char* mark : {" ", "_", "-", "#", ":", "."}) make(std::string("step") + mark + "9");
  // Some of these are names of PyTorch's: "TBackward".
  for (char a = 'a'; a <= 'z'; ++a) make(std::string(1, a) + "Backward");
  for (int i = 2; i < 1000; ++i) make(std::to_string(i));
  for (const char* name : {"c10d::allreduce", "c10d::_broadcast__", "c10d::barrier"}) make(name);
  EXPECT_EQ(made.size(), count);
}

// The byte that stands for a number in what pseudonyms are made from.
TEST(Pseudonyms, ControlCharactersAreNoNumbers) {
  for (const bool number_first : {true, false}) {
    Pseudonyms names(2);
    std::vector<std::string> both = {"step 7", "step \1", " 7 \1", " \1 7", "\1"};
    if (!number_first) std::reverse(both.begin(), both.end());
    std::set<std::string> made;
    for (const std::string& name : both) {
      EXPECT_EQ(names.Name(name).size(), name.size());
      EXPECT_EQ(names.Name(name).find('\1'), std::string::npos);
      made.insert(names.Name(name));
    }
    EXPECT_EQ(made.size(), both.size());
  }
}

TEST(Pseudonyms, OnlyAnAddressIsLoopback) {
  Pseudonyms names(2);
  EXPECT_EQ(names.Ip("127.0.0.53"), "127.0.0.53");
  EXPECT_THAT(names.Ip("127.acme"), Not(HasSubstr("acme")));
}

TEST(Pseudonyms, SentencesAreLeftOut) {
  Pseudonyms names(2);
  EXPECT_EQ(names.Sentence("cannot open /home/ann"), "(sentence 1 left out)");
  EXPECT_EQ(names.Sentence("rank 3 of acme is gone"), "(sentence 2 left out)");
  EXPECT_EQ(names.Sentence(""), "");
  EXPECT_EQ(names.Word("requested"), "requested");
  EXPECT_NE(names.Word("requested by ann"), "requested by ann");
}

TEST(PublicNames, VocabularyHasNothingOfARecording) {
  EXPECT_TRUE(IsVocabulary("gate_begin_monotonic_ns"));
  EXPECT_TRUE(IsVocabulary("addmm"));
  EXPECT_TRUE(IsVocabulary("unix")) << "of addresses: a job may be called so";
  EXPECT_FALSE(IsVocabulary("laptop"));
  EXPECT_FALSE(IsVocabulary("ann"));
}

}  // namespace
}  // namespace syncline::pack
