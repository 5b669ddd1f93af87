// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_reader.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/host/fake_process.h"
#include "agent/probe/fake_clock.h"
#include "common/files.h"
#include "control_block/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::HasSubstr;

constexpr char kStem[] = "4026531836-1234-5678";

// One process with a control block, whose Python is `answers`.
class StackReaderTest : public testing::Test {
 protected:
  StackReaderTest() {
    std::string pattern = testing::TempDir() + "stacks-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    runtime_ = root_ / "runtime";
    EXPECT_TRUE(MakeDirectories(runtime_ / "stacks", 0700).ok());
    EXPECT_TRUE(MakeDirectories(root_ / "proc", 0700).ok());
    AddFakeProcess(root_ / "proc", 'S', ::geteuid());
    const std::vector<uint8_t> block = control_block::MakeBlockBytes();
    Write(runtime_ / absl::StrCat(kStem, ".block"), {block.begin(), block.end()});
    Write(runtime_ / absl::StrCat(kStem, ".names"), control_block::MakeNamesBytes({}));
    info_.set_pid(1234);
    info_.set_own_pid(1234);
    info_.set_pid_namespace_inode(4026531836);
    info_.set_start_ticks(5678);
    info_.set_uid(::geteuid());
    info_.set_rank(1);
    info_.add_sources("python");
    clock_.on_sleep = [this] {
      if (answers) answers(Asked());
    };
  }
  ~StackReaderTest() override { std::filesystem::remove_all(root_); }

  static void Write(const std::filesystem::path& path, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(path, text, 0600).ok()) << path;
  }
  std::filesystem::path AnswerFile() const {
    return runtime_ / "stacks" / absl::StrCat(kStem, ".stacks");
  }
  void Answer(uint32_t number, int line, int collective) const {
    Write(
        AnswerFile(),
        absl::StrCat(R"({"format_version": 1, "number": )", number, R"(, "begin_ns": )", begin_ns_,
                     R"(, "threads": [{"names": ["MainThread"], "count": 1, "main": true, )",
                     R"("frames": [["step", "train.py", )", line, R"(]]}], "groups": [{"name": )",
                     R"("0", "ranks": "0-1", "rank": 1, "backend": "gloo", )",
                     R"("sequence_number": 9, "collective_number": )", collective, "}]}"));
  }
  uint32_t Asked() const {
    const auto block =
        control_block::LiveBlock::Open(runtime_, {4026531836, 1234, 5678}, ::geteuid());
    return block.ok() ? block->Read()->gate.stacks_asked : 0;
  }
  v1::StacksResponse Read() {
    const RuntimeDirectories directories = [this] {
      return std::vector<std::pair<uint32_t, std::filesystem::path>>{{::geteuid(), runtime_}};
    };
    RankWatch ranks(directories, &clock_, {.proc = root_ / "proc"});
    StackReader reader([this](std::vector<v1::Complaint>*) { return std::vector{info_}; },
                       directories, &clock_, &ranks,
                       {.own_uid = ::geteuid(),
                        .proc = root_ / "proc",
                        .py_spy = (root_ / "py-spy").string(),
                        .answer_bytes_max = answer_bytes_max_,
                        .folder_entries_max = folder_entries_max_});
    const auto response = reader.Read({});
    EXPECT_TRUE(response.ok()) << response.status();
    return response.value_or(v1::StacksResponse());
  }

  std::filesystem::path root_;
  std::filesystem::path runtime_;
  v1::ProcessInfo info_;
  FakeClock clock_;
  int64_t begin_ns_ = 0;  // of the answers
  size_t answer_bytes_max_ = size_t{32} << 20;
  int folder_entries_max_ = kFolderEntriesMax;
  std::function<void(uint32_t number)> answers;
};

