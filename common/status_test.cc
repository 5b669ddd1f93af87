// SPDX-License-Identifier: Apache-2.0
#include "common/status.h"

#include <cerrno>

#include "gtest/gtest.h"

namespace syncline {
namespace {

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("odd");
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  SYNCLINE_ASSIGN_OR_RETURN(const int half, Half(n));
  SYNCLINE_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

TEST(Status, AssignOrReturnPassesValuesAndErrors) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().message(), "odd");
}

TEST(Status, ContextKeepsTheCode) {
  const absl::Status status = WithContext(absl::NotFoundError("no file"), "node n3");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "node n3: no file");
  EXPECT_TRUE(WithContext(absl::OkStatus(), "x").ok());
}

TEST(Status, ErrnoTellsWhatTheCallerCanDo) {
  EXPECT_EQ(ErrnoStatus(ENOSPC, "write").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(ENOENT, "open").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace syncline
