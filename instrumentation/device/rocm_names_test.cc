// SPDX-License-Identifier: Apache-2.0
#include "instrumentation/device/rocm_names.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace {

std::string Kernel(uint64_t id) {
  char* const name = RocmNamesKernel(id);
  std::string text = name == nullptr ? "(unknown)" : name;
  std::free(name);
  return text;
}

std::string Device(uint64_t agent) {
  char text[64];
  RocmNamesDevice(agent, text, sizeof text);
  return text;
}

std::string Queue(uint64_t agent, uint64_t queue) {
  char text[64];
  RocmNamesQueue(agent, queue, text, sizeof text);
  return text;
}

TEST(RocmNames, KernelsWithoutTheEndOfTheirDescriptors) {
  EXPECT_EQ(Kernel(7), "(unknown)");
  RocmNamesAdd(7, "_Z5scalePf.kd");
  RocmNamesAdd(8, "plain");
  RocmNamesAdd(9, ".kd");
  EXPECT_EQ(Kernel(7), "_Z5scalePf");
  EXPECT_EQ(Kernel(8), "plain");
  EXPECT_EQ(Kernel(9), ".kd");
  RocmNamesAdd(7, "another");
  EXPECT_EQ(Kernel(7), "another");
}

TEST(RocmNames, ManyKernelsStayApart) {
  for (uint64_t i = 0; i < 20000; i++) {
    RocmNamesAdd(1000 + i, ("k" + std::to_string(i) + ".kd").c_str());
  }
  for (uint64_t i = 0; i < 20000; i++) {
    ASSERT_EQ(Kernel(1000 + i), "k" + std::to_string(i));
  }
  EXPECT_EQ(Kernel(999), "(unknown)");
}

TEST(RocmNames, DevicesAreCountedAsTheyCome) {
  RocmNamesAddDevice(900);
  RocmNamesAddDevice(300);
  EXPECT_EQ(Device(900), "GPU 0");
  EXPECT_EQ(Device(300), "GPU 1");
  EXPECT_EQ(Device(1), "unknown device");
}

TEST(RocmNames, QueuesAreCountedByDevice) {
  EXPECT_EQ(Queue(900, 41), "queue 1");
  EXPECT_EQ(Queue(300, 41), "queue 1");
  EXPECT_EQ(Queue(900, 17), "queue 2");
  EXPECT_EQ(Queue(900, 41), "queue 1");
  for (uint64_t i = 0; i < 2000; i++) Queue(900, 100 + i);
  EXPECT_EQ(Queue(900, 17), "queue 2");
  EXPECT_EQ(Queue(900, 100 + 1999), "further queues");
}

}  // namespace
