// SPDX-License-Identifier: Apache-2.0
// syncline why: who holds the job up, and why. Records first where no recording is given.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"
#include "coordinator/cli/look.h"
#include "coordinator/cli/parse.h"
#include "coordinator/cli/record_run.h"
#include "coordinator/cli/standstill_text.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/cli/why_against.h"
#include "coordinator/merge/why.h"
#include "coordinator/merge/why_profiles.h"
#include "coordinator/stacks/standstill.h"
#include "export/why/collective_text.h"
#include "export/why/cut_json.h"
#include "export/why/cut_text.h"
#include "export/why/device_json.h"
#include "export/why/device_text.h"
#include "export/why/why_json.h"
#include "export/why/why_text.h"

namespace syncline::cli {
namespace {

using analysis::why::Answer;
using analysis::why::Refusal;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kFirstNs = 10 * kSecondNs;  // enough for most jobs
constexpr int64_t kLongestNs = 120 * kSecondNs;
constexpr uint64_t kStepsWanted = 60;  // from which on causes are named without more ado
constexpr uint64_t kStepsMax = 100'000;

struct WhyArguments {
  std::string run;
  std::vector<std::string> inputs;  // as given: a recording, `run`, or profiles
  std::string window;               // "10s", "40steps", or not given
  std::string directory;
  std::optional<std::string> job;
  bool allow_missing = false;
  bool no_evidence = false;
  bool json = false;
  std::vector<std::string> against;
  std::vector<std::string> fail_if;
};

// How long to record, or until how many steps there are.
struct Goal {
  int64_t window_ns = 0;
  uint64_t steps = 0;  // 0: the window is all that was asked for
};

absl::StatusOr<Goal> GoalOf(const std::string& text) {
  if (text.empty()) return Goal{kFirstNs, kStepsWanted};
  absl::string_view number = text;
  if (absl::ConsumeSuffix(&number, "steps") || absl::ConsumeSuffix(&number, "step")) {
    uint64_t steps = 0;
    if (!absl::SimpleAtoi(number, &steps) || steps == 0 || steps > kStepsMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--for takes a duration or a number of steps, e.g. 10s or 40steps, not \"", text, "\""));
    }
    return Goal{kFirstNs, steps};
  }
  SYNCLINE_ASSIGN_OR_RETURN(const int64_t window_ns, ParseDuration(text));
  if (window_ns < kSecondNs) {
    return absl::InvalidArgumentError(
        "--for must be at least 1s: an answer needs 30 steps, better 60");
  }
  return Goal{window_ns, 0};
}

// What a recording says, and where the ranks stood behind it if no step ended in it.
struct Explained {
  merge::WhyResult result;
  std::optional<stacks::KeptLook> look;

  // A longer recording of a job that stands still has no more steps, and one process alone that
  // makes none may well be no training.
  bool may_step() const {
    return !look.has_value() ||
           (look->no_step.ranks.size() > 1 && stacks::JudgeStandstill(*look).moves);
  }
};

// The look that was kept with it; a damaged one is said.
std::optional<stacks::KeptLook> KeptWith(const Context& context, const std::filesystem::path& run) {
  absl::StatusOr<stacks::KeptLook> kept = stacks::ReadKeptLook(run);
  if (kept.ok()) return *std::move(kept);
  if (!absl::IsNotFound(kept.status())) {
    PrintNote(context, "warning", "",
              absl::StrCat("where the ranks stood is not known: ", kept.status().message()), "");
  }
  return std::nullopt;
}

// The nodes are asked now: the recording is the one just made.
std::optional<stacks::KeptLook> LookNow(const Context& context,
                                        const analysis::why::NoStep& no_step,
                                        const std::filesystem::path& run) {
  absl::StatusOr<std::optional<stacks::KeptLook>> look = LookAndKeep(context, no_step, run);
  if (look.ok()) return *std::move(look);
  PrintNote(context, "warning", "",
            absl::StrCat("where the ranks stand is not known: ", look.status().message()), "");
  return std::nullopt;
}

