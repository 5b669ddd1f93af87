// SPDX-License-Identifier: Apache-2.0
// syncline selftest: whether the verdict is right on this machine, or on a fleet: it delays one
// rank of a small job and shifts one node's clock, both by known times, and checks what is found.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/duration_text.h"
#include "common/files.h"
#include "common/status.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"
#include "coordinator/cli/environment.h"
#include "coordinator/cli/parse.h"
#include "coordinator/cli/record_run.h"
#include "coordinator/cli/run.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/merge/merge.h"
#include "coordinator/merge/why.h"
#include "coordinator/selftest/checks.h"
#include "coordinator/selftest/demo_job.h"
#include "coordinator/selftest/shifted_clock.h"
#include "export/why/labelled_text.h"

namespace syncline::cli {
namespace {

using analysis::why::Answer;
using selftest::Check;
using selftest::State;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kShortestNs = 5 * kSecondNs;
constexpr int64_t kLongestNs = 120 * kSecondNs;
constexpr int64_t kDelayMaxNs = kSecondNs;
constexpr int64_t kWindowDelays = 120;  // 60 steps of which the delay is half
// `why` wants 95 % of the window of each rank, and a wrong clock moves the window.
constexpr int64_t kShiftMaxNs = 100'000'000;
constexpr uint64_t kWarmSteps = 60;
constexpr uint64_t kChangedSteps = 40;  // more than are under way when the delay begins
constexpr const char* kJob = "selftest";

struct SelftestArguments {
  std::vector<std::string> recordings;  // none, or without the delay and with it
  std::string delay = "20ms";
  int32_t late_rank = selftest::kDemoRanks - 1;
  std::string shift = "1ms";
  std::string window = "10s";
  std::string directory;
  std::string python = "python3";
  bool json = false;
  bool records = false;  // an option was given that is of no use with recordings
};

// What was done, and to which recordings.
struct Trial {
  selftest::Delay delay;
  int64_t shift_ns = 0;
  std::filesystem::path healthy;
  std::filesystem::path delayed;
  std::string shifted_node;  // empty: no clock was shifted
};

absl::StatusOr<int64_t> Within(const char* option, const std::string& text, int64_t least_ns,
                               int64_t most_ns) {
  SYNCLINE_ASSIGN_OR_RETURN(const int64_t ns, ParseDuration(text));
  if (ns >= least_ns && ns <= most_ns) return ns;
  return absl::InvalidArgumentError(absl::StrCat(option, " takes ", DurationText(least_ns), " to ",
                                                 DurationText(most_ns), ", not ", text));
}

absl::StatusOr<Answer> AnswerOf(const std::filesystem::path& run) {
  merge::WhyOptions options;
  options.input.inputs = {run.string()};
  options.job = kJob;
  absl::StatusOr<merge::WhyResult> result = merge::Explain(options);
  if (!result.ok()) return WithContext(result.status(), run.string());
  if (!result->devices.has_value() && !result->cut.has_value()) return std::move(result->answer);
  return absl::InvalidArgumentError(
      absl::StrCat("\"", run.string(), "\" is no recording of this test's job"));
}

absl::StatusOr<analysis::Report> ReportOf(const std::filesystem::path& run) {
  merge::ReportOptions options;
  options.input.inputs = {run.string()};
  return merge::MakeReport(options);
}

// The delayed rank's node, or another one where that is the timeline's reference; empty: there is
// one node.
std::string NodeToShift(const analysis::Report& report, const Answer& answer, int32_t late_rank) {
  std::string node;
  for (const analysis::why::RankSummary& rank : answer.ranks) {
    if (rank.node == report.reference) continue;
    if (node.empty() || rank.rank == late_rank) node = rank.node;
  }
  return node;
}

absl::StatusOr<std::vector<Check>> CheckClock(const Answer& delayed, Trial* trial) {
  SYNCLINE_ASSIGN_OR_RETURN(const analysis::Report before, ReportOf(trial->delayed));
  const std::string node = NodeToShift(before, delayed, trial->delay.rank);
  if (node.empty()) return std::vector<Check>();
  trial->shifted_node = node;
  SYNCLINE_ASSIGN_OR_RETURN(const selftest::ScratchDirectory scratch,
                            selftest::ScratchDirectory::Make());
  const std::filesystem::path copy = scratch.path() / "run";
  SYNCLINE_RETURN_IF_ERROR(
      selftest::CopyWithShiftedClock(trial->delayed, node, trial->shift_ns, copy));
  SYNCLINE_ASSIGN_OR_RETURN(const analysis::Report after, ReportOf(copy));
  SYNCLINE_ASSIGN_OR_RETURN(const Answer shifted, AnswerOf(copy));
  return selftest::CheckShift(selftest::SightOf(before, node), selftest::SightOf(after, node),
                              trial->shift_ns, delayed, shifted);
}

// Of one run of the job, in which the delayed rank takes part.
absl::Status CheckSameRun(const Answer& healthy, const Answer& delayed, int32_t late_rank) {
  using Ranks = std::map<int32_t, std::pair<std::string, int32_t>>;
  const auto ranks_of = [](const Answer& answer) {
    Ranks ranks;
    for (const auto& rank : answer.ranks) ranks[rank.rank] = {rank.node, rank.pid};
    return ranks;
  };
  const Ranks before = ranks_of(healthy);
  const Ranks after = ranks_of(delayed);
  if (!after.empty() && !after.contains(late_rank)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--late-rank ", late_rank, ": the recording has no such rank"));
  }
  if (before.empty() || after.empty() || before == after) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the two recordings are not of one run of the job: their ranks are other processes");
}

absl::StatusOr<std::vector<Check>> CheckAll(const Context& context, Trial* trial) {
  PrintNote(context, "note", "", "reading both recordings", "");
  const auto interrupted = [&] {
    return context.interrupts->First().stop_requested()
               ? absl::CancelledError("interrupted: nothing was judged")
               : absl::OkStatus();
  };
  SYNCLINE_ASSIGN_OR_RETURN(const Answer healthy, AnswerOf(trial->healthy));
  SYNCLINE_RETURN_IF_ERROR(interrupted());
  SYNCLINE_ASSIGN_OR_RETURN(const Answer delayed, AnswerOf(trial->delayed));
  SYNCLINE_RETURN_IF_ERROR(interrupted());
  SYNCLINE_RETURN_IF_ERROR(CheckSameRun(healthy, delayed, trial->delay.rank));
  std::vector<Check> checks = selftest::CheckDelay(healthy, delayed, trial->delay);
  const bool answered = delayed.refusal == analysis::why::Refusal::kNone;
  if (answered) {
    SYNCLINE_ASSIGN_OR_RETURN(std::vector<Check> clock, CheckClock(delayed, trial));
    SYNCLINE_RETURN_IF_ERROR(interrupted());
    for (Check& check : clock) checks.push_back(std::move(check));
  }
  selftest::Complete(!answered ? "there is no answer with the delay"
                     : trial->shifted_node.empty()
                         ? "all ranks are on one node, which has one clock; `fab selftest` tests "
                           "clocks on the nodes of a fleet"
                         : "what it rests on is not there",
                     &checks);
  return checks;
}

const char* Word(State state) {
  switch (state) {
    case State::kPassed:
      return "passed";
    case State::kFailed:
      return "FAILED";
    case State::kUndecided:
      return "undecided";
    case State::kNotTested:
      return "not tested";
  }
  return "";
}

// What a check is called for people.
std::string Label(const std::string& name) {
  if (name == "nobody") return "NOBODY";
  if (name == "who") return "WHO";
  if (name == "cause") return "CAUSE";
  if (name == "amount") return "AMOUNT";
  if (name == "cost") return "COST";
  if (name == "clock_noticed") return "CLOCK";
  if (name == "clock_bound") return "BOUND";
  return "VERDICT";
}

std::string Text(const Context& context, const std::vector<Check>& checks, const Trial& trial) {
  report::LabelledText text(AnswerWidth(), context.ColourOut());
  text.Line(absl::StrCat(
      "rank ", trial.delay.rank, " was delayed by ", DurationText(trial.delay.delay_ns), " a step",
      trial.shifted_node.empty() ? ""
                                 : absl::StrCat(", and in a copy the clock of ", trial.shifted_node,
                                                " was shifted by ", DurationText(trial.shift_ns)),
      ":"));
  text.Blank();
  for (const Check& check : checks) {
    text.Say(Label(check.name), absl::StrCat(Word(check.state), ": ", Printable(check.text)));
  }
  text.Blank();
  size_t counts[4] = {};
  for (const Check& check : checks) ++counts[static_cast<size_t>(check.state)];
  text.Line(absl::StrCat(counts[0], " passed, ", counts[1], " failed, ", counts[2], " undecided, ",
                         counts[3], " not tested"));
  text.Line(absl::StrCat("recordings: ", Printable(trial.healthy.string()), ", ",
                         Printable(trial.delayed.string())));
  return text.Take();
}

std::string Json(const std::vector<Check>& checks, const Trial& trial) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    rows.push_back({{"name", check.name},
                    {"state", selftest::StateJsonName(check.state)},
                    {"text", check.text}});
  }
  const nlohmann::ordered_json all = {
      {"format_version", 1},
      {"state", selftest::StateJsonName(selftest::Overall(checks))},
      {"delay", {{"rank", trial.delay.rank}, {"ns", trial.delay.delay_ns}}},
      {"shift", trial.shifted_node.empty()
                    ? nlohmann::ordered_json()
                    : nlohmann::ordered_json{{"node", trial.shifted_node}, {"ns", trial.shift_ns}}},
      {"recordings", {{"healthy", trial.healthy.string()}, {"delayed", trial.delayed.string()}}},
      {"checks", rows}};
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int Judge(const Context& context, const SelftestArguments& arguments, Trial trial) {
  const absl::StatusOr<std::vector<Check>> checks = CheckAll(context, &trial);
  if (!checks.ok()) return Fail(context, checks.status());
  *context.out << (arguments.json ? Json(*checks, trial) : Text(context, *checks, trial));
  switch (selftest::Overall(*checks)) {
    case State::kPassed:
      return kDone;
    case State::kFailed:
      return kFailed;
    default:
      return kIncomplete;
  }
}

absl::StatusOr<selftest::DemoPlace> PlaceOf(const SelftestArguments& arguments,
                                            const std::filesystem::path& directory) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::filesystem::path libraries, OwnLibraryDirectory());
  std::error_code error;
  selftest::DemoPlace place{.syncline = std::filesystem::read_symlink("/proc/self/exe", error),
                            .job = libraries / "syncline-selftest" / "train.py",
                            .directory = std::filesystem::absolute(directory),
                            .python = arguments.python,
                            .environment = CurrentEnvironment()};
  if (std::filesystem::exists(place.job, error)) return place;
  return absl::NotFoundError(absl::StrCat("\"", place.job.string(),
                                          "\" is missing: this Syncline is not installed whole"));
}

