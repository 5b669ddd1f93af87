// SPDX-License-Identifier: Apache-2.0
#include "agent/host/room.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class MemoryHeadroom : public testing::Test {
 protected:
  MemoryHeadroom() {
    std::string pattern = testing::TempDir() + "cgroup-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~MemoryHeadroom() override { std::filesystem::remove_all(root_); }

  void Put(const std::string& path, const std::string& text) {
    EXPECT_TRUE(MakeDirectories((root_ / path).parent_path()).ok());
    EXPECT_TRUE(WriteFileAtomically(root_ / path, text).ok());
  }
  void PutVersion1(const std::string& group, const std::string& limit, uint64_t used_mib) {
    Put(group + "/memory.limit_in_bytes", limit + "\n");
    Put(group + "/memory.usage_in_bytes", absl::StrCat(used_mib * kMiB, "\n"));
  }

  std::filesystem::path root_;
};

TEST_F(MemoryHeadroom, OfVersion1) {
  PutVersion1("memory", "9223372036854771712", 3000);
  PutVersion1("memory/job", absl::StrCat(100 * kMiB), 60);
  PutVersion1("memory/job/rank1", "9223372036854771712", 10);
  EXPECT_EQ(MemoryHeadroomBytes("5:cpu,cpuacct:/x\n4:memory:/job/rank1\n0::/\n", root_), 40 * kMiB);
  EXPECT_GT(MemoryHeadroomBytes("4:hugetlb,memory:/other\n", root_), uint64_t{1} << 60);
}

TEST_F(MemoryHeadroom, OfVersion2) {
  Put("memory.max", "max\n");
  Put("job/memory.max", absl::StrCat(100 * kMiB, "\n"));
  Put("job/memory.current", absl::StrCat(90 * kMiB, "\n"));
  EXPECT_EQ(MemoryHeadroomBytes("0::/job/rank1\n", root_), 10 * kMiB);
  EXPECT_EQ(MemoryHeadroomBytes("0::/other\n", root_), std::nullopt);
  EXPECT_EQ(MemoryHeadroomBytes("", root_), std::nullopt);
}

TEST_F(MemoryHeadroom, CachedFilesAreNotInTheWay) {
  Put("job/memory.max", absl::StrCat(100 * kMiB, "\n"));
  Put("job/memory.current", absl::StrCat(100 * kMiB, "\n"));
  Put("job/memory.stat", absl::StrCat("anon 5\ninactive_file ", 70 * kMiB, "\nactive_file 7\n"));
  EXPECT_EQ(MemoryHeadroomBytes("0::/job\n", root_), 70 * kMiB);
  PutVersion1("memory/job", absl::StrCat(50 * kMiB), 50);
  Put("memory/job/memory.stat", absl::StrCat("inactive_file 1\ntotal_inactive_file ", 20 * kMiB));
  EXPECT_EQ(MemoryHeadroomBytes("4:memory:/job\n0::/job\n", root_), 20 * kMiB);
}

}  // namespace
}  // namespace syncline::agent
