// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/trace_result.h"

#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/recording/trace_files.h"
#include "common/files.h"
#include "ctf/test_trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uint64_t kNonce = 0x1122334455667788;

// Every descriptor but those that are open is refused while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

class TraceResult : public testing::Test {
 protected:
  TraceResult() {
    std::string pattern = testing::TempDir() + "trace-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    directory_ = root_ / "trace/ust/uid/0/64-bit";
    EXPECT_TRUE(MakeDirectories(directory_ / "index").ok());
    const std::vector<uint8_t> packet =
        ctf::testing::PacketBuilder(100, 200).Number(150, 7).Close();
    Write("syncline_0", std::string(packet.begin(), packet.end()) +
                            std::string(reinterpret_cast<const char*>(&kNonce), sizeof kNonce));
    Write("index/syncline_0.idx", "index");
    Write("metadata", std::string(ctf::testing::kMetadata));
  }
  ~TraceResult() override { fs::remove_all(root_); }

  void Write(const char* name, const std::string& bytes) {
    EXPECT_TRUE(WriteFileAtomically(directory_ / name, bytes).ok());
  }
  v1::StopResponse Result(uint64_t events = 1) {
    v1::StopResponse response;
    response.set_complete(true);
    response.add_coverage()->set_events_count(events);
    AddTraceResult(root_, &response);
    return response;
  }

  fs::path root_;
  fs::path directory_;
};

TEST_F(TraceResult, AWholeTraceStaysComplete) {
  const v1::StopResponse response = Result();
  EXPECT_TRUE(response.complete());
  EXPECT_GT(response.bytes(), 0u);
  ASSERT_EQ(response.streams_size(), 1);
  EXPECT_EQ(response.streams(0).path(), "ust/uid/0/64-bit/syncline_0");
  EXPECT_TRUE(FindCanary(root_ / "trace", kNonce).ok());
}

// Seen with little shared memory: thousands of events, and nothing that says what they mean.
TEST_F(TraceResult, NothingIsCompleteWhoseMetadataIsMissingEmptyOrCut) {
  const std::string whole(ctf::testing::kMetadata);
  const std::string header = whole.substr(0, whole.find("stream {"));
  const std::string cut = whole.substr(0, whole.rfind("event {") + 20);
  for (const char* const fate : {"missing", "empty", "no stream", "cut", "not metadata"}) {
    SCOPED_TRACE(fate);
    fs::remove(directory_ / "metadata");
    if (std::string(fate) == "empty") Write("metadata", "");
    if (std::string(fate) == "no stream") Write("metadata", header);
    if (std::string(fate) == "cut") Write("metadata", cut);
    if (std::string(fate) == "not metadata") Write("metadata", "nothing of the kind");
    const v1::StopResponse response = Result();
    EXPECT_FALSE(response.complete());
    ASSERT_GE(response.complaints_size(), 1);
    EXPECT_THAT(response.complaints(0).what(), HasSubstr("their metadata"));
    ASSERT_EQ(response.streams_size(), 1) << "its bytes are there, and are fetched";
    EXPECT_GT(response.streams(0).bytes(), 0u);
    const absl::Status canaries = FindCanary(root_ / "trace", kNonce);
    EXPECT_EQ(canaries.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(canaries.message()), HasSubstr("could never be read"));
  }
}

TEST_F(TraceResult, EventsThatWereCountedAndAreNowhereMakeItIncomplete) {
  fs::remove_all(root_ / "trace");
  EXPECT_TRUE(Result(0).complete()) << "nothing was counted, nothing is missing";
  const v1::StopResponse response = Result(4100);
  EXPECT_FALSE(response.complete());
  EXPECT_THAT(response.complaints(0).what(), HasSubstr("counted 4100 events"));
}

TEST_F(TraceResult, WithoutDescriptorsThereIsAnErrorNotAnEmptyTrace) {
  v1::StopResponse response;
  response.set_complete(true);
  {
    const NoDescriptors none;
    EXPECT_EQ(DirectoryBytes(root_).status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ListFetchable(root_).status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(SummarizeTrace(root_ / "trace").status().code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(TraceContains(root_ / "trace", kNonce).status().code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(CheckMetadata(directory_).code(), absl::StatusCode::kResourceExhausted);
    AddTraceResult(root_, &response);
  }
  EXPECT_FALSE(response.complete());
  ASSERT_EQ(response.complaints_size(), 1);
  EXPECT_THAT(response.complaints(0).what(), HasSubstr("cannot tell what it has recorded"));
  EXPECT_THAT(response.complaints(0).fix(), HasSubstr("ulimit -n"));
}

TEST_F(TraceResult, WhatDoesNotExistIsEmpty) {
  EXPECT_EQ(DirectoryBytes(root_ / "none").value(), 0u);
  EXPECT_TRUE(ListFetchable(root_ / "none").value().empty());
  EXPECT_TRUE(SummarizeTrace(root_ / "none").value().streams.empty());
}

}  // namespace
}  // namespace syncline::agent
