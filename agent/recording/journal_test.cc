// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/journal.h"

#include <filesystem>
#include <string>

#include "agent/recording/trace_files.h"
#include "common/files.h"
#include "common/utf8.h"
#include "gtest/gtest.h"
#include "proto/texts.h"

namespace syncline::agent {
namespace {

std::string TwoEntries() {
  journal::Entry first;
  first.set_state(v1::PREPARING);
  first.set_session_name("syncline-1");
  first.mutable_request()->set_holder("ann@laptop");
  first.mutable_request()->add_extra_events("lttng_ust_libc:*");
  journal::Entry second;
  second.set_state(v1::RECORDING);
  second.set_generation(7);
  return EncodeJournalEntry(first).value() + EncodeJournalEntry(second).value();
}

TEST(Journal, LaterLinesReplaceEarlierOnes) {
  const auto entry = DecodeJournal(TwoEntries());
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ(entry->state(), v1::RECORDING);
  EXPECT_EQ(entry->session_name(), "syncline-1");
  EXPECT_EQ(entry->generation(), 7u);
  EXPECT_EQ(entry->request().holder(), "ann@laptop");
  EXPECT_EQ(entry->request().extra_events_size(), 1);
}

TEST(Journal, TextsThatAreNotUtf8AreRepairedWhereverTheyStand) {
  journal::Entry entry;
  entry.mutable_request()->set_holder("M\xfcller@laptop");
  entry.mutable_request()->add_extra_events("a\xff:*");
  v1::ProcessInfo& process = *entry.mutable_stopped()->add_processes();
  process.set_command_line("train M\xfcller");
  process.add_sources("itt");
  entry.mutable_stopped()->add_complaints()->set_what("cut \xe2\x82");
  v1::StopResponse repaired = entry.stopped();
  RewriteTexts(&repaired, &RepairedUtf8);
  EXPECT_TRUE(v1::StopResponse().ParseFromString(repaired.SerializeAsString()));
  const auto read = DecodeJournal(EncodeJournalEntry(entry).value());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->request().holder(), "M\ufffdller@laptop");
  EXPECT_EQ(read->request().extra_events(0), "a\ufffd:*");
  EXPECT_EQ(read->stopped().processes(0).command_line(), "train M\ufffdller");
  EXPECT_EQ(read->stopped().processes(0).sources(0), "itt");
  EXPECT_EQ(read->stopped().complaints(0).what(), "cut \ufffd\ufffd");
}

TEST(Journal, NamesOfFoldersBecomeTexts) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / "bad-names";
  std::filesystem::create_directories(root / "ust/pid/M\xfcller-12/in");
  ASSERT_TRUE(WriteFileAtomically(root / "ust/pid/M\xfcller-12/in/f\xff", "x").ok());
  RepairFileNames(root);
  EXPECT_EQ(ReadFile(root / "ust/pid/M\ufffdller-12/in/f\ufffd").value(), "x");
  EXPECT_FALSE(std::filesystem::exists(root / "ust/pid/M\xfcller-12"));
  std::filesystem::remove_all(root);
}

// A kill may cut the last line anywhere; what stood before it counts.
TEST(Journal, EveryCutOfTheLastLineGivesTheOneBefore) {
  const std::string bytes = TwoEntries();
  const size_t first_line = bytes.find('\n') + 1;
  for (size_t cut = first_line; cut < bytes.size(); ++cut) {
    const auto entry = DecodeJournal(std::string_view(bytes).substr(0, cut));
    ASSERT_TRUE(entry.ok()) << cut << ": " << entry.status();
    EXPECT_EQ(entry->state(), v1::PREPARING) << cut;
    EXPECT_EQ(entry->generation(), 0u) << cut;
  }
}

TEST(Journal, WhatFollowsATornLineIsNotPartOfIt) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "torn-journal";
  const std::string bytes = TwoEntries();
  ASSERT_TRUE(WriteFileAtomically(path, std::string_view(bytes).substr(0, bytes.size() - 5)).ok());
  journal::Entry third;
  third.set_state(v1::STOPPED);
  ASSERT_TRUE(Journal(path).Append(third).ok());
  const auto entry = Journal(path).Read();
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ(entry->state(), v1::STOPPED);
  EXPECT_EQ(entry->generation(), 0u);
  std::filesystem::remove(path);
}

TEST(Journal, EmptyHasNoState) {
  EXPECT_EQ(DecodeJournal("")->state(), v1::RECORDING_STATE_UNSPECIFIED);
}

TEST(Journal, DamageInTheMiddleIsSaid) {
  EXPECT_EQ(DecodeJournal("garbage\n" + TwoEntries()).status().code(), absl::StatusCode::kDataLoss);
}

TEST(Journal, IgnoresWhatALaterVersionAdded) {
  const auto entry = DecodeJournal("{\"state\":\"READY\",\"somethingNew\":{\"a\":1}}\n");
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ(entry->state(), v1::READY);
}

}  // namespace
}  // namespace syncline::agent
