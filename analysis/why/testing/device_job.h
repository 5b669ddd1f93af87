// SPDX-License-Identifier: Apache-2.0
// Made-up jobs on devices, whose ranks meet in a collective at the end of each step.
#ifndef SYNCLINE_ANALYSIS_WHY_TESTING_DEVICE_JOB_H_
#define SYNCLINE_ANALYSIS_WHY_TESTING_DEVICE_JOB_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/why/device_explain.h"
#include "analysis/why/device_model.h"
#include "timeline/device_work.h"

namespace syncline::analysis::why {

// A job of ranks that meet in one collective at the end of each step.
class DeviceJob {
 public:
  static constexpr int64_t kMs = 1'000'000;

  // What a rank's device does in a step, in order; ns.
  struct Step {
    int64_t computing = 20 * kMs;
    int64_t kernel = 2 * kMs;  // each
    int64_t loading = 0;       // before the first launch
    int64_t late_launch = 0;   // before the last kernel
    std::string collective = "allreduce";
    std::string grid = "[8, 1, 1]";
    int64_t busy_beside = 0;  // of the program, behind the last launch
    bool late_call = false;   // until the late launch the program is in a call of the runtime
    int64_t copy = 0;         // behind the computing, where a collective may hide it
    int64_t start = 0;        // of 8 short kernels there and of the first one: from launch to begin
    bool alone = false;       // in place of the collective a kernel computes
  };

  using Plan = std::function<Step(size_t rank, int step)>;

  DeviceJob(size_t ranks, int steps, const Plan& plan, int64_t transfer = 3 * kMs) {
    std::vector<timeline::DeviceWorkBuilder> builders(ranks);
    // Clocks that are far apart.
    std::vector<int64_t> at(ranks);
    for (size_t i = 0; i < ranks; ++i) at[i] = static_cast<int64_t>(i) * 77'000'000'000;
    for (int step = 0; step <= steps; ++step) {
      std::vector<int64_t> own(ranks);
      int64_t longest = 0;
      for (size_t i = 0; i < ranks; ++i) {
        const Step todo = plan(i, step);
        own[i] = todo.computing + todo.loading + todo.late_launch;
        longest = std::max(longest, own[i]);
      }
      for (size_t i = 0; i < ranks; ++i) {
        Make(plan(i, step), step, at[i], longest + transfer, &builders[i]);
        at[i] += longest + transfer;
      }
    }
    for (size_t i = 0; i < ranks; ++i) {
      devices_.push_back(builders[i].Take());
      given_.push_back({static_cast<int32_t>(i), "rank" + std::to_string(i),
                        static_cast<int32_t>(ranks), &devices_.back()});
    }
  }

  std::vector<DeviceRank>& ranks() { return given_; }
  std::list<timeline::ProcessDevices>& devices() { return devices_; }
  DeviceAnswer Explain() { return ExplainDevices(given_); }

  // A little noise that is not the same on any two ranks.
  static int64_t Noise(size_t rank, int step) {
    return static_cast<int64_t>((rank * 7919 + static_cast<size_t>(step) * 104729) % 101) * 1000;
  }

  static Step Healthy(size_t rank, int step) {
    Step todo;
    todo.computing += Noise(rank, step);
    return todo;
  }

 private:
  using Builder = timeline::DeviceWorkBuilder;

  static void Add(Builder* builder, std::string_view category, std::string_view name, int64_t begin,
                  int64_t end, std::optional<int64_t> launched = {}, std::string_view grid = {},
                  std::string_view collective = {}) {
    Builder::Event event;
    event.category = category;
    event.name = name;
    if (launched.has_value()) event.device = "GPU 0";
    event.collective = collective;
    event.grid = grid;
    if (!grid.empty()) event.block = "[128, 1, 1]";
    event.begin = {begin};
    event.end = {end};
    if (launched.has_value()) event.launched = TimelineTime{*launched};
    builder->OnEvent(event);
  }

  static void Make(const Step& todo, int step, int64_t begin, int64_t length, Builder* builder) {
    // A short kernel begins the step on the device; all else is launched behind what is waited for.
    Add(builder, "kernel", "first", begin, begin + 1000, begin, todo.grid);
    int64_t at = begin + 1000;
    if (todo.loading > 0) {
      Add(builder, "user_annotation", "enumerate(DataLoader)#_Iter.__next__", at,
          at + todo.loading);
      at += todo.loading;
    }
    const int64_t end = begin + todo.loading + todo.computing;
    int64_t launched = at;
    at += todo.start;
    while (at < end) {
      const int64_t next = std::min(end, at + todo.kernel);
      Add(builder, "kernel", "gemm", at, next, launched, todo.grid);
      at = next;
    }
    if (todo.copy > 0) Add(builder, "gpu_memcpy", "Memcpy HtoD", at, at + todo.copy, launched);
    for (int i = 0; i < 8 && todo.start > 0; ++i) {
      const int64_t short_at = at + i * (todo.start + 10'000);
      Add(builder, "kernel", "short", short_at + todo.start, short_at + todo.start + 10'000,
          short_at, todo.grid);
    }
    if (todo.late_launch > 0) {
      if (todo.late_call) {
        Add(builder, "cuda_runtime", "cudaFree", launched + 10'000, at + todo.late_launch);
      }
      at += todo.late_launch;
      launched = at;
    }
    Add(builder, "kernel", todo.alone ? "gemm" : "ncclDevKernel_AllReduce", at, begin + length,
        launched, {}, todo.collective);
    Add(builder, "cuda_runtime", "cudaStreamSynchronize",
        std::min(begin + length, launched + 10'000 + todo.busy_beside), begin + length);
    Add(builder, "user_annotation", "ProfilerStep#" + std::to_string(step), begin, begin + length);
  }

  std::list<timeline::ProcessDevices> devices_;
  std::vector<DeviceRank> given_;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_TESTING_DEVICE_JOB_H_
