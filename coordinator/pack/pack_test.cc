// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/pack.h"

#include <archive.h>
#include <archive_entry.h>

#include <filesystem>
#include <map>
#include <string>

#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::pack {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::string_view kStream = "\xc1\x1f\xfc\xc1 the rest of a packet";

// Contents by name, as `tar x` would make them.
std::map<std::string, std::string> Unpack(const fs::path& file) {
  std::map<std::string, std::string> files;
  ::archive* const reader = ::archive_read_new();
  ::archive_read_support_filter_all(reader);
  ::archive_read_support_format_tar(reader);
  EXPECT_EQ(::archive_read_open_filename(reader, file.c_str(), 1 << 16), ARCHIVE_OK);
  ::archive_entry* entry = nullptr;
  while (::archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
    std::string bytes(static_cast<size_t>(::archive_entry_size(entry)), '\0');
    EXPECT_EQ(::archive_read_data(reader, bytes.data(), bytes.size()),
              static_cast<la_ssize_t>(bytes.size()));
    EXPECT_EQ(::archive_entry_uid(entry), 0);
    files[::archive_entry_pathname(entry)] = bytes;
  }
  ::archive_read_free(reader);
  return files;
}

class PackTest : public testing::Test {
 protected:
  void SetUp() override {
    recording::Recording recording;
    recording.recording_id = "20261121-093012-7f3a";
    recording::NodeRecord node;
    node.name = "n1";
    node.state = recording::NodeState::kComplete;
    recording.nodes.push_back(node);
    fs::create_directories(run_);
    ASSERT_TRUE(recording::WriteRecording(run_, recording).ok());
    Write("stacks.json", "{}");
    Write("clocks/models.json", "{}");
    Write("nodes/n1/node.json", "{\"hostname\": \"h\"}");
    Write("nodes/n1/trace/ust/uid/0/64-bit/metadata", "/* CTF 1.8 */");
    Write("nodes/n1/trace/ust/uid/0/64-bit/syncline_0", kStream);
    Write("nodes/n1/trace/ust/uid/0/64-bit/index/syncline_0.idx", "idx");
    Write("nodes/n1/processes/1-2-3.block", "block");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, std::string_view bytes) {
    fs::create_directories((run_ / path).parent_path());
    ASSERT_TRUE(WriteFileAtomically(run_ / path, bytes).ok());
  }

  PackOptions Options(const std::string& output = "sent.tar.gz") const {
    return {.run = run_, .output = root_ / output};
  }

  fs::path root_ =
      fs::temp_directory_path() / ("pack_test_" + std::to_string(::getpid()) + "_" +
                                   testing::UnitTest::GetInstance()->current_test_info()->name());
  fs::path run_ = root_ / "run-x";
};

TEST_F(PackTest, HoldsTheRecordingAsItIs) {
  for (const char* output : {"a.tar.gz", "a.tar.zst", "a.tgz"}) {
    const auto packed = Pack(Options(output));
    ASSERT_TRUE(packed.ok()) << packed.status();
    EXPECT_EQ(packed->files, 8u);
    EXPECT_EQ(packed->bytes, fs::file_size(root_ / output));
    EXPECT_THAT(packed->left_out, IsEmpty());
    const auto files = Unpack(root_ / output);
    EXPECT_EQ(files.size(), 8u);
    EXPECT_EQ(files.at("run-x/nodes/n1/trace/ust/uid/0/64-bit/syncline_0"), kStream);
    EXPECT_EQ(files.at("run-x/nodes/n1/node.json"), "{\"hostname\": \"h\"}");
    EXPECT_TRUE(files.contains("run-x/recording.json"));
    EXPECT_TRUE(files.contains("run-x/stacks.json"));
  }
}

TEST_F(PackTest, TheSameRecordingGivesTheSameBytes) {
  ASSERT_TRUE(Pack(Options("a.tar.gz")).ok());
  ASSERT_TRUE(Pack(Options("b.tar.gz")).ok());
  EXPECT_EQ(*ReadFile(root_ / "a.tar.gz"), *ReadFile(root_ / "b.tar.gz"));
}

TEST_F(PackTest, ResultsOfVtuneGoAlong) {
  Write("nodes/n1/vtune/17/syncline-vtune.json", "{}");
  Write("nodes/n1/vtune/17/result/data.0/trace", "t");
  const auto packed = Pack(Options());
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_THAT(packed->left_out, IsEmpty());
  EXPECT_EQ(Unpack(root_ / "sent.tar.gz").at("run-x/nodes/n1/vtune/17/result/data.0/trace"), "t");
}

TEST_F(PackTest, KeysAndForeignFilesStayOut) {
  Write("ca.key", "x");
  Write("nodes/n1/trace/ust/uid/0/64-bit/agent.key", "-----BEGIN PRIVATE KEY-----\nMII");
  Write("nodes/n1/agent.log", "read -----BEGIN CERTIFICATE-----\nMII");
  Write("nodes/n1/trace/core",
        "\x7f"
        "ELF");
  Write("nodes/n2/node.json", "of no node of this recording");
  Write("out/report.json", "derived");
  fs::create_symlink("/etc/hostname", run_ / "nodes/n1/processes/4-5-6.block");
  const auto packed = Pack(Options());
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_THAT(
      packed->left_out,
      ElementsAre(Field(&LeftOut::path, "ca.key"), Field(&LeftOut::path, "nodes/n1/agent.log"),
                  Field(&LeftOut::path, "nodes/n1/processes/4-5-6.block"),
                  Field(&LeftOut::path, "nodes/n1/trace/core"),
                  Field(&LeftOut::path, "nodes/n1/trace/ust/uid/0/64-bit/agent.key"),
                  Field(&LeftOut::path, "nodes/n2/node.json")));
  EXPECT_EQ(Unpack(root_ / "sent.tar.gz").size(), 8u);
}

TEST_F(PackTest, NeverReplacesAFile) {
  ASSERT_TRUE(WriteFileAtomically(root_ / "sent.tar.gz", "mine").ok());
  const auto packed = Pack(Options());
  EXPECT_EQ(packed.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*ReadFile(root_ / "sent.tar.gz"), "mine");
  EXPECT_THAT(std::string(Pack(Options("a.zip")).status().message()), HasSubstr(".tar.gz"));
}

TEST_F(PackTest, AnInterruptLeavesNothing) {
  std::stop_source stop;
  PackOptions options = Options();
  options.interrupt = stop.get_token();
  options.progress = [&](const Progress&) { stop.request_stop(); };
  EXPECT_EQ(Pack(options).status().code(), absl::StatusCode::kCancelled);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(root_)) left.push_back(entry.path().filename());
  EXPECT_THAT(left, UnorderedElementsAre("run-x"));
}

}  // namespace
}  // namespace syncline::pack
