// SPDX-License-Identifier: Apache-2.0
#include "control_block/block_file.h"

#include <cstddef>
#include <cstring>

#include "control_block/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::control_block {
namespace {

TEST(BlockFileNameTest, ThereAndBack) {
  const BlockId id{4026531836, 1234, 98765};
  EXPECT_EQ(BlockFileName(id), "4026531836-1234-98765.block");
  EXPECT_EQ(NamesFileName(id), "4026531836-1234-98765.names");
  EXPECT_EQ(ParseBlockFileName("4026531836-1234-98765.block"), id);
}

TEST(BlockFileNameTest, OtherFilesAreNone) {
  for (const char* name :
       {"", ".block", "counters", "1-2-3.names", "1-2-3.block.new", "1-2.block", "1-2-3-4.block",
        "1--2-3.block", "01-2-3.block", "+1-2-3.block", "1-0-3.block", "x-2-3.block",
        "99999999999999999999-2-3.block", "../1-2-3.block"}) {
    EXPECT_EQ(ParseBlockFileName(name), std::nullopt) << name;
  }
}

TEST(ParseBlockTest, TextsAreUtf8WhereverTheyWereCut) {
  std::vector<uint8_t> bytes = MakeBlockBytes();
  auto* raw = reinterpret_cast<syncline_block*>(bytes.data());
  std::strcpy(raw->command_line, "train M\xfcller");
  std::memset(raw->job, 'x', sizeof raw->job);
  raw->job[sizeof raw->job - 1] = '\xc3';  // the rest of it did not fit
  const auto block = ParseBlock(bytes);
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(block->facts.command_line, "train M\ufffdller");
  EXPECT_TRUE(block->facts.job.ends_with("xx\ufffd"));
}

TEST(ParseBlockTest, FactsThreadsAndSums) {
  const auto block = ParseBlock(MakeBlockBytes());
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(block->facts.id, (BlockId{4026531836, 1234, 5678}));
  EXPECT_EQ(block->facts.state, ProcessState::kLive);
  EXPECT_EQ(block->facts.rank, 1);
  EXPECT_EQ(block->facts.local_rank, -1);
  EXPECT_EQ(block->facts.job, "night");
  EXPECT_EQ(block->facts.command_line, "python train.py");
  ASSERT_EQ(block->threads.size(), 2u);
  EXPECT_EQ(block->threads[1].thread_key, 12u);
  EXPECT_EQ(block->threads[1].name, "worker");
  EXPECT_EQ(block->events(), 12u);
  EXPECT_EQ(block->gate.events_since_on, 7u);
  EXPECT_EQ(block->gate.lost_since_on, 1u);
  EXPECT_EQ(block->gate.cost_ns_since_on, 1000u);
  EXPECT_EQ(block->gate.asked_monotonic_ns, 900u);
  EXPECT_EQ(block->gate.on_monotonic_ns, 1000u);
  EXPECT_EQ(block->gate.lost_before_on, 1u);
}

TEST(ParseBlockTest, CutAnywhereNeverReadsBeyond) {
  const std::vector<uint8_t> bytes = MakeBlockBytes();
  EXPECT_EQ(ParseBlock(std::span(bytes).first(7)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseBlock(std::span(bytes).first(sizeof(syncline_block) - 1)).status().code(),
            absl::StatusCode::kDataLoss);
  const auto header_only = ParseBlock(std::span(bytes).first(sizeof(syncline_block)));
  ASSERT_TRUE(header_only.ok());
  EXPECT_TRUE(header_only->threads.empty());
  const auto one = ParseBlock(std::span(bytes).first(sizeof(syncline_block) + 100));
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->threads.size(), 1u);
  EXPECT_EQ(one->bytes_expected, bytes.size());
}

TEST(ParseBlockTest, HostileNumbers) {
  std::vector<uint8_t> bytes = MakeBlockBytes();
  auto* block = reinterpret_cast<syncline_block*>(bytes.data());
  std::memset(block->job, 'j', sizeof block->job);  // no NUL
  block->thread_slots_used = 0xFFFFFFFF;
  block->events_at_on = 1000;  // more than there were
  block->state = 77;
  block->rank = -5;
  const auto parsed = ParseBlock(bytes);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->facts.job, std::string(sizeof block->job, 'j'));
  EXPECT_EQ(parsed->threads.size(), 2u);
  EXPECT_EQ(parsed->gate.events_since_on, 0u);
  EXPECT_EQ(parsed->facts.state, ProcessState::kStarting);
  EXPECT_EQ(parsed->facts.rank, -1);
  block->header_bytes = 8;
  EXPECT_EQ(ParseBlock(bytes).status().code(), absl::StatusCode::kFailedPrecondition);
  block->header_bytes = 0xFFFFFFF0;
  EXPECT_TRUE(ParseBlock(bytes).ok());
  block->version = 2;
  EXPECT_THAT(std::string(ParseBlock(bytes).status().message()), testing::HasSubstr("version 2"));
}

TEST(ParseNamesTest, TextsByIdAndKinds) {
  const auto names = ParseNames(Bytes(MakeNamesBytes({"conv", "", "matmul", "four"})));
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(names->size(), 4u);
  EXPECT_EQ(names->Text(1), "conv");
  EXPECT_EQ(names->Text(2), "");
  EXPECT_TRUE(names->Has(2));
  EXPECT_EQ(names->Text(3), "matmul");
  EXPECT_EQ(names->Kind(3), NameKind::kString);
  EXPECT_EQ(names->Text(0), "");
  EXPECT_FALSE(names->Has(0));
  EXPECT_FALSE(names->Has(5));
  EXPECT_FALSE(names->damaged());
}

TEST(ParseNamesTest, CopiesStayGood) {
  NameTable copy;
  {
    const auto names = ParseNames(Bytes(MakeNamesBytes({"a"})));
    ASSERT_TRUE(names.ok());
    copy = *names;
  }
  EXPECT_EQ(copy.Text(1), "a");
}

TEST(ParseNamesTest, ZerosAtTheEndAreRoomHalfARecordIsDamage) {
  const std::string whole = MakeNamesBytes({"conv", "matmul"});
  auto names = ParseNames(Bytes(whole + std::string(4096, '\0')));
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(names->size(), 2u);
  EXPECT_EQ(names->valid_bytes(), whole.size());
  EXPECT_FALSE(names->damaged());
  names = ParseNames(Bytes(whole.substr(0, whole.size() - 4)));
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(names->size(), 1u);
  EXPECT_TRUE(names->damaged());
  EXPECT_LT(names->valid_bytes(), whole.size());
}

TEST(ParseNamesTest, WhatIsNoTable) {
  EXPECT_TRUE(ParseNames({}).ok());
  EXPECT_EQ(ParseNames(Bytes("SYNCNAM1")).status().code(), absl::StatusCode::kInvalidArgument);
  std::string other = MakeNamesBytes({});
  other[8] = 9;
  EXPECT_EQ(ParseNames(Bytes(other)).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace syncline::control_block
