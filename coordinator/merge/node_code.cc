// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/node_code.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/merge/node_file.h"

namespace syncline::merge {
namespace {

constexpr NodeFile kFile = {evidence::kCodeFileName, "what the node's threads ran", "code samples"};

timeline::SampledStack StackOf(const evidence::CodeSamples& code,
                               const std::vector<uint32_t>& stack) {
  return {.frames = {stack.rbegin(), stack.rend()},
          .self = stack.size() - 1 - analysis::SelfOf(code, stack)};
}

timeline::SampledCode SeriesOf(const analysis::HotInput& input) {
  const evidence::CodeSamples& code = input.code;
  timeline::SampledCode series;
  series.period_ns = code.period_ns;
  for (const evidence::CodeFrame& frame : code.frames) {
    series.frames.push_back({.function = analysis::FrameName(code, frame),
                             .library = code.modules[frame.module],
                             .file = frame.file,
                             .line = frame.line});
  }
  for (const auto& stack : code.stacks) series.stacks.push_back(StackOf(code, stack));
  for (const evidence::CodeThread& thread : code.threads) {
    const ThreadKey key = analysis::KeyOf(input.node, code, thread);
    series.threads.push_back({key.process, key.tid, thread.name, {}});
  }
  for (const evidence::CodeSample& sample : code.samples) {
    if (!input.Counts(sample)) continue;
    series.threads[sample.thread].points.push_back({sample.at_ns, sample.stack});
  }
  for (timeline::SampledThread& thread : series.threads) {
    std::stable_sort(thread.points.begin(), thread.points.end(),
                     [](const timeline::SampledPoint& a, const timeline::SampledPoint& b) {
                       return a.clock_ns < b.clock_ns;
                     });
  }
  return series;
}

}  // namespace

std::vector<analysis::HotInput> ReadCodeSamples(timeline::Interval counted, OpenedInputs* inputs) {
  std::vector<analysis::HotInput> all;
  if (inputs->run.empty()) return all;
  for (size_t i = 0; i < inputs->nodes.size(); ++i) {
    auto code = ReadNodeFile(inputs->nodes[i].name, kFile, evidence::ParseCodeSamples, inputs);
    const timeline::Placement* placement = inputs->facts[i].placement;
    if (!code.has_value() || placement == nullptr) continue;
    analysis::HotInput& one = all.emplace_back();
    one.node = static_cast<uint32_t>(i);
    one.code = *std::move(code);
    one.begin_ns = placement->ClockNs(counted.begin);
    one.end_ns = placement->ClockNs(counted.end);
  }
  return all;
}

void DrawCodeSamples(const std::vector<analysis::HotInput>& samples, OpenedInputs* inputs) {
  for (const analysis::HotInput& input : samples) inputs->nodes[input.node].code = SeriesOf(input);
}

}  // namespace syncline::merge
