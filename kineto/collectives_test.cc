// SPDX-License-Identifier: Apache-2.0
#include "kineto/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kineto/trace.h"

namespace syncline::kineto {
namespace {

using testing::SizeIs;

std::string Event(const std::string& category, const std::string& name, int pid, int at_us,
                  int long_us, const std::string& arguments) {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "pid": )" +
         std::to_string(pid) + R"(, "tid": 7, "ts": )" + std::to_string(at_us) + R"(, "dur": )" +
         std::to_string(long_us) + R"(, "args": {)" + arguments + "}}";
}

std::vector<CollectiveKernel> KernelsOf(const std::vector<std::string>& events) {
  std::string text = R"({"baseTimeNanoseconds": 1790857026000000000, "traceEvents": [)";
  for (const std::string& event : events) {
    text += event + (&event == &events.back() ? "]}" : ",");
  }
  return Trace::Of(text, "rank0.json")->collective_kernels();
}

TEST(CollectiveKernelsTest, SaysAllThatTheFileSays) {
  const auto kernels =
      KernelsOf({Event("cpu_op", "record_param_comms", 9, 10, 20, R"("Collective name": "broadcast",
             "Rank": 1, "Seq": 12)"),
                 Event("cuda_runtime", "cudaLaunchKernel", 9, 15, 2, R"("correlation": 5)"),
                 Event("kernel", "ncclDevKernel_Broadcast", 0, 40, 7, R"("correlation": 5,
             "Collective name": "broadcast", "In msg nelems": 64, "Out msg nelems": 64,
             "Group size": 2, "dtype": "Float", "In split size": "[]", "Out split size": "[]",
             "Process Group Name": "0", "Process Group Description": "default_pg",
             "Process Group Ranks": "[0, 1]", "Seq": 12, "Comms Id": 17446744073709551615)"),
                 Event("kernel", "gemm", 0, 50, 7, R"("correlation": 6)")});
  ASSERT_THAT(kernels, SizeIs(1));
  const CollectiveKernel& kernel = kernels[0];
  EXPECT_EQ(kernel.begin_ns, 1790857026000040000);
  EXPECT_EQ(kernel.end_ns, 1790857026000047000);
  EXPECT_FALSE(kernel.before_launch);
  EXPECT_EQ(kernel.name, "broadcast");
  EXPECT_EQ(kernel.group, "0");
  EXPECT_EQ(kernel.description, "default_pg");
  EXPECT_EQ(kernel.ranks, "[0, 1]");
  EXPECT_EQ(kernel.comms_id, "17446744073709551615");
  EXPECT_EQ(kernel.dtype, "Float");
  EXPECT_EQ(kernel.in_splits, "[]");
  EXPECT_EQ(kernel.out_splits, "[]");
  EXPECT_EQ(kernel.sequence, 12);
  EXPECT_EQ(kernel.group_size, 2);
  EXPECT_EQ(kernel.in_elements, 64);
  EXPECT_EQ(kernel.out_elements, 64);
  EXPECT_EQ(kernel.root, 1);
  EXPECT_EQ(kernel.source, std::nullopt);
  EXPECT_EQ(kernel.destination, std::nullopt);
}

TEST(CollectiveKernelsTest, WhatItDoesNotSayIsNotGuessed) {
  // As PyTorch 2.11 writes it: no number. It begins before its launch.
  const auto kernels = KernelsOf(
      {Event("cpu_op", "c10d::allreduce_", 9, 10, 40, R"("Rank": 1)"),
       Event("cuda_runtime", "cudaLaunchKernel", 9, 45, 2, R"("correlation": 5)"),
       Event("kernel", "ncclDevKernel_AllReduce", 0, 40, 7, R"("correlation": 5,
             "Collective name": "allreduce", "Process Group Name": "0", "Dst Rank": 3)"),
       Event("cpu_op", "record_param_comms", 9, 60, 20, R"("Collective name": "allreduce")")});
  ASSERT_THAT(kernels, SizeIs(1));
  EXPECT_EQ(kernels[0].sequence, std::nullopt);
  EXPECT_EQ(kernels[0].comms_id, "");
  EXPECT_EQ(kernels[0].root, std::nullopt);
  EXPECT_EQ(kernels[0].destination, 3);
  EXPECT_TRUE(kernels[0].before_launch);
}

}  // namespace
}  // namespace syncline::kineto
