// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/outermost.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace syncline::analysis::why {
namespace {

enum Name : NameId {
  kNothing,
  kPyTorch,
  kDnnl,
  kForward,
  kLinear,
  kAddmm,
  kMatmul,
  kAccumulate,
  kAllReduce
};

JobInput Job(const std::string& detail) {
  JobInput job;
  job.detail = detail;
  job.names = {"",
               "PyTorch",
               "dnnl::primitive::execute",
               "DistributedDataParallel.forward",
               "aten::linear",
               "aten::addmm",
               "matmul",
               "torch::autograd::AccumulateGrad",
               "c10d::allreduce_"};
  job.ranks.resize(1);
  job.ranks[0].threads = {{1,
                           {{0, 100, kForward, kPyTorch},
                            {10, 40, kLinear, kPyTorch},
                            {12, 30, kAddmm, kPyTorch},
                            {14, 20, kMatmul, kDnnl},
                            {40, 50, kAddmm, kPyTorch},
                            {60, 70, kMatmul, kDnnl},
                            {110, 140, kAccumulate, kPyTorch},
                            {115, 125, kAllReduce, kPyTorch}}}};
  return job;
}

std::vector<int64_t> BeginsOf(const JobInput& job) {
  std::vector<int64_t> begins;
  for (const TaskSpan& span : job.ranks[0].threads[0].spans) begins.push_back(span.begin_ns);
  return begins;
}

TEST(KeepOutermost, OperatorsAndPrimitivesInsideOfOperatorsGo) {
  JobInput job = Job("normal");
  KeepOutermost(&job);
  EXPECT_EQ(BeginsOf(job), (std::vector<int64_t>{0, 10, 40, 60, 110, 115}));
}

TEST(KeepOutermost, WhatLiesInAContainerInAnOperatorStays) {
  JobInput job = Job("low");
  job.names.push_back("CheckpointFunctionBackward");
  job.names.push_back("autograd::engine::evaluate_function: AddmmBackward0");
  job.names.push_back("own");
  job.names.push_back("Trainer::step");
  job.ranks[0].threads = {{1,
                           {{0, 200, 12, 11},  // of the program: no operator, whatever its name
                            {0, 100, 9, kPyTorch},
                            {10, 50, 10, kPyTorch},
                            {12, 40, kLinear, kPyTorch},
                            {14, 30, kAddmm, kPyTorch},
                            {60, 70, kAddmm, kPyTorch},
                            {110, 120, kAddmm, kPyTorch}}}};
  KeepOutermost(&job);
  EXPECT_EQ(BeginsOf(job), (std::vector<int64_t>{0, 0, 10, 12, 110}));
}

TEST(KeepOutermost, WithFullDetailAllStays) {
  JobInput job = Job("full");
  KeepOutermost(&job);
  EXPECT_EQ(BeginsOf(job).size(), 8U);
}

}  // namespace
}  // namespace syncline::analysis::why
