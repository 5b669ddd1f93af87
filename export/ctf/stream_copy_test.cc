// SPDX-License-Identifier: Apache-2.0
// The two ways in which a packet is written again, on generated traces.
#include "export/ctf/stream_copy.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "clocksync/bounded_map.h"
#include "common/files.h"
#include "ctf/generator.h"

namespace syncline::ctf_export {
namespace {

using clocksync::FastMap;

// Bends every few thousand ns. Without lines every event goes the slow way.
class Bent final : public timeline::Placement {
 public:
  Bent(bool has_lines, int64_t piece_ns) : has_lines_(has_lines) {
    std::vector<FastMap::Point> points;
    int64_t y = -700;
    for (int64_t i = 0; i < 4000; ++i) {
      points.push_back({kBegin + i * piece_ns, y});
      y += piece_ns / 2 + i % 7 * piece_ns / 4;
    }
    map_ = FastMap(points);
  }

  TimelineTime At(int64_t clock_ns) override {
    ++asked_;
    const struct mallinfo2 info = ::mallinfo2();
    heap_bytes_max_ = std::max(heap_bytes_max_, info.uordblks + info.hblkhd);
    return {map_.At(clock_ns)};
  }
  std::optional<clocksync::ClockLine> LineAt(int64_t clock_ns) override {
    size_t segment = 0;
    return has_lines_ ? map_.LineAt(clock_ns, &segment) : std::nullopt;
  }
  std::optional<int64_t> BoundNs(int64_t) const override { return std::nullopt; }
  int64_t ClockNs(TimelineTime time) const override { return map_.Inverse(time.ns); }
  ClockId clock() const override { return {}; }

  uint64_t asked() const { return asked_; }
  size_t heap_bytes_max() const { return heap_bytes_max_; }

 private:
  static constexpr int64_t kBegin = 1'000'000'000;  // of generated traces
  bool has_lines_;
  FastMap map_;
  uint64_t asked_ = 0;
  size_t heap_bytes_max_ = 0;
};

class StreamCopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 ("stream_copy_test_" + std::to_string(::getpid()));
    std::filesystem::remove_all(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  CopyResult Copy(const std::string& out, timeline::Placement& placement,
                  const CopyOptions& options) {
    const auto copied = CopyTrace(directory_ / "in", directory_ / out, placement, options);
    EXPECT_TRUE(copied.ok()) << copied.status();
    return copied.value_or(CopyResult{});
  }

  std::filesystem::path directory_;
};

TEST_F(StreamCopyTest, WritingOverTimesIsTheSameAsWritingEveryEvent) {
  for (const uint32_t packet_bytes : {4096u, 65536u, 3u << 20}) {
    for (const int64_t piece_ns : {1'000, 50'000, 5'000'000}) {
      TearDown();
      const auto trace = ctf::GenerateTrace(
          directory_ / "in",
          {.streams = 2, .events_per_stream = 20'000, .packet_bytes = packet_bytes});
      ASSERT_TRUE(trace.ok());
      CopyOptions options{"node", "x", 1'700'000'000'000'000'000};
      for (const int64_t begin_ns : {kUnknownLo, int64_t{1'000'000}}) {
        options.window.begin.ns = begin_ns;
        options.window.end.ns = begin_ns == kUnknownLo ? kUnknownHi : 14'000'000;
        Bent with_lines(true, piece_ns);
        Bent without(false, piece_ns);
        const CopyResult copied = Copy("with", with_lines, options);
        EXPECT_EQ(copied.events, Copy("without", without, options).events);
        EXPECT_GT(copied.events, 1000u);
        EXPECT_GE(without.asked(), copied.events);
        if (packet_bytes == 4096) {
          EXPECT_LT(with_lines.asked(), copied.events / 4) << "no packet took the fast way";
        }
        for (const char* name : {"channel0_0", "channel0_1"}) {
          const auto expected = ReadFile(directory_ / "without" / name);
          ASSERT_TRUE(expected.ok());
          EXPECT_EQ(ReadFile(directory_ / "with" / name).value_or(""), *expected)
              << "packets of " << packet_bytes << " bytes, pieces of " << piece_ns << " ns";
        }
      }
    }
  }
}

TEST_F(StreamCopyTest, APacketTakesItsSizeInMemoryOnce) {
  constexpr size_t kMiB = size_t{1} << 20;
  const auto trace = ctf::GenerateTrace(
      directory_ / "in", {.streams = 1, .events_per_stream = 700'000, .packet_bytes = 24 * kMiB});
  ASSERT_TRUE(trace.ok());
  ASSERT_GE(trace->bytes, 20 * kMiB);
  for (const bool has_lines : {true, false}) {
    Bent placement(has_lines, 5'000'000);
    placement.At(0);
    const size_t before = placement.heap_bytes_max();
    EXPECT_EQ(Copy(has_lines ? "with" : "without", placement, {"node", "x"}).events, 700'000u);
    // Where nothing is counted (under a sanitizer), nothing is tested.
    EXPECT_LE(placement.heap_bytes_max(), before + 27 * kMiB);
  }
}

}  // namespace
}  // namespace syncline::ctf_export
