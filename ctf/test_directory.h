// SPDX-License-Identifier: Apache-2.0
// Test support: a trace as a directory, with a metadata file and room for packet indexes.
#ifndef SYNCLINE_CTF_TEST_DIRECTORY_H_
#define SYNCLINE_CTF_TEST_DIRECTORY_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ctf/test_trace.h"

namespace syncline::ctf::testing {

class TraceDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_ / "index");
    std::ofstream(directory_ / "metadata") << kMetadata;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::vector<uint8_t>& bytes) {
    std::ofstream(directory_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  std::filesystem::path directory_;
};

}  // namespace syncline::ctf::testing

#endif  // SYNCLINE_CTF_TEST_DIRECTORY_H_
