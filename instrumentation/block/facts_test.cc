// SPDX-License-Identifier: Apache-2.0
#include "instrumentation/block/facts.h"

#include <map>
#include <string>

#include "gtest/gtest.h"

namespace {

using Environment = std::map<std::string, std::string>;

const char* Get(const char* name, void* context) {
  const auto& environment = *static_cast<const Environment*>(context);
  const auto found = environment.find(name);
  return found == environment.end() ? nullptr : found->second.c_str();
}

syncline_block Facts(Environment environment) {
  syncline_block block{};
  syncline_facts_from_environment(&block, Get, &environment);
  return block;
}

std::string Redact(const std::string& words, size_t out_bytes = 1024) {
  std::string raw = words + '\0';
  std::string out(out_bytes, 'x');
  syncline_redact_command_line(raw.data(), raw.size(), out.data(), out.size());
  return out.c_str();
}

TEST(FactsTest, NothingKnownIsMinusOneAndEmpty) {
  const syncline_block block = Facts({});
  EXPECT_EQ(block.rank, -1);
  EXPECT_EQ(block.world_size, -1);
  EXPECT_EQ(block.local_rank, -1);
  EXPECT_STREQ(block.job, "");
  EXPECT_STREQ(block.role, "");
}

TEST(FactsTest, TorchrunWithinSlurm) {
  const syncline_block block = Facts({{"RANK", "5"},
                                      {"WORLD_SIZE", "16"},
                                      {"LOCAL_RANK", "1"},
                                      {"SLURM_PROCID", "2"},
                                      {"SLURM_NTASKS", "8"},
                                      {"SLURM_JOB_ID", "4711"},
                                      {"TORCHELASTIC_RUN_ID", "none"},
                                      {"TORCHELASTIC_RESTART_COUNT", "2"}});
  EXPECT_EQ(block.rank, 5);
  EXPECT_EQ(block.world_size, 16);
  EXPECT_EQ(block.local_rank, 1);
  EXPECT_STREQ(block.job, "4711");
  EXPECT_STREQ(block.incarnation, "2");
}

TEST(FactsTest, LaunchersAndWhatSynclineRunWasToldWins) {
  EXPECT_EQ(Facts({{"OMPI_COMM_WORLD_RANK", "3"}}).rank, 3);
  EXPECT_EQ(Facts({{"OMPI_COMM_WORLD_SIZE", "4"}}).world_size, 4);
  EXPECT_EQ(Facts({{"PMI_RANK", "7"}}).rank, 7);
  EXPECT_EQ(Facts({{"SLURM_PROCID", "0"}}).rank, 0);
  EXPECT_EQ(Facts({{"SYNCLINE_RANK", "9"}, {"RANK", "1"}}).rank, 9);
  EXPECT_STREQ(Facts({{"SYNCLINE_JOB", "night"}, {"SLURM_JOB_ID", "1"}}).job, "night");
  EXPECT_STREQ(Facts({{"TORCHELASTIC_RUN_ID", "none"}}).job, "");
  EXPECT_STREQ(Facts({{"TORCHELASTIC_RUN_ID", "abc"}}).job, "abc");
}

TEST(FactsTest, NonsenseNumbersAreUnknown) {
  for (const char* text : {"", "-1", "1x", "x", "99999999999", " 1"}) {
    EXPECT_EQ(Facts({{"RANK", text}}).rank, -1) << text;
  }
}

TEST(FactsTest, TfConfig) {
  const char* config =
      R"({"cluster": {"worker": ["a:1", "b:2", "c]:3"], "type": ["x"], "chief": ["d:4"]},
          "task": {"type": "worker", "index": 2}, "environment": "cloud"})";
  const syncline_block block = Facts({{"TF_CONFIG", config}});
  EXPECT_STREQ(block.role, "worker");
  EXPECT_EQ(block.rank, 2);
  EXPECT_EQ(block.world_size, 3);
  const syncline_block named =
      Facts({{"TF_CONFIG", config}, {"SYNCLINE_ROLE", "left"}, {"RANK", "0"}});
  EXPECT_STREQ(named.role, "left");
  EXPECT_EQ(named.rank, 0);
}

TEST(FactsTest, TfConfigTaskFirstAndIndexAsText) {
  syncline_tf_task task;
  syncline_parse_tf_config(R"({"task":{"index":"11","type":"ps"},"cluster":{"ps":[]}})", &task);
  EXPECT_STREQ(task.type, "ps");
  EXPECT_EQ(task.index, 11);
  EXPECT_EQ(task.count, 0);
}

TEST(FactsTest, BrokenTfConfigIsIgnoredWhereverItEnds) {
  const std::string config =
      R"({"cluster":{"worker":["a\"]:1",{"x":[1,2]}]},"task":{"type":"worker","index":1}})";
  for (size_t n = 0; n < config.size(); ++n) {
    syncline_tf_task task;
    const std::string cut = config.substr(0, n);
    syncline_parse_tf_config(cut.c_str(), &task);
    EXPECT_TRUE(task.index == -1 || task.index == 1) << cut;
  }
  syncline_tf_task task;
  syncline_parse_tf_config(config.c_str(), &task);
  EXPECT_EQ(task.index, 1);
  EXPECT_EQ(task.count, 2);
  syncline_parse_tf_config(std::string(5000, '[').c_str(), &task);
  EXPECT_EQ(task.index, -1);
  syncline_parse_tf_config((R"({"a":)" + std::string(5000, '[')).c_str(), &task);
  EXPECT_EQ(task.index, -1);
}

TEST(RedactTest, Secrets) {
  EXPECT_EQ(Redact("train --password=hunter2 -x"), "train --password=*** -x");
  EXPECT_EQ(Redact("train --hf-token abc --lr 1"), "train --hf-token *** --lr 1");
  EXPECT_EQ(Redact("WANDB_API_KEY=abc"), "WANDB_API_KEY=***");
  EXPECT_EQ(Redact("--clientSecret=abc --apiKey=x"), "--clientSecret=*** --apiKey=***");
  EXPECT_EQ(Redact("--db postgres://me:pw@host/db?x=1"), "--db postgres://me:***@host/db?x=1");
  EXPECT_EQ(Redact("http://ghp_abc@github.com/x"), "http://***@github.com/x");
  EXPECT_EQ(Redact("curl -H Authorization: Bearer abc"), "curl -H Authorization: Bearer ***");
}

TEST(RedactTest, WhatIsNoSecretStays) {
  for (const char* line : {"python train.py --tokenizer=bert --max_tokens=5", "a --keyboard x",
                           "http://host:80/a@b", "--lr=0.1 file://x", "--use-token --lr 1"}) {
    EXPECT_EQ(Redact(line), line);
  }
}

TEST(RedactTest, WordsInsideOneArgumentAndCuts) {
  EXPECT_EQ(Redact(std::string("sh\0-c\0train --token abc x", 25)), "sh -c train --token *** x");
  EXPECT_EQ(Redact("abcdef", 4), "abc");
  EXPECT_EQ(Redact("ab\xC3\xA9", 4), "ab");  // never half a character
  EXPECT_EQ(Redact("", 8), "");
  EXPECT_EQ(Redact("a\nb"), "a b");
}

TEST(CopyTextTest, CutsAtACharacter) {
  char out[4];
  syncline_copy_text(out, sizeof out, "ab\xC3\xA9");
  EXPECT_STREQ(out, "ab");
  syncline_copy_text(out, sizeof out, nullptr);
  EXPECT_STREQ(out, "");
}

}  // namespace
