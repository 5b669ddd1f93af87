// SPDX-License-Identifier: Apache-2.0
#include "ctf/byte_source.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "common/files.h"
#include "ctf/test_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::ctf {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBytes = 3 * AheadReader::kLargest + 77;

class ByteSourceTest : public testing::TraceDirectoryTest {
 protected:
  void SetUp() override {
    TraceDirectoryTest::SetUp();
    std::mt19937 random(7);
    std::generate(bytes_.begin(), bytes_.end(), [&] { return static_cast<char>(random()); });
    file_ = directory_ / "stream";
    ASSERT_TRUE(WriteFileAtomically(file_, bytes_).ok());
  }
  std::string At(uint64_t offset, size_t length) const {
    return offset < bytes_.size() ? bytes_.substr(offset, length) : "";
  }
  static std::string Text(const absl::StatusOr<std::span<const uint8_t>>& read) {
    return read.ok() ? std::string(read->begin(), read->end()) : read.status().ToString();
  }

  std::filesystem::path file_;
  std::string bytes_ = std::string(kBytes, '\0');
};

// Packets of all sizes, their neighbours' headers in between, as a walk reads them; and at random.
TEST_F(ByteSourceTest, WhatIsReadAheadIsTheFile) {
  AheadReader::Room room;
  for (const size_t packet :
       {size_t{100}, size_t{4096}, AheadReader::kAhead, AheadReader::kAhead + 9,
        AheadReader::kLargest, AheadReader::kLargest + 1}) {
    const auto source = AheadReader::Open(file_, &room);
    ASSERT_TRUE(source.ok());
    for (uint64_t at = 0; at < kBytes + 2; at += packet) {
      ASSERT_EQ(Text((*source)->Read(at, 512)), At(at, 512)) << at;
      ASSERT_EQ(Text((*source)->Read(at + packet, 512)), At(at + packet, 512)) << at;
      ASSERT_EQ(Text((*source)->Read(at + packet - 9, 9)), At(at + packet - 9, 9)) << at;
      ASSERT_EQ(Text((*source)->ReadPacket(at, packet)), At(at, packet)) << at;
    }
  }
  std::mt19937_64 random(11);
  const auto source = AheadReader::Open(file_, &room);
  ASSERT_TRUE(source.ok());
  for (int i = 0; i < 3000; ++i) {
    const uint64_t at = random() % kBytes;
    const size_t length = random() % (i % 8 == 0 ? AheadReader::kLargest * 5 / 4 : 3000);
    if (i % 3 == 0) {
      ASSERT_EQ(Text((*source)->Read(at, length)), At(at, length)) << at;
    } else if (i % 3 == 1) {
      ASSERT_EQ(Text((*source)->ReadPacket(at, length)), At(at, length)) << at;
    } else {
      std::vector<uint8_t> out(length);
      const absl::Status read = (*source)->ReadPacketInto(at, out);
      ASSERT_EQ(read.ok(), at + length <= kBytes) << read;
      if (read.ok()) {
        ASSERT_EQ(std::string(out.begin(), out.end()), At(at, length)) << at;
      }
    }
  }
}

TEST_F(ByteSourceTest, AFileThatShrinksIsAnErrorAndOneThatGrowsIsNot) {
  AheadReader::Room room;
  const auto before = AheadReader::Open(file_, &room);
  ASSERT_TRUE(before.ok());
  std::filesystem::resize_file(file_, 1000);
  EXPECT_EQ(Text((*before)->ReadPacket(0, 1000)).substr(0, 9), "DATA_LOSS");
  EXPECT_EQ(Text((*before)->Read(0, 1000)), At(0, 1000));
  const auto shrank = AheadReader::OfSize(file_, kBytes, &room);
  EXPECT_TRUE(absl::IsDataLoss(shrank.status()));
  EXPECT_THAT(shrank.status().message(), HasSubstr("shrank"));
  const auto grown = AheadReader::OfSize(file_, 600, &room);
  ASSERT_TRUE(grown.ok());
  EXPECT_EQ((*grown)->size(), 600U);
  EXPECT_EQ(Text((*grown)->ReadPacket(0, 1000)), At(0, 600));
}

}  // namespace
}  // namespace syncline::ctf
