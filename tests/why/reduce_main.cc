// SPDX-License-Identifier: Apache-2.0
// why_reduce RUN STEPS: a recording's job as text, cut to so many steps, on standard output; what
// tests/golden/why is made of.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "analysis/why/testing/job_text.h"
#include "coordinator/merge/why.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: why_reduce RUN STEPS\n");
    return 2;
  }
  std::string text;
  syncline::merge::WhyOptions options;
  options.input.inputs = {argv[1]};
  const size_t steps = std::strtoul(argv[2], nullptr, 10);
  options.inspect = [&](const syncline::analysis::why::JobInput& job) {
    text = syncline::analysis::why::WriteJob(syncline::analysis::why::Reduced(job, steps).input);
  };
  const auto result = syncline::merge::Explain(options);
  if (!result.ok() || text.empty()) {
    std::fprintf(stderr, "why_reduce: %s: %s\n", argv[1],
                 result.ok() ? result->answer.refusal_text.c_str()
                             : std::string(result.status().message()).c_str());
    return 1;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}
