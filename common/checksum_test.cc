// SPDX-License-Identifier: Apache-2.0
#include "common/checksum.h"

#include <string>

#include "gtest/gtest.h"

namespace syncline {
namespace {

// Check values of RFC 3720, appendix B.4, and of the CRC catalogue ("123456789").
TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(Crc32c, GoesOnFromAnyPoint) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(
        Crc32c(std::string_view(text).substr(cut), Crc32c(std::string_view(text).substr(0, cut))),
        Crc32c(text));
  }
}

}  // namespace
}  // namespace syncline
