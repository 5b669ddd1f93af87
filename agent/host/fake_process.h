// SPDX-License-Identifier: Apache-2.0
// A process in a directory that stands for /proc, for tests.
#ifndef SYNCLINE_AGENT_HOST_FAKE_PROCESS_H_
#define SYNCLINE_AGENT_HOST_FAKE_PROCESS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "common/files.h"

namespace syncline::agent {

// Process 1234 of pid namespace 4026531836, which began at tick 5678: the one of
// control_block::MakeBlockBytes(). `state` as in its stat: 'S', 'T', 'Z'.
inline void AddFakeProcess(const std::filesystem::path& proc, char state, uint32_t uid,
                           int threads = 1) {
  const std::filesystem::path process = proc / "1234";
  std::filesystem::create_directories(process / "ns");
  std::filesystem::remove(process / "ns/pid");
  std::filesystem::create_symlink("pid:[4026531836]", process / "ns/pid");
  std::string stat = std::string("1234 (python (x)) ") + state;
  for (int field = 4; field <= 21; ++field)
    stat += field == 20 ? " " + std::to_string(threads) : " 0";
  const std::string user = std::to_string(uid);
  const std::string status = "Uid:\t" + user + "\t" + user + "\nNSpid:\t1234\n";
  EXPECT_TRUE(WriteFileAtomically(process / "stat", stat + " 5678 0\n").ok());
  EXPECT_TRUE(WriteFileAtomically(process / "status", status).ok());
}

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_HOST_FAKE_PROCESS_H_