// A refusal gives way to what is known of a job in which no step ended.
void AnswerByLook(const stacks::KeptLook& look, Answer* answer) {
  const bool of_steps = answer->refusal == Refusal::kNoSteps ||
                        answer->refusal == Refusal::kNoPyTorchOperators ||
                        answer->refusal == Refusal::kRankMissing;
  const stacks::Standstill standstill = stacks::JudgeStandstill(look);
  if (answer->refusal == Refusal::kNone || (standstill.moves && !of_steps)) return;
  if (answer->job.empty()) answer->job = look.no_step.ranks.front().job;
  answer->window_ns = std::max(answer->window_ns, look.no_step.window_ns);
  answer->refusal = standstill.answered() ? Refusal::kNone : Refusal::kNoSteps;
  answer->refusal_text = standstill.answered() ? "" : stacks::StandstillSentence(look, standstill);
  if (!standstill.answered()) return;
  answer->verdict = analysis::why::Verdict::kStandsStill;
  answer->incomplete = !look.no_step.certain;
}

absl::StatusOr<Explained> ExplainRecording(const Context& context, const WhyArguments& arguments,
                                           const std::filesystem::path& run, bool is_new) {
  merge::WhyOptions options;
  options.input.inputs = {run.string()};
  options.job = arguments.job;
  Explained explained;
  SYNCLINE_ASSIGN_OR_RETURN(explained.result, merge::Explain(options));
  const auto& no_step = explained.result.no_step;
  if (!no_step.has_value()) return explained;
  explained.look = is_new ? LookNow(context, *no_step, run) : KeptWith(context, run);
  if (!explained.look.has_value()) return explained;
  if (arguments.job.has_value()) {
    explained.look->no_step = *no_step;
    explained.look = stacks::OnlyJob(*std::move(explained.look), *arguments.job);
  }
  AnswerByLook(*explained.look, &explained.result.answer);
  return explained;
}

// Steps that an answer is about; nullopt: more of them would change nothing.
std::optional<uint64_t> StepsOf(const merge::WhyResult& result) {
  using analysis::why::DeviceRefusal;
  if (result.devices.has_value()) {
    const DeviceRefusal refusal = result.devices->refusal;
    if (refusal != DeviceRefusal::kNone && refusal != DeviceRefusal::kNoSteps) return std::nullopt;
    return result.devices->steps;
  }
  if (result.collectives.has_value()) {
    using analysis::why::CollectiveRefusal;
    const CollectiveRefusal refusal = result.collectives->refusal;
    if (refusal != CollectiveRefusal::kNone && refusal != CollectiveRefusal::kNoCollectives) {
      return std::nullopt;
    }
    return result.collectives->collectives;
  }
  if (result.cut.has_value()) {
    using analysis::why::CutRefusal;
    const CutRefusal refusal = result.cut->refusal;
    if (refusal != CutRefusal::kNone && refusal != CutRefusal::kTooFewSteps) return std::nullopt;
    return result.cut->steps;
  }
  const Refusal refusal = result.answer.refusal;
  if (refusal != Refusal::kNone && refusal != Refusal::kTooFewSteps &&
      refusal != Refusal::kNoSteps) {
    return std::nullopt;
  }
  return result.answer.steps;
}

int64_t WindowNs(const merge::WhyResult& result) {
  if (result.collectives.has_value()) return result.collectives->window_ns;
  return result.cut.has_value() ? result.cut->window_ns : result.answer.window_ns;
}

// How long a recording with `goal` steps would be; nullopt: the one that there is has them, or
// more time would change nothing.
std::optional<int64_t> LongerFor(const merge::WhyResult& result, const Goal& goal) {
  const std::optional<uint64_t> found = StepsOf(result);
  if (!found.has_value() || *found >= goal.steps) return std::nullopt;
  if (*found == 0 || WindowNs(result) == 0) return kLongestNs;
  // A tenth more than needed: steps vary.
  const auto steps = static_cast<int64_t>(*found);
  const int64_t needed_ns = WindowNs(result) / steps * static_cast<int64_t>(goal.steps) / 10 * 11;
  const int64_t rounded_ns = (needed_ns / kSecondNs + 1) * kSecondNs;
  return std::min(rounded_ns, kLongestNs);
}

// Whether the look is all that there is to say.
bool IsAboutLook(const Explained& explained) {
  const Answer& answer = explained.result.answer;
  return explained.look.has_value() && (answer.verdict == analysis::why::Verdict::kStandsStill ||
                                        answer.refusal == Refusal::kNoSteps);
}

void PrintNotes(const Context& context, const std::vector<std::string>& complaints,
                const std::vector<std::string>& notes) {
  for (const std::string& one : complaints) PrintNote(context, "warning", "", one, "");
  for (const std::string& one : notes) PrintNote(context, "note", "", one, "");
}

