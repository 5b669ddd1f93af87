// SPDX-License-Identifier: Apache-2.0
#include "agent/scheduling/tracepoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "absl/strings/str_cat.h"
#include "common/files.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kCommon[] =
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

std::string Switch(const char* state_type, int state_size) {
  return absl::StrCat("name: sched_switch\nID: 372\n", kCommon,
                      "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
                      "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:",
                      state_type, " prev_state;\toffset:32;\tsize:", state_size,
                      ";\tsigned:1;\n"
                      "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
                      "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\n"
                      "print fmt: \"...\"\n");
}

std::string Waking() {
  return absl::StrCat("name: sched_waking\nID: 375\n", kCommon,
                      "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
                      "\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n");
}

std::string Move() {
  return absl::StrCat("name: sched_migrate_task\nID: 371\n", kCommon,
                      "\tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;\n"
                      "\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n"
                      "\tfield:int dest_cpu;\toffset:24;\tsize:4;\tsigned:1;\n");
}

class Tracefs : public ::testing::Test {
 protected:
  Tracefs() {
    std::string pattern = ::testing::TempDir() + "tracefs-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~Tracefs() override { fs::remove_all(root_); }
  void Put(const char* event, const std::string& format) {
    const fs::path folder = root_ / "events" / "sched" / event;
    fs::create_directories(folder);
    ASSERT_TRUE(WriteFileAtomically(folder / "format", format, 0600).ok());
  }
  fs::path root_;
};

TEST_F(Tracefs, FieldsAreWhereTheKernelSays) {
  Put("sched_switch", Switch("long", 8));
  Put("sched_waking", Waking());
  Put("sched_migrate_task", Move());
  const auto found = FindSchedulerTracepoints({root_ / "nowhere", root_});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->switch_id, 372U);
  EXPECT_EQ(found->waking_id, 375U);
  EXPECT_EQ(found->migrate_id, 371U);
  EXPECT_EQ(found->flags.offset, 2U);
  EXPECT_EQ(found->current.offset, 4U);
  EXPECT_EQ(found->prev_tid.offset, 24U);
  EXPECT_EQ(found->prev_state.offset, 32U);
  EXPECT_EQ(found->next_name.offset, 40U);
  EXPECT_EQ(found->next_name.size, 16U);
  EXPECT_EQ(found->next_tid.offset, 56U);
  EXPECT_EQ(found->woken_cpu.offset, 32U);
  EXPECT_EQ(found->moved_tid.offset, 12U);
  EXPECT_EQ(found->moved_to.offset, 24U);
}

TEST_F(Tracefs, WhatIsMissingIsSaid) {
  EXPECT_TRUE(absl::IsNotFound(FindSchedulerTracepoints({root_}).status()));
  Put("sched_switch", Switch("int", 4));
  Put("sched_waking", Waking());
  Put("sched_migrate_task", Move());
  const auto other = FindSchedulerTracepoints({root_});
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status()));
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("prev_state"));
  Put("sched_switch", "no format\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(FindSchedulerTracepoints({root_}).status()));
}

}  // namespace
}  // namespace syncline::agent
