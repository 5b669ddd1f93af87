// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/files.h"
#include "coordinator/merge/merge.h"

namespace syncline::merge {
namespace {

using ::testing::HasSubstr;

constexpr char kLane[] = "GPU 0 · steps";

std::string TextOf(const std::filesystem::path& path) {
  const auto text = ReadFile(path, uint64_t{1} << 30);
  return text.ok() ? *text : "";
}

TEST(DeviceSteps, AreDrawnInOneFileAndInPieces) {
  MergeOptions options;
  options.input.inputs = {"tests/golden/pytorch_profiles"};
  options.out_dir = std::filesystem::path(::testing::TempDir()) / "device-steps";
  std::filesystem::remove_all(options.out_dir);
  const auto whole = Merge(options);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(TextOf(options.out_dir / "timeline.perfetto-trace"), HasSubstr(kLane));
  options.perfetto_bytes_max = 20'000;
  const auto pieces = Merge(options);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  EXPECT_THAT(TextOf(options.out_dir / "timeline.perfetto-trace"), HasSubstr(kLane));
  EXPECT_THAT(TextOf(options.out_dir / "timeline/001.perfetto-trace"), HasSubstr(kLane));
  std::filesystem::remove_all(options.out_dir);
}

}  // namespace
}  // namespace syncline::merge
