// SPDX-License-Identifier: Apache-2.0
// A planted /proc for tests: processes with TensorFlow in them and listening sockets.
#ifndef SYNCLINE_AGENT_TFPROFILER_FAKE_PROC_H_
#define SYNCLINE_AGENT_TFPROFILER_FAKE_PROC_H_

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"

namespace syncline::agent {

struct FakeProcess {
  int pid = 0;
  int own_pid = 1;
  uint64_t start_ticks = 1;
  int uid = 0;
  std::string library = "libtensorflow_cc.so.2";
  std::vector<std::pair<uint64_t, uint16_t>> sockets;  // inode, port on 127.0.0.1
  std::vector<std::string> threads;                    // their names
};

class FakeProc {
 public:
  FakeProc() {
    std::string pattern = testing::TempDir() + "proc-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~FakeProc() { std::filesystem::remove_all(root_); }
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;
  const std::filesystem::path& root() const { return root_; }

  // Replaces one of the same pid.
  void Add(const FakeProcess& process) {
    const std::filesystem::path directory = root_ / std::to_string(process.pid);
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory / "fd");
    std::filesystem::create_directories(directory / "net");
    std::ofstream(directory / "stat")
        << process.pid << " (python) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 "
        << process.start_ticks << " 0 0\n";
    std::ofstream(directory / "status") << "Uid:\t" << process.uid << "\t0\t0\t0\nNSpid:\t"
                                        << process.pid << "\t" << process.own_pid << "\n";
    std::ofstream(directory / "maps") << "7f00-7f01 r-xp 0 0:0 0 /opt/" << process.library << "\n";
    for (size_t i = 0; i < process.threads.size(); ++i) {
      const auto thread = directory / "task" / std::to_string(process.pid + i);
      std::filesystem::create_directories(thread);
      std::ofstream(thread / "comm") << process.threads[i] << "\n";
    }
    std::ofstream table(directory / "net" / "tcp");
    table << "  sl  local_address rem_address   st\n";
    for (size_t i = 0; i < process.sockets.size(); ++i) {
      const auto& [inode, port] = process.sockets[i];
      table << absl::StrFormat("%4d: 0100007F:%04X 00000000:0000 0A 0:0 0:0 0 0 0 %d 1\n", i, port,
                               inode);
      std::filesystem::create_symlink(absl::StrCat("socket:[", inode, "]"),
                                      directory / "fd" / std::to_string(i + 3));
    }
  }

 private:
  std::filesystem::path root_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_TFPROFILER_FAKE_PROC_H_