TEST_F(StackReaderTest, AProcessIsAskedTwice) {
  std::vector<uint32_t> numbers;
  answers = [&](uint32_t number) {
    if (number == 0 || (!numbers.empty() && numbers.back() == number)) return;
    numbers.push_back(number);
    Answer(number, 20 + static_cast<int>(number), 8);
  };
  const v1::StacksResponse response = Read();
  EXPECT_EQ(numbers, (std::vector<uint32_t>{1, 2}));
  ASSERT_EQ(response.processes_size(), 1);
  const v1::ProcessStacks& stacks = response.processes(0);
  EXPECT_EQ(stacks.source(), v1::ProcessStacks::HOOK);
  EXPECT_EQ(stacks.absence(), "");
  EXPECT_EQ(stacks.process().rank(), 1);
  EXPECT_TRUE(stacks.answered_twice());
  EXPECT_TRUE(stacks.main_thread_moved());
  EXPECT_EQ(stacks.threads(0).frames(0).line_number(), 22u);
  EXPECT_EQ(stacks.groups(0).first_look_collective_number(), 8);
  EXPECT_LT(response.asked_monotonic_ns(), response.first_look_end_monotonic_ns());
  EXPECT_GT(response.second_look_begin_monotonic_ns() - response.first_look_end_monotonic_ns(),
            1'900'000'000);
  EXPECT_LT(response.answered_monotonic_ns() - response.asked_monotonic_ns(), 2'200'000'000);
  EXPECT_FALSE(std::filesystem::exists(AnswerFile()));  // nothing is left of it
}

TEST_F(StackReaderTest, AnOldAnswerIsNone) {
  Answer(0, 1, 8);
  answers = [&](uint32_t) { Answer(77, 1, 8); };
  const v1::StacksResponse response = Read();
  EXPECT_THAT(response.processes(0).absence(), HasSubstr("did not answer within 1.5 s"));
}

TEST_F(StackReaderTest, AnAnswerToAnEarlierQuestionIsNone) {
  // Another agent's question may have had the same number. No time of another clock is compared.
  int64_t behind_ns = 1;
  answers = [&](uint32_t number) {
    begin_ns_ = clock_.MonotonicNs() - behind_ns;
    if (number != 0) Answer(number, 1, 8);
  };
  EXPECT_EQ(Read().processes(0).absence(), "");
  const auto own = std::filesystem::read_symlink("/proc/self/ns/time");
  std::filesystem::create_symlink(own, root_ / "proc/1234/ns/time");
  EXPECT_EQ(Read().processes(0).absence(), "");
  behind_ns = 3'000'000'000;
  EXPECT_THAT(Read().processes(0).absence(), HasSubstr("to an earlier question"));
  std::filesystem::remove(root_ / "proc/1234/ns/time");
  std::filesystem::create_symlink("time:[1]", root_ / "proc/1234/ns/time");
  EXPECT_EQ(Read().processes(0).absence(), "");
}

TEST_F(StackReaderTest, AnAnswerBeyondTheLimitIsNotSaidToBeMissing) {
  answers = [&](uint32_t number) { Answer(number, 1, 8); };
  answer_bytes_max_ = 100;
  const v1::StacksResponse response = Read();
  EXPECT_THAT(response.processes(0).absence(), HasSubstr("it answered, but"));
  EXPECT_EQ(response.processes(0).groups_size(), 0);
  EXPECT_LT(response.first_look_end_monotonic_ns() - response.asked_monotonic_ns(), 100'000'000);
}

TEST_F(StackReaderTest, WhatIsNoAnswerStaysInTheFolder) {
  const std::filesystem::path folder = runtime_ / "stacks";
  for (const char* name : {"notes", "my.stacks", "1-2.stacks", "1-2-3.block", "1-2-3.new"}) {
    Write(folder / name, "mine");
  }
  for (const char* name : {"1-2-3.stacks", "1-2-4.stacks.new"}) Write(folder / name, "");
  Read();
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    left.push_back(entry.path().filename());
  }
  EXPECT_THAT(left, testing::UnorderedElementsAre("notes", "my.stacks", "1-2.stacks", "1-2-3.block",
                                                  "1-2-3.new"));
}

TEST_F(StackReaderTest, AFolderThatIsTooFullToBeClearedIsSaidOnce) {
  for (int i = 0; i < 5; ++i) std::ofstream(runtime_ / "stacks" / absl::StrCat("mine-", i));
  folder_entries_max_ = 4;
  const v1::StacksResponse response = Read();
  ASSERT_EQ(response.complaints_size(), 1);
  EXPECT_THAT(response.complaints(0).what(), HasSubstr("has more than 4 files"));
}

TEST_F(StackReaderTest, AnAnswerIsReadOnce) {
  std::optional<StackFileVersion> seen;
  const auto read = [&] {
    return ReadStackFile(runtime_, ::geteuid(), {4026531836, 1234, 5678}, &seen).status().code();
  };
  EXPECT_EQ(read(), absl::StatusCode::kNotFound);
  Answer(1, 1, 8);
  EXPECT_EQ(read(), absl::StatusCode::kOk);
  EXPECT_EQ(read(), absl::StatusCode::kNotFound);
  Answer(1, 1, 88);
  EXPECT_EQ(read(), absl::StatusCode::kOk);
}

TEST_F(StackReaderTest, WithoutAnAnswerTheKernelIsAsked) {
  const std::filesystem::path task = root_ / "proc/1234/task/1234";
  EXPECT_TRUE(MakeDirectories(task, 0700).ok());
  Write(task / "stat", "1234 (python) D 1 1\n");
  const v1::StacksResponse response = Read();
  const v1::ProcessStacks& stacks = response.processes(0);
  EXPECT_EQ(stacks.source(), v1::ProcessStacks::KERNEL);
  EXPECT_THAT(stacks.absence(), HasSubstr("did not answer within 1.5 s"));
  EXPECT_EQ(stacks.py_spy_absence(), "py-spy is not installed");
  ASSERT_EQ(stacks.kernel_threads_size(), 1);
  EXPECT_EQ(stacks.kernel_threads(0).state(), "D");
  EXPECT_LT(response.answered_monotonic_ns() - response.asked_monotonic_ns(), 5'000'000'000);
}

TEST_F(StackReaderTest, PySpyIsAskedForOwnProcessesOnly) {
  EXPECT_TRUE(WriteFileAtomically(
                  root_ / "py-spy",
                  "#!/bin/sh\necho '[{\"thread_name\": \"MainThread\", \"frames\": []}]'\n", 0755)
                  .ok());
  info_.clear_sources();
  v1::StacksResponse response = Read();
  EXPECT_EQ(response.processes(0).source(), v1::ProcessStacks::PY_SPY);
  EXPECT_EQ(response.processes(0).threads_size(), 1);
  EXPECT_THAT(response.processes(0).absence(), HasSubstr("without Syncline's hook"));
  info_.set_uid(::geteuid() + 1);
  response = Read();
  EXPECT_EQ(response.processes(0).source(), v1::ProcessStacks::KERNEL);
  EXPECT_THAT(response.processes(0).py_spy_absence(), HasSubstr("own user"));
}

TEST_F(StackReaderTest, AProcessThatEndsMeanwhileIsSaidToHaveEnded) {
  answers = [&](uint32_t) { std::filesystem::remove_all(root_ / "proc/1234"); };
  EXPECT_EQ(Read().processes(0).absence(), "it has ended meanwhile");
}

TEST_F(StackReaderTest, AStoppedProcessIsNotWaitedFor) {
  info_.set_stopped(true);
  const v1::StacksResponse response = Read();
  EXPECT_EQ(Asked(), 0u);
  EXPECT_THAT(response.processes(0).absence(), HasSubstr("stopped"));
}

TEST_F(StackReaderTest, PlantedAnswersAreRefused) {
  const std::filesystem::path secret = root_ / "secret";
  Write(secret, R"({"format_version": 1, "number": 1})");
  answers = [&](uint32_t) {
    std::error_code error;
    std::filesystem::create_symlink(secret, AnswerFile(), error);
  };
  EXPECT_THAT(Read().processes(0).absence(), HasSubstr("did not answer"));
  EXPECT_TRUE(std::filesystem::exists(secret));
  answers = [&](uint32_t) { Write(AnswerFile(), std::string((256 << 10) + 1, ' ')); };
  EXPECT_THAT(Read().processes(0).absence(), HasSubstr("at most 262144 bytes"));
  answers = [&](uint32_t) { Write(AnswerFile(), "no JSON"); };
  EXPECT_THAT(Read().processes(0).absence(), HasSubstr("is not JSON"));
}

}  // namespace
}  // namespace syncline::agent