// `inputs`: as the caller named them.
int PrintDevices(const Context& context, const WhyArguments& arguments,
                 const analysis::why::DeviceAnswer& answer,
                 const std::vector<std::string>& inputs) {
  const size_t width = AnswerWidth();
  *context.out << (arguments.json ? report::DeviceWhyJson(answer, inputs)
                                  : report::DeviceWhyText(answer, {width, context.ColourOut()}));
  const bool refused = answer.refusal != analysis::why::DeviceRefusal::kNone;
  return refused || answer.incomplete ? kIncomplete : kDone;
}

int PrintCut(const Context& context, const WhyArguments& arguments,
             const analysis::why::CutAnswer& answer, const std::string& run) {
  const size_t width = AnswerWidth();
  *context.out << (arguments.json ? report::CutWhyJson(answer, {run})
                                  : report::CutWhyText(answer, {width, context.ColourOut()}));
  if (!arguments.json) *context.out << "recording: " << Printable(run) << '\n';
  const bool refused = answer.refusal != analysis::why::CutRefusal::kNone;
  return refused || answer.incomplete ? kIncomplete : kDone;
}

int PrintCollectives(const Context& context, const WhyArguments& arguments,
                     const analysis::why::CollectiveAnswer& answer, const std::string& run) {
  const size_t width = AnswerWidth();
  *context.out << (arguments.json
                       ? report::CollectiveWhyJson(answer, run)
                       : report::CollectiveWhyText(answer, {width, context.ColourOut()}));
  if (!arguments.json) *context.out << "recording: " << Printable(run) << '\n';
  const bool refused = answer.refusal != analysis::why::CollectiveRefusal::kNone;
  return refused || answer.incomplete ? kIncomplete : kDone;
}

int Print(const Context& context, const WhyArguments& arguments, const Explained& explained,
          const std::filesystem::path& run) {
  const merge::WhyResult& result = explained.result;
  if (result.cut.has_value() && !explained.look.has_value()) {
    PrintNotes(context, result.complaints, result.notes);
    return PrintCut(context, arguments, *result.cut, run.string());
  }
  // Where the ranks of a job stand that makes no steps matters more than those before it stopped.
  if (result.devices.has_value() && !explained.look.has_value()) {
    PrintNotes(context, result.complaints, result.notes);
    const int code = PrintDevices(context, arguments, *result.devices, {run.string()});
    if (!arguments.json) *context.out << "recording: " << Printable(run.string()) << '\n';
    return code;
  }
  const bool stands = explained.look.has_value() && !stacks::JudgeStandstill(*explained.look).moves;
  if (result.collectives.has_value() && !stands) {
    PrintNotes(context, result.complaints, result.notes);
    return PrintCollectives(context, arguments, *result.collectives, run.string());
  }
  const Answer& answer = result.answer;
  PrintNotes(context, result.complaints, result.notes);
  const size_t width = AnswerWidth();
  if (arguments.json) {
    *context.out << report::WhyJson(
        answer, run.string(),
        explained.look.has_value()
            ? stacks::StandstillJson(*explained.look, stacks::JudgeStandstill(*explained.look))
            : "");
  } else {
    if (explained.look.has_value()) {
      *context.out << StandstillText(*explained.look, {.width = width}) << '\n';
    }
    if (!IsAboutLook(explained)) {
      *context.out << report::WhyText(answer, {width, context.ColourOut()});
    }
    *context.out << "recording: " << Printable(run.string()) << '\n';
  }
  return answer.refusal != Refusal::kNone || answer.incomplete ? kIncomplete : kDone;
}

// There is a recording, but no answer: it can be asked again.
int FailWith(const Context& context, const absl::Status& status,
             const std::filesystem::path& directory) {
  const int code = Fail(context, status);
  PrintNote(context, "note", "", absl::StrCat("the recording is kept: ", directory.string()), "");
  return code;
}