// Only this machine's agent: on other nodes somebody has to start the job.
absl::Status CheckLocal(const Context& context) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::vector<hosts::Node> nodes, Targets(context));
  const bool local = nodes.size() == 1 && context.local_node.has_value() &&
                     nodes[0].socket_path == context.local_node->socket_path;
  if (local) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "`syncline selftest` starts its job on this machine only: -H local. On other nodes\n"
      "`fab selftest` starts it, records and calls `syncline selftest HEALTHY DELAYED`");
}

absl::Status MakeTrial(const Context& context, const SelftestArguments& arguments,
                       int64_t window_ns, const std::filesystem::path& directory, Trial* trial) {
  std::error_code error;
  for (const char* name : {"healthy", "delayed"}) {
    if (!std::filesystem::exists(directory / name, error)) continue;
    return absl::FailedPreconditionError(absl::StrCat("\"", (directory / name).string(),
                                                      "\" is there already: choose another --out"));
  }
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(directory));
  SYNCLINE_ASSIGN_OR_RETURN(const selftest::DemoPlace place, PlaceOf(arguments, directory));
  SYNCLINE_ASSIGN_OR_RETURN(selftest::DemoJob job, selftest::DemoJob::Start(place));
  const std::stop_token stop = context.interrupts->First();
  PrintNote(context, "note", "",
            absl::StrFormat("two ranks train on this machine; recorded for %s without and for %s "
                            "with a delay of rank %d",
                            DurationText(window_ns), DurationText(window_ns), trial->delay.rank),
            "");
  SYNCLINE_RETURN_IF_ERROR(job.AwaitSteps(kWarmSteps, context.clock, stop));
  const auto record = [&](const char* name) -> absl::StatusOr<std::filesystem::path> {
    auto made =
        RecordFor(context, {.window_ns = window_ns, .directory = (directory / name).string()});
    if (made.ok() && stop.stop_requested()) {
      return absl::CancelledError("interrupted: the test's job was ended, nothing was judged");
    }
    return made;
  };
  SYNCLINE_ASSIGN_OR_RETURN(trial->healthy, record("healthy"));
  SYNCLINE_RETURN_IF_ERROR(job.Apply(trial->delay));
  SYNCLINE_RETURN_IF_ERROR(job.AwaitSteps(kChangedSteps, context.clock, stop));
  SYNCLINE_ASSIGN_OR_RETURN(trial->delayed, record("delayed"));
  return absl::OkStatus();
}

