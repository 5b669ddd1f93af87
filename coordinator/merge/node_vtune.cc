// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/node_vtune.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "coordinator/merge/outputs.h"
#include "coordinator/merge/raw_clock.h"
#include "coordinator/recording/recording.h"
#include "vtune/commands.h"
#include "vtune/result_record.h"

namespace syncline::merge {
namespace {

constexpr uint64_t kRecordBytesMax = 1 << 20;

// The folders of a node's results, which are called like processes.
std::vector<int32_t> PidsOf(const std::filesystem::path& folder) {
  std::vector<int32_t> pids;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    int32_t pid = 0;
    if (absl::SimpleAtoi(it->path().filename().string(), &pid)) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::optional<analysis::VtuneDelay> DelayOf(const vtune::CommandRun& run, int64_t instant_ns) {
  if (run.begin_raw_ns == 0 || run.end_raw_ns == 0 || instant_ns == 0) return std::nullopt;
  return analysis::VtuneDelay{run.begin_raw_ns - instant_ns, run.end_raw_ns - instant_ns};
}

analysis::VtuneResult ResultOf(const vtune::ResultRecord& record, uint32_t node,
                               const recording::NodeRecord* instants) {
  analysis::VtuneResult result;
  result.process = {node, static_cast<uint64_t>(record.pid_namespace_inode), record.own_pid,
                    record.start_ticks};
  result.pid = record.pid;
  result.rank = record.rank;
  result.analysis = record.analysis;
  result.version = record.version;
  result.bytes = record.bytes;
  result.problem = record.problem;
  if (instants != nullptr) {
    result.resumed = DelayOf(record.resume, instants->start.requested_monotonic_raw_ns);
    result.stopped = DelayOf(record.stop, instants->stop.requested_monotonic_raw_ns);
  }
  // Where VTune did not say that it had begun: before it answered to the first command.
  const int64_t before_ns =
      record.ready_raw_ns != 0 ? record.ready_raw_ns : record.resume.end_raw_ns;
  if (record.collect.begin_raw_ns != 0 && before_ns != 0) {
    result.zero_after_raw_ns = record.collect.begin_raw_ns;
    result.zero_before_raw_ns = before_ns;
  }
  return result;
}

const recording::NodeRecord* RecordOf(const OpenedInputs& inputs, const std::string& name) {
  if (!inputs.recording.has_value()) return nullptr;
  for (const recording::NodeRecord& node : inputs.recording->nodes) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

std::string PathOf(const OpenedInputs& inputs, const analysis::VtuneResult& result) {
  return (inputs.run / result.path).lexically_normal().string();
}

}  // namespace

std::vector<analysis::VtuneResult> ReadVtuneResults(OpenedInputs* inputs) {
  std::vector<analysis::VtuneResult> results;
  if (inputs->run.empty()) return results;
  const recording::Layout layout(inputs->run);
  for (size_t i = 0; i < inputs->nodes.size(); ++i) {
    const std::string& node = inputs->nodes[i].name;
    for (const int32_t pid : PidsOf(layout.Node(node) / vtune::kFolder)) {
      const std::filesystem::path folder = layout.Node(node) / vtune::kFolder / absl::StrCat(pid);
      const auto text = ReadFile(folder / vtune::kRecordFile, kRecordBytesMax);
      const auto record = text.ok() ? vtune::ParseRecord(*text)
                                    : absl::StatusOr<vtune::ResultRecord>(text.status());
      if (!record.ok()) {
        inputs->complaints.push_back(absl::StrCat(node, ": vtune/", pid, "/", vtune::kRecordFile,
                                                  " is skipped: ", record.status().message()));
        continue;
      }
      analysis::VtuneResult& result = results.emplace_back(
          ResultOf(*record, static_cast<uint32_t>(i), RecordOf(*inputs, node)));
      std::error_code error;
      const std::filesystem::path kept = folder / vtune::kResultFolder;
      if (record->bytes > 0 && std::filesystem::is_directory(kept, error)) {
        result.path = kept.lexically_relative(inputs->run).string();
      }
    }
  }
  return results;
}

void PlaceVtuneSpans(const OpenedInputs& inputs, std::vector<analysis::VtuneResult>* results) {
  for (analysis::VtuneResult& result : *results) {
    const auto raw_ns = RawClockOf(inputs, result.process.node);
    if (raw_ns == nullptr || result.zero_after_raw_ns == 0) {
      result.spans.clear();
      continue;
    }
    for (analysis::VtuneSpan& span : result.spans) {
      span.since_begin_ns = std::max<int64_t>(0, raw_ns(span.begin) - result.zero_before_raw_ns);
      span.since_end_ns = std::max<int64_t>(0, raw_ns(span.end) - result.zero_after_raw_ns);
    }
  }
}

std::vector<std::string> VtuneImports(const OpenedInputs& inputs,
                                      const std::vector<analysis::VtuneResult>& results,
                                      const std::filesystem::path& out) {
  std::vector<std::string> lines;
  for (const analysis::VtuneResult& result : results) {
    if (result.path.empty()) continue;
    const std::filesystem::path csv = out / "vtune" / VtuneFileName(inputs, result.process.node);
    lines.push_back(absl::StrCat(
        "VTune shows these spans in its result with `",
        vtune::ImportText(csv.lexically_normal().string(), PathOf(inputs, result)), "`"));
  }
  return lines;
}

std::vector<std::string> VtuneOfRanks(const OpenedInputs& inputs,
                                      const std::vector<analysis::VtuneResult>& results,
                                      const std::vector<LateRank>& ranks) {
  std::vector<std::string> lines;
  for (const LateRank& rank : ranks) {
    for (const analysis::VtuneResult& result : results) {
      const std::string& node = inputs.nodes[result.process.node].name;
      const bool its = result.rank == rank.rank && (rank.node.empty() || rank.node == node) &&
                       (rank.pid == 0 || rank.pid == result.process.pid);
      if (!its || result.path.empty()) continue;
      const std::string path = PathOf(inputs, result);
      lines.push_back(absl::StrCat("rank ", rank.rank, " on ", node, ": VTune's ", result.analysis,
                                   " of it: `", vtune::FinalizeText(path), "`, then `",
                                   vtune::HotspotsText(path), "`"));
    }
  }
  return lines;
}

}  // namespace syncline::merge