// Records, and once more for longer where there were too few steps. Both recordings are kept.
int RecordAndExplain(const Context& context, const WhyArguments& arguments) {
  const absl::StatusOr<Goal> goal = GoalOf(arguments.window);
  if (!goal.ok()) return Fail(context, goal.status());
  if (goal->steps > 0) {
    PrintNote(context, "note", "",
              absl::StrFormat("recording for %d s; if there are fewer than %d steps of one class, "
                              "a second recording follows, long enough for them, at most %d s",
                              kFirstNs / kSecondNs, goal->steps, kLongestNs / kSecondNs),
              "");
  }
  RecordRun run{goal->window_ns, arguments.directory, arguments.allow_missing,
                arguments.no_evidence};
  auto directory = RecordFor(context, run);
  if (!directory.ok()) return Fail(context, directory.status());
  auto explained = ExplainRecording(context, arguments, *directory, /*is_new=*/true);
  if (!explained.ok()) return FailWith(context, explained.status(), *directory);
  const auto longer_ns = explained->may_step() ? LongerFor(explained->result, *goal) : std::nullopt;
  if (longer_ns.has_value() && !context.interrupts->First().stop_requested()) {
    PrintNote(context, "note", "",
              absl::StrFormat("%d %s in %s; recording again, for %d s",
                              StepsOf(explained->result).value_or(0),
                              explained->result.collectives.has_value() ? "collectives of NCCL"
                                                                        : "steps of one class",
                              directory->string(), *longer_ns / kSecondNs),
              "");
    run.window_ns = *longer_ns;
    while (run.directory.size() > 1 && run.directory.back() == '/') run.directory.pop_back();
    if (!run.directory.empty()) run.directory += "-2";
    auto second = RecordFor(context, run);
    if (!second.ok()) return FailWith(context, second.status(), *directory);
    directory = std::move(second);
    explained = ExplainRecording(context, arguments, *directory, /*is_new=*/true);
    if (!explained.ok()) return FailWith(context, explained.status(), *directory);
  }
  return Print(context, arguments, *explained, *directory);
}

// Profiles that the job's own profiler wrote.
int WhyOfProfiles(const Context& context, const WhyArguments& arguments) {
  if (arguments.job.has_value()) {
    return Fail(context,
                absl::InvalidArgumentError("--job is of recordings: profiles are of one job"));
  }
  merge::WhyOptions options;
  options.input.inputs = arguments.inputs;
  const auto result = merge::ExplainProfiles(options);
  if (!result.ok()) return Fail(context, result.status());
  if (result->refusal != analysis::why::DeviceRefusal::kNone) {
    PrintNotes(context, result->notes, {});  // an answer has them
  }
  return PrintDevices(context, arguments, *result, arguments.inputs);
}

int Why(const Context& context, const WhyArguments& arguments) {
  if (arguments.against.empty() && !arguments.fail_if.empty()) {
    return Fail(context,
                absl::InvalidArgumentError("--fail-if limits what changed: it needs --against"));
  }
  if (arguments.run.empty() && !arguments.against.empty()) {
    return Fail(context, absl::InvalidArgumentError(
                             "--against compares recordings: syncline why RUN --against RUN"));
  }
  if (arguments.run.empty()) return RecordAndExplain(context, arguments);
  if (!arguments.window.empty() || !arguments.directory.empty() || arguments.allow_missing ||
      arguments.no_evidence) {
    return Fail(context, absl::InvalidArgumentError(
                             "--for, --out, --allow-missing and --no-evidence apply to a new "
                             "recording only: give these options or RUN, not both"));
  }
  const bool against = !arguments.against.empty();
  const bool several = arguments.inputs.size() > 1;
  if (!against || several) {
    merge::InputOptions inputs;
    inputs.inputs = arguments.inputs;
    const absl::StatusOr<bool> are_profiles = merge::AreProfiles(inputs);
    if (!are_profiles.ok()) return Fail(context, are_profiles.status());
    if (*are_profiles && !against) return WhyOfProfiles(context, arguments);
    if (several && !*are_profiles) {
      return Fail(context, absl::InvalidArgumentError(
                               "one recording is explained at a time; several profiles are"));
    }
  }
  if (against) {
    return WhyAgainst(context, {arguments.inputs, arguments.against, arguments.job,
                                arguments.fail_if, arguments.json});
  }
  const auto explained = ExplainRecording(context, arguments, arguments.run, /*is_new=*/false);
  if (!explained.ok()) return Fail(context, explained.status());
  return Print(context, arguments, *explained, arguments.run);
}

