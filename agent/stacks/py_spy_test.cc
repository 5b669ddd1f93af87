// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/py_spy.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// As py-spy 0.4 prints it.
constexpr char kPrinted[] = R"([
  {"pid": 12, "thread_id": 1, "thread_name": "helper", "os_thread_id": 13, "active": false,
   "owns_gil": false, "frames": [{"name": "inner", "filename": "/job/train.py", "module": null,
   "short_filename": "train.py", "line": 2, "locals": null}], "process_info": null},
  {"pid": 12, "thread_id": 2, "thread_name": "helper-2", "os_thread_id": 14, "active": false,
   "owns_gil": false, "frames": [{"name": "inner", "filename": "/job/train.py", "module": null,
   "short_filename": "train.py", "line": 2, "locals": null}], "process_info": null},
  {"pid": 12, "thread_id": 3, "thread_name": null, "os_thread_id": 12, "active": true,
   "owns_gil": true, "frames": [{"name": "f", "filename": "/job/train.py", "module": null,
   "short_filename": "train.py", "line": 5, "locals": null}], "process_info": null}])";

class PySpyTest : public testing::Test {
 protected:
  PySpyTest() {
    std::string pattern = testing::TempDir() + "py-spy-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~PySpyTest() override { std::filesystem::remove_all(directory_); }

  std::string Program(const std::string& text) {
    const std::filesystem::path path = directory_ / "py-spy";
    EXPECT_TRUE(WriteFileAtomically(path, "#!/bin/sh\n" + text, 0755).ok());
    return path.string();
  }

  std::filesystem::path directory_;
  v1::ProcessStacks stacks_;
};

TEST_F(PySpyTest, ThreadsAreFoldedAndTheMainOneIsFirst) {
  ASSERT_TRUE(ParsePySpy(kPrinted, 12, &stacks_).ok());
  ASSERT_EQ(stacks_.threads_size(), 2);
  EXPECT_TRUE(stacks_.threads(0).main());
  EXPECT_EQ(stacks_.threads(0).frames(0).line_number(), 5u);
  EXPECT_EQ(stacks_.threads(1).count(), 2u);
  EXPECT_THAT(stacks_.threads(1).names(), ElementsAre("helper", "helper-2"));
}

TEST_F(PySpyTest, ItIsRunOnTheProcess) {
  const std::string program = Program(
      "[ \"$RUST_LOG\" = off ] || echo 'WARN py_spy: something' >&2\n"
      "[ \"$*\" = 'dump --json --nonblocking --pid 12' ] && cat <<'END'\n" +
      std::string(kPrinted) + "\nEND\n");
  ASSERT_TRUE(AddPySpyThreads(program, 12, 5'000, &stacks_).ok());
  EXPECT_EQ(stacks_.threads_size(), 2);
}

TEST_F(PySpyTest, WhatItSaysWhenItFailsIsTheReason) {
  const auto refused =
      AddPySpyThreads(Program("echo 'Error: Permission denied'; exit 1\n"), 12, 5'000, &stacks_);
  EXPECT_THAT(refused.message(), HasSubstr("Permission denied"));
  EXPECT_TRUE(
      absl::IsNotFound(AddPySpyThreads((directory_ / "absent").string(), 12, 5'000, &stacks_)));
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(AddPySpyThreads(Program("exec sleep 60\n"), 12, 50, &stacks_)));
  EXPECT_FALSE(AddPySpyThreads(Program("echo nonsense\n"), 12, 5'000, &stacks_).ok());
  EXPECT_EQ(stacks_.threads_size(), 0);
}

}  // namespace
}  // namespace syncline::agent