absl::Status CheckArguments(const SelftestArguments& arguments) {
  if (arguments.recordings.size() == 1 || arguments.recordings.size() > 2) {
    return absl::InvalidArgumentError(
        "selftest takes two recordings of its job, without the delay and with it, or none");
  }
  if (!arguments.recordings.empty() && arguments.records) {
    return absl::InvalidArgumentError("--for, --out and --python are of no use with recordings");
  }
  if (arguments.recordings.empty() &&
      (arguments.late_rank < 0 || arguments.late_rank >= selftest::kDemoRanks)) {
    return absl::InvalidArgumentError("--late-rank is 0 or 1: this machine's job has two ranks");
  }
  return absl::OkStatus();
}

int Selftest(const Context& context, const SelftestArguments& arguments) {
  absl::Status status = CheckArguments(arguments);
  if (!status.ok()) return Fail(context, status);
  const auto delay_ns = Within("--delay", arguments.delay, 1'000'000, kDelayMaxNs);
  if (!delay_ns.ok()) return Fail(context, delay_ns.status());
  const auto shift_ns = Within("--shift", arguments.shift, 1'000, kShiftMaxNs);
  if (!shift_ns.ok()) return Fail(context, shift_ns.status());
  Trial trial{.delay = {arguments.late_rank, *delay_ns}, .shift_ns = *shift_ns};
  if (!arguments.recordings.empty()) {
    trial.healthy = arguments.recordings[0];
    trial.delayed = arguments.recordings[1];
    return Judge(context, arguments, trial);
  }
  const auto window_ns = Within("--for", arguments.window, kShortestNs, kLongestNs);
  if (!window_ns.ok()) return Fail(context, window_ns.status());
  if (*window_ns < kWindowDelays * *delay_ns) {
    return Fail(context, absl::InvalidArgumentError(absl::StrCat(
                             "a verdict wants 60 steps, each longer than --delay: --for ",
                             (kWindowDelays * *delay_ns + kSecondNs - 1) / kSecondNs,
                             "s, or a shorter --delay")));
  }
  status = CheckLocal(context);
  if (!status.ok()) return Fail(context, status);
  const std::string directory =
      !arguments.directory.empty()
          ? arguments.directory
          : absl::StrCat("selftest-", absl::FormatTime("%Y%m%d-%H%M%S",
                                                       absl::FromUnixNanos(context.clock->UnixNs()),
                                                       absl::LocalTimeZone()));
  status = MakeTrial(context, arguments, *window_ns, directory, &trial);
  if (!status.ok()) return Fail(context, status);
  return Judge(context, arguments, trial);
}

}  // namespace