void AddComparison(CLI::App* why, WhyArguments* arguments) {
  why->add_option(
         "--against", arguments->against,
         "An earlier recording of the same job, or a directory of its profiles: say what changed\n"
         "since then. Given several times, all are the time before, and the intervals hold\n"
         "how they differ")
      ->allow_extra_args(false)
      ->check(IsGiven);
  why->add_option(
         "--fail-if", arguments->fail_if,
         "With --against: exit with code 4 if this is so, e.g. 'step > +5%'. Names: step,\n"
         "a part as in the table (input), a rank's part (rank:3.input); of jobs on GPUs also\n"
         "rank:3.own_work; of a model that is cut into partitions work, tensors, between_steps.\n"
         "The percentage is of the step before. With one --against choose it larger than what\n"
         "recordings without a change differ by. May be given several times")
      ->allow_extra_args(false);
}

}  // namespace

void RegisterWhy(CLI::App* app, Context* context) {
  CLI::App* const why =
      app->add_subcommand("why", "Say which rank holds the job up, by how much, and why");
  const auto arguments = std::make_shared<WhyArguments>();
  why->add_option(
         "INPUT", arguments->inputs,
         "A recording; or the profiles of all ranks (rank0.json.gz ...). Without it a new\n"
         "recording is made")
      ->check(IsGiven);
  why->add_option("--for", arguments->window,
                  "How long to record: 10s, 2m, or until there are steps: 40steps\n"
                  "(default: 60steps; at least 10 s, at most 2 min)");
  why->add_option("--out", arguments->directory, "Directory of the recording (default: run-ID)")
      ->check(IsGiven);
  why->add_option("--job", arguments->job,
                  "Which job, where several were recorded: ID or ID/START");
  why->add_flag("--allow-missing", arguments->allow_missing,
                "Record without nodes that cannot participate");
  why->add_flag("--no-evidence", arguments->no_evidence,
                "Record without samples of processor time and control groups: causes that need\n"
                "these samples stay unknown");
  why->add_flag("--json", arguments->json, "As JSON (docs/why-json.md)");
  AddComparison(why, arguments.get());
  why->footer(
      "Of recorded PyTorch jobs over Gloo, on CPUs: which rank does its own work more slowly than "
      "the\n"
      "others, and whether its container throttles it, another process uses its CPU, it computes\n"
      "with fewer threads or a lower instruction set, its input is slow, or Python collects "
      "garbage;\n"
      "else in which function of the program's own code it stands more often than the others.\n"
      "Of jobs on GPUs, recorded under `syncline run --kineto` or given as PyTorch's profiles: "
      "which\n"
      "rank's device has more own work than the others', and whether it computes longer, waits "
      "for\n"
      "launches, or for input.\n"
      "Of jobs with NCCL or RCCL, recorded under `syncline run --nccl`: whom the ranks wait for.\n"
      "PATH says what a step waits for across the ranks, one thing after the other; `syncline\n"
      "merge RUN --critical-path` draws it.\n"
      "Of TensorFlow's in-graph jobs (one model, cut into the partitions of a master and its\n"
      "workers): what a step's critical path is made of, by partition, tensor and operator.\n"
      "Everything else is refused in one line that says what is needed.\n"
      "If no step ended, it asks the agents where the ranks stand, as `syncline stacks` does.\n"
      "What the words and numbers mean: docs/findings.md.\n"
      "Exit code 0: an answer, also \"no rank is late\"; 3: no answer, or something is missing in "
      "the\n"
      "recording; 2: several jobs, choose one with --job. With --against 4: a --fail-if is so,\n"
      "which needs all of the interval of 95 % above the limit; 3 also: not comparable, or too "
      "few\n"
      "steps.\n\n"
      "Examples:\n"
      "  syncline why --hosts hosts.txt --tls-dir tls --for 10s\n"
      "  syncline why run-20261121-093012-7f3a\n"
      "  syncline why run-20261121-093012-7f3a --json | jq .verdict\n"
      "  syncline why rank*.json.gz\n"
      "  syncline why rank*.json.gz --against profiles-of-monday\n"
      "  syncline why tonight --against last-night --fail-if 'step > +10%'\n"
      "  syncline why tonight --against mon --against tue --against wed --fail-if 'step > +5%'");
  why->callback([=] {
    context->ends_in_good_order = true;
    if (!arguments->inputs.empty()) arguments->run = arguments->inputs[0];
    context->action = [=] { return Why(*context, *arguments); };
  });
}

}  // namespace syncline::cli
