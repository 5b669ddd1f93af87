// SPDX-License-Identifier: Apache-2.0
#include "agent/host/process_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "agent/host/fake_process.h"

namespace syncline::agent {
namespace {

TEST(ProcessTable, AProcessIsAsOldAsTheMachineSays) {
  std::string pattern = testing::TempDir() + "proc-XXXXXX";
  const std::filesystem::path proc = ::mkdtemp(pattern.data());
  AddFakeProcess(proc, 'S', 0);
  const auto entry = ReadProcess(proc, 1234);
  ASSERT_TRUE(entry.has_value());
  EXPECT_FALSE(AgeSeconds(proc, *entry).has_value());
  const double begun = 5678.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  ASSERT_TRUE(WriteFileAtomically(proc / "uptime", std::to_string(begun + 2) + " 9.00\n").ok());
  EXPECT_NEAR(AgeSeconds(proc, *entry).value_or(0), 2, 0.01);
  std::filesystem::remove_all(proc);
}

}  // namespace
}  // namespace syncline::agent
