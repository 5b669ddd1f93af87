// SPDX-License-Identifier: Apache-2.0
#include "timeline/testing/two_node_job.h"

#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "clocksync/builder.h"

namespace syncline::timeline::testing {
namespace {

void Task(int64_t begin_ns, int64_t end_ns, int name, int depth, std::string* begin,
          std::string* end) {
  const std::string fields = absl::StrCat(" thread=7 domain=1 name=", name, " depth=", depth, "\n");
  *begin = absl::StrCat(begin_ns, " syncline_itt:task_begin", fields);
  *end = absl::StrCat(end_ns, " syncline_itt:task_end", fields);
}

// A task and nothing within it.
std::string Leaf(int64_t begin_ns, int64_t end_ns, int name, int depth) {
  std::string begin;
  std::string end;
  Task(begin_ns, end_ns, name, depth, &begin, &end);
  return begin + end;
}

std::string Head(const char* node, int64_t zero_ns, int rank, const char* script) {
  return absl::StrCat("node ", node, " shift ", -zero_ns, "\nenv tracer_buffering_scheme uid\n",
                      "env tracer_buffering_id 0\nprocess key=1 uid=0 pid=10 pidns=5 ticks=7 rank=",
                      rank, " command=\"/usr/bin/python ", script, "\"\nthread 7 10 python\n");
}

std::string On(int64_t time_ns) {
  return absl::StrCat(time_ns,
                      " syncline:on generation=1 process=1 pid=+10 pidns=5 start_ticks=7\n");
}

std::string Off(int64_t time_ns, int64_t events) {
  return absl::StrCat(time_ns, " syncline:off generation=1 process=1 events=", events,
                      " lost=0 cost_ns=", events * 120, "\n");
}

}  // namespace

std::string TwoNodeJob() {
  const int64_t end_ns = kJobSteps * kJobStepNs;
  std::string text = absl::StrCat("window 0 ", end_ns, "\n");
  text += Head("master-0", kJobZeroNs, 0, "master.py --steps 20");
  text += "name 1 training\nname 2 train_step\nname 3 send\nname 4 receive\nstream syncline_0\n";
  text += On(kJobZeroNs + 50'000);
  for (int64_t step = 0; step < kJobSteps; ++step) {
    const int64_t at = kJobZeroNs + step * kJobStepNs + 200'000;
    std::string begin;
    std::string end;
    Task(at, at + 9'600'000, 2, 0, &begin, &end);
    text += begin + Leaf(at + 300'000, at + 1'500'000, 3, 1) +
            Leaf(at + 8'200'000, at + 9'300'000, 4, 1) + end;
  }
  text += Off(kJobZeroNs + end_ns + 10'000, kJobSteps * 6 + 2);

  const int64_t zero_ns = kJobZeroNs + kJobOffsetNs;
  text += Head("worker-0", zero_ns, 1, "worker.py");
  text +=
      "name 1 oneDNN\nname 2 convolution\nname 3 matmul\nname 4 inner_product\n"
      "stream syncline_0\n";
  text += On(zero_ns + 80'000);
  for (int64_t step = 0; step < kJobSteps; ++step) {
    const int64_t at = zero_ns + step * kJobStepNs + 2'000'000 + (step % 3) * 150'000;
    text += Leaf(at, at + 2'600'000, 2, 0) + Leaf(at + 2'700'000, at + 4'000'000, 3, 0) +
            Leaf(at + 4'100'000, at + 5'900'000, 4, 0);
  }
  text += Off(zero_ns + end_ns + 30'000, kJobSteps * 6 + 2);
  return text;
}

clocksync::ClockModel TwoNodeModel(int64_t delay_ns) {
  clocksync::BuildInput input;
  input.nodes = {"master-0", "worker-0"};
  clocksync::HostClocks master{"master-0", {}};
  clocksync::HostClocks worker{"worker-0", {}};
  clocksync::Edge edge{"master-0", "worker-0", {}};
  for (int64_t at = -100'000'000; at <= kJobSteps * kJobStepNs + 100'000'000; at += 10'000'000) {
    const int64_t here = kJobZeroNs + at;
    const int64_t there = here + kJobOffsetNs;
    // MONOTONIC reads as RAW does: the tests' traces are in MONOTONIC.
    master.tuples.push_back({here, here, here, here, here});
    worker.tuples.push_back({there, there, there, there, there});
    edge.samples.push_back(
        {here, there + delay_ns, there + delay_ns + 1'000, here + 2 * delay_ns + 1'000});
  }
  input.hosts = {master, worker};
  input.edges = {edge};
  clocksync::BuildOptions options;
  options.reference = "master-0";
  options.zero_reference_raw_ns = kJobZeroNs;
  auto result = clocksync::BuildModel(input, options);
  if (!result.ok()) {
    std::cerr << "TwoNodeModel: " << result.status() << "\n";
    std::abort();  // a test's own data are wrong
  }
  return std::move(result->model);
}

}  // namespace syncline::timeline::testing
