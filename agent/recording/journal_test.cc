// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/journal.h"

#include <filesystem>
#include <string>

#include "common/files.h"
#include "gtest/gtest.h"

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
