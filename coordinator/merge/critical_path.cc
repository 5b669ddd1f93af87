// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/critical_path.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/merge/outputs.h"
#include "coordinator/merge/why.h"
#include "export/why/cut_names.h"

namespace syncline::merge {
namespace {

namespace why = analysis::why;
using timeline::FleetLane;
using timeline::FleetSpan;
using timeline::Moment;

constexpr char kGroup[] = "critical path";
constexpr char kCategory[] = "critical path";  // not that of the tasks that it is made of

absl::Status Unknown(const std::string& because) {
  return absl::InvalidArgumentError(
      absl::StrCat("--critical-path: it is not known: ", because,
                   ". Without this option the recording is merged as it is"));
}

class LaneMaker {
 public:
  explicit LaneMaker(const OpenedInputs& inputs) : inputs_(inputs) {}

  FleetLane Of(const why::Answer& answer) const {
    FleetLane lane{kGroup, "own work and collectives", {}};
    for (const why::PathPiece& piece : answer.path->pieces) {
      if (piece.end_ns == piece.begin_ns && piece.rank == piece.begin_rank) continue;
      const why::RankSummary& rank = answer.ranks[piece.rank];
      const why::RankSummary& begin_rank = answer.ranks[piece.begin_rank];
      FleetSpan span{
          At(begin_rank.node, piece.begin_ns), At(rank.node, piece.end_ns), "", kCategory, {}};
      if (piece.kind == why::PathPiece::Kind::kOwnWork) {
        span.name = absl::StrCat("rank ", rank.rank);
        span.numbers = PartsOf(piece);
      } else {
        span.name = piece.name;
        if (piece.kind == why::PathPiece::Kind::kCollective) {
          span.numbers.emplace_back("last to begin: rank", begin_rank.rank);
        }
        span.numbers.emplace_back("held up: rank", rank.rank);
      }
      if (piece.step >= 0) span.numbers.emplace_back("judged step", piece.step);
      lane.spans.push_back(std::move(span));
    }
    return lane;
  }

  FleetLane Of(const why::CutAnswer& answer) const {
    FleetLane lane{kGroup, "partitions and tensors", {}};
    const auto add = [&](const why::CutPathSpan& one, const std::string& begin_node,
                         std::string name) {
      const std::string& node = answer.partitions[one.partition].node;
      lane.spans.push_back({OnTimeline(begin_node, one.begin_ns),
                            OnTimeline(node, one.end_ns),
                            std::move(name),
                            kCategory,
                            {}});
    };
    const why::CutPathSpan* last = nullptr;
    for (const why::CutPathSpan& one : answer.path) {
      if (one.end_ns <= one.begin_ns) continue;
      const why::CutPartitionSummary& to = answer.partitions[one.partition];
      if (last != nullptr && last->end_ns < one.begin_ns) {
        add({last->end_ns, one.begin_ns, one.partition, {}, {}},
            answer.partitions[last->partition].node, "between steps");
      }
      last = &one;
      if (one.from.has_value()) {
        add(one, answer.partitions[*one.from].node, one.name);
      } else {
        add(one, to.node,
            absl::StrCat(report::TaskText(to.task), ": ",
                         one.name.empty() ? "executor" : one.name));
      }
    }
    return lane;
  }

 private:
  static std::vector<std::pair<std::string, int64_t>> PartsOf(const why::PathPiece& piece) {
    std::vector<std::pair<std::string, int64_t>> numbers;
    for (size_t part = 0; part < why::kParts; ++part) {
      if (piece.parts[part] == 0) continue;
      numbers.emplace_back(absl::StrCat(why::PartName(static_cast<why::Part>(part)), ", ns"),
                           piece.parts[part]);
    }
    return numbers;
  }

  size_t NodeOf(const std::string& name) const {
    const auto found =
        std::find_if(inputs_.nodes.begin(), inputs_.nodes.end(),
                     [&](const timeline::NodeInput& node) { return node.name == name; });
    return static_cast<size_t>(found - inputs_.nodes.begin());
  }

  Moment At(const std::string& node, int64_t clock_ns) const {
    timeline::Placement& placement = *inputs_.facts[NodeOf(node)].placement;
    return {{placement.clock(), clock_ns}, placement.At(clock_ns)};
  }

  Moment OnTimeline(const std::string& node, int64_t timeline_ns) const {
    timeline::Placement& placement = *inputs_.facts[NodeOf(node)].placement;
    return {{placement.clock(), placement.ClockNs({timeline_ns})}, {timeline_ns}};
  }

  const OpenedInputs& inputs_;
};

}  // namespace

absl::StatusOr<FleetLane> CriticalPathLane(const MergeOptions& options,
                                           const OpenedInputs& inputs) {
  if (!Wants(options, "perfetto") && !Wants(options, "chrome") && !Wants(options, "parquet")) {
    return absl::InvalidArgumentError(
        "--critical-path is drawn in perfetto, chrome and parquet: add one of them to --format");
  }
  if (options.input.align == Alignment::kWallClock) {
    return absl::InvalidArgumentError(
        "--critical-path goes by the clock model, not by wall clocks: leave --align out");
  }
  WhyOptions asked;
  asked.input = options.input;
  asked.job = options.job;
  asked.threads = options.threads;
  asked.progress = options.progress;
  SYNCLINE_ASSIGN_OR_RETURN(const WhyResult result, Explain(asked));
  const LaneMaker maker(inputs);
  if (result.devices.has_value()) return Unknown("this job computes on devices");
  if (result.answer.path.has_value()) return maker.Of(result.answer);
  if (result.cut.has_value()) {
    if (result.cut->refusal != why::CutRefusal::kNone) return Unknown(result.cut->refusal_text);
    return maker.Of(*result.cut);
  }
  if (result.answer.refusal != why::Refusal::kNone) return Unknown(result.answer.refusal_text);
  return Unknown(result.answer.path_unknown.empty()
                     ? "no rank waits for another one in a collective"
                     : result.answer.path_unknown);
}

}  // namespace syncline::merge
