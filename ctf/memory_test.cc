// SPDX-License-Identifier: Apache-2.0
// How much memory a trace of many streams takes: the bounds of reader.h. Mapped files do not count.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ctf/generator.h"
#include "ctf/reader.h"

namespace syncline::ctf {
namespace {

constexpr size_t kStreams = 2048;
constexpr size_t kMiB = size_t{1} << 20;

// Bytes that malloc has handed out. Under a sanitizer it tells nothing, and nothing is tested.
size_t HeapBytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

class MemoryTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    path_ =
        std::filesystem::path(::testing::TempDir()) / ("memory_test_" + std::to_string(::getpid()));
    // More events in each stream than one batch holds.
    const auto written = GenerateTrace(
        path_,
        {.streams = kStreams, .events_per_stream = kBatchRecords + 100, .packet_bytes = 65536});
    ASSERT_TRUE(written.ok()) << written.status();
  }
  static void TearDownTestSuite() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  static std::filesystem::path path_;
};
std::filesystem::path MemoryTest::path_;

TEST_F(MemoryTest, ScanningTakesLittleMorePerStreamThanItsName) {
  ::mallopt(M_ARENA_MAX, 1);  // HeapBytes() knows of one; a sanitizer has none
  for (const size_t threads : {1, 4}) {
    const size_t before = HeapBytes();
    const auto reader = OpenTrace(path_).value();
    std::atomic<size_t> most = 0;
    std::atomic<uint64_t> events = 0;
    const auto visit = [&](EventCursor&, std::span<const EventRecord> records) {
      // Asking is slow, and the others wait for it.
      if ((events += records.size()) % 32 != 0) return absl::OkStatus();
      const size_t now = HeapBytes();
      for (size_t known = most; known < now && !most.compare_exchange_weak(known, now);) {
      }
      return absl::OkStatus();
    };
    const auto losses = reader->ScanShared(std::vector<TraceReader::Visit>(threads, visit));
    ASSERT_TRUE(losses.ok());
    EXPECT_EQ(events, kStreams * (kBatchRecords + 100));
    EXPECT_LT(most, before + (2 + 2 * threads) * kMiB + 512 * kStreams) << threads << " threads";
  }
}

TEST_F(MemoryTest, AllStreamsAtOnceStayBelowTheBound) {
  const size_t before = HeapBytes();
  const auto reader = OpenTrace(path_).value();
  std::vector<std::unique_ptr<EventCursor>> cursors;
  uint64_t events = 0;
  for (const StreamInfo& stream : reader->streams()) {
    cursors.push_back(reader->Open(stream.index).value());
    events += (*cursors.back()->NextBatch()).size();
  }
  EXPECT_GE(events, kStreams);  // every stream stands at events of its own
  EXPECT_LT(HeapBytes(), before + 64 * kMiB + 512 * kStreams);
}

}  // namespace
}  // namespace syncline::ctf