void RegisterSelftest(CLI::App* app, Context* context) {
  CLI::App* const command = app->add_subcommand(
      "selftest", "Delay a rank and shift a clock by known times; check that both are found");
  const auto arguments = std::make_shared<SelftestArguments>();
  command
      ->add_option("RECORDING", arguments->recordings,
                   "Two recordings of the test's job, without the delay and with it. Without them\n"
                   "the job is started on this machine and recorded")
      ->check(IsGiven);
  command->add_option("--delay", arguments->delay, "By how much one rank is delayed, each step")
      ->capture_default_str();
  command->add_option("--late-rank", arguments->late_rank, "Which rank is delayed")
      ->capture_default_str();
  command
      ->add_option("--shift", arguments->shift,
                   "By how much one node's clock samples are shifted, in a copy")
      ->capture_default_str();
  command->add_option("--for", arguments->window, "How long each of the two recordings is")
      ->capture_default_str();
  command
      ->add_option("--out", arguments->directory,
                   "Directory of the recordings and logs (default: selftest-DATE-TIME)")
      ->check(IsGiven);
  command->add_option("--python", arguments->python, "A Python that has PyTorch")
      ->capture_default_str()
      ->check(IsGiven);
  command->add_flag("--json", arguments->json, "As JSON (docs/selftest.md)");
  command->footer(
      "Two ranks of a small PyTorch job train on this machine, over Gloo. They are recorded\n"
      "once as they are, and once while the data loader of one of them takes --delay longer.\n"
      "`syncline why` must name nobody in the first recording, and in the second that rank, for\n"
      "its input, with that time. With ranks on several nodes all clock samples of one node are\n"
      "then shifted by --shift, in a copy: the wrong clock must be noticed, the bound must still\n"
      "hold the truth, and the verdict must stay the same. On a fleet: fab selftest.\n"
      "The job ends with this command; the recordings are kept.\n"
      "Exit code 0: all that was tested passed; 1: something failed, or the test could not be\n"
      "made; 3: something is undecided, because another program or too few steps may be the\n"
      "reason; 130: interrupted.\n\n"
      "Examples:\n"
      "  syncline selftest --python venv/bin/python\n"
      "  syncline selftest --delay 7ms --late-rank 0\n"
      "  syncline selftest run/healthy run/delayed --delay 20ms --late-rank 3");
  command->callback([=] {
    context->ends_in_good_order = true;
    arguments->records =
        command->count("--for") + command->count("--out") + command->count("--python") > 0;
    context->action = [=] { return Selftest(*context, *arguments); };
  });
}

}  // namespace syncline::cli
