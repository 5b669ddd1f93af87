// SPDX-License-Identifier: Apache-2.0
// syncline merge, events, report: from recordings and traces to a timeline, its events and its
// analysis.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text_width.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"
#include "coordinator/cli/merge_view.h"
#include "coordinator/cli/parse.h"
#include "coordinator/cli/report_against.h"
#include "coordinator/cli/standstill_text.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/merge/merge.h"
#include "coordinator/merge/outputs.h"
#include "coordinator/stacks/standstill.h"
#include "export/report/json_report.h"
#include "export/report/sections.h"
#include "export/report/text_report.h"

namespace syncline::cli {
namespace {

struct MergeArguments {
  merge::MergeOptions options;
  std::string alignment = "model";
  std::optional<std::string> from;
  std::optional<std::string> to;
  std::string look_back = "auto";
  std::string shard_size = "1GiB";
  bool json = false;
  bool raw = false;
  bool full = false;
  std::vector<std::string> sections;
  std::string svg;
  std::optional<std::string> step;
  std::vector<std::string> against;
  std::string format = "text";
};

// One word, separated by commas: the next word is not part of it, but an input, say.
CLI::Option* AddList(CLI::App* command, const std::string& name, std::vector<std::string>* list,
                     const std::string& help) {
  return command->add_option(name, *list, help)->delimiter(',')->allow_extra_args(false);
}

std::string FormatHelp() {
  constexpr size_t kColumns = 66;
  std::string text = "What to write, separated by commas:";
  const char* separator = " ";
  for (const merge::Format& format : merge::Formats()) {
    absl::StrAppend(&text, separator, format.name, " (", format.help, ")");
    separator = ", ";
  }
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  std::string help = Wrap("", words, {.width = kColumns});
  help.pop_back();  // the newline at the end
  return help;
}

void AddInput(CLI::App* command, const std::shared_ptr<MergeArguments>& arguments) {
  merge::InputOptions& input = arguments->options.input;
  command
      ->add_option("INPUT", input.inputs,
                   "A recording; or directories of CTF traces (1.8; CTF 2 is experimental); or\n"
                   "profiles of PyTorch (rank0.json.gz ...), TensorFlow or JAX (HOST.xplane.pb),\n"
                   "tables of spans (.csv, .jsonl), or directories of them.\n"
                   "NAME=INPUT names the node")
      ->required();
  AddList(command, "--nodes", &input.nodes, "Only these nodes, separated by commas");
  command->add_flag("--refit", input.refit,
                    "Rebuild the clock model from the recording's raw samples, and from the\n"
                    "messages and collectives in its traces");
  command
      ->add_option("--align", arguments->alignment,
                   "How clocks are aligned; wall-clock, as other tools do it, is for\n"
                   "comparison only")
      ->check(CLI::IsMember({"model", "wall-clock"}))
      ->capture_default_str();
}

merge::InputOptions InputOf(const MergeArguments& arguments) {
  merge::InputOptions input = arguments.options.input;
  input.align =
      arguments.alignment == "model" ? merge::Alignment::kModel : merge::Alignment::kWallClock;
  return input;
}

absl::Status ParseInstant(const std::optional<std::string>& text,
                          std::optional<TimelineTime>* time) {
  if (!text.has_value()) return absl::OkStatus();
  SYNCLINE_ASSIGN_OR_RETURN(const int64_t ns, ParseDuration(*text));
  *time = TimelineTime{ns};
  return absl::OkStatus();
}

absl::Status ParseRange(const MergeArguments& arguments, merge::Range* range) {
  SYNCLINE_RETURN_IF_ERROR(ParseInstant(arguments.from, &range->from));
  return ParseInstant(arguments.to, &range->to);
}

absl::Status ParseLookBack(const std::string& text, merge::LookBack* look_back) {
  using How = merge::LookBack::How;
  if (text == "auto") return absl::OkStatus();
  if (text == "all") {
    look_back->how = How::kAll;
    return absl::OkStatus();
  }
  const absl::StatusOr<int64_t> ns = ParseDuration(text);
  if (!ns.ok() || *ns <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--look-back takes a duration, e.g. 5min, or auto, or all, not \"", text, "\""));
  }
  *look_back = {How::kAtMost, *ns};
  return absl::OkStatus();
}

void AddAssumption(CLI::App* command, const std::shared_ptr<MergeArguments>& arguments) {
  AddAsymmetry(command, &arguments->options.input.asymmetry_percent);
}

void AddEvents(CLI::App* command, std::vector<std::string>* events, const std::string& help) {
  AddList(command, "--events", events, help)->type_name("PATTERNS");
}

void AddRange(CLI::App* command, const std::shared_ptr<MergeArguments>& arguments) {
  command->add_option("--from", arguments->from, "Begin at this time after T, e.g. 1.5s");
  command->add_option("--to", arguments->to, "End at this time after T, e.g. 2s");
}

// Of a MergeResult or EventsResult.
template <class Result>
void Complain(const Context& context, const Result& result) {
  for (const std::string& complaint : result.complaints) {
    PrintNote(context, "warning", "", complaint, "");
  }
  for (const std::string& note : result.notes) PrintNote(context, "note", "", note, "");
  if (!result.incomplete || !result.complaints.empty()) return;
  PrintNote(context, "warning", "", "something was lost; `syncline report` says what and where",
            "");
}

// Interpreters that may have pyarrow: the one that is named, else the one that scripts/setup made
// beside the build, else the system's.
std::vector<std::string> Pythons(const Context& context) {
  const std::string named = context.environment("SYNCLINE_PYTHON");
  if (!named.empty()) return {named};
  std::error_code error;
  const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path beside =
      executable.parent_path() / ".." / ".." / ".venv-parquet" / "bin" / "python";
  std::vector<std::string> pythons = {"python3"};
  if (std::filesystem::exists(beside, error)) {
    pythons.insert(pythons.begin(), beside.lexically_normal().string());
  }
  return pythons;
}

int Merge(const Context& context, const MergeArguments& arguments) {
  merge::MergeOptions options = arguments.options;
  options.pythons = Pythons(context);
  options.input = InputOf(arguments);
  options.interrupt = context.interrupts->First();
  options.leave = [] { ::_exit(kInterrupted); };
  absl::Status parsed = ParseRange(arguments, &options.range);
  parsed.Update(ParseLookBack(arguments.look_back, &options.look_back));
  if (!parsed.ok()) return Fail(context, parsed);
  const absl::StatusOr<uint64_t> shard_bytes = ParseSize(arguments.shard_size);
  if (!shard_bytes.ok()) return Fail(context, shard_bytes.status());
  options.perfetto_bytes_max = *shard_bytes;
  absl::StatusOr<merge::MergeResult> merged;
  {
    MergeView view(&context, options);
    options.progress = [&view](const merge::Progress& progress) { view.OnProgress(progress); };
    merged = merge::Merge(options);
  }
  if (!merged.ok()) return Fail(context, merged.status());
  Complain(context, *merged);
  for (const std::string& file : merged->files) {
    *context.out << (merged->out_dir / file).string() << '\n';
  }
  return merged->incomplete ? kIncomplete : kDone;
}

int Events(const Context& context, const MergeArguments& arguments) {
  merge::EventsOptions options;
  options.input = InputOf(arguments);
  options.input.asymmetry_percent = clocksync::kAsymmetryPercentAny;  // nothing is judged here
  options.format =
      arguments.format == "jsonl" ? merge::EventFormat::kJsonLines : merge::EventFormat::kText;
  options.events = arguments.options.events;
  options.raw = arguments.raw;
  options.threads = arguments.options.threads;
  const absl::Status parsed = ParseRange(arguments, &options.range);
  if (!parsed.ok()) return Fail(context, parsed);
  const absl::StatusOr<merge::EventsResult> printed = merge::PrintEvents(options, context.out);
  if (!printed.ok()) return Fail(context, printed.status());
  // `syncline events RUN | head` is no failure: what was wanted was written.
  context.out->clear();
  Complain(context, *printed);
  return printed->incomplete ? kIncomplete : kDone;
}

// What is kept of a look at the ranks, in front of the whole report of one recording.
std::string KeptText(const Context& context, const MergeArguments& arguments) {
  const std::vector<std::string>& inputs = arguments.options.input.inputs;
  std::error_code error;
  if (inputs.size() != 1 || !arguments.sections.empty() ||
      !std::filesystem::exists(recording::Layout(inputs.front()).Stacks(), error)) {
    return "";
  }
  const auto look = stacks::ReadKeptLook(inputs.front());
  if (look.ok()) {
    return absl::StrCat(
        StandstillText(*look, {.width = TerminalWidth().value_or(100), .stacks = false}), "\n");
  }
  PrintNote(context, "warning", "",
            absl::StrCat("where the ranks stood is not known: ", look.status().message()), "");
  return "";
}

int Report(const Context& context, const MergeArguments& arguments) {
  merge::ReportOptions options;
  options.input = InputOf(arguments);
  options.step = arguments.step;
  if (!arguments.against.empty()) {
    return ReportAgainst(context, {options, arguments.against, arguments.json, arguments.full});
  }
  const absl::StatusOr<analysis::Report> made = merge::MakeReport(options);
  if (!made.ok()) return Fail(context, made.status());
  if (!arguments.svg.empty()) {
    const absl::StatusOr<std::string> picture = merge::MakePicture(options, *made);
    if (!picture.ok()) return Fail(context, picture.status());
    const absl::Status written = WriteOutput(arguments.svg, *picture);
    if (!written.ok()) return Fail(context, written);
  }
  if (arguments.json) {
    *context.out << report::ReportJson(*made);
  } else {
    *context.out << KeptText(context, arguments)
                 << report::TextReport(*made, {.width = TerminalWidth().value_or(100),
                                               .color = context.ColourOut(),
                                               .full = arguments.full,
                                               .sections = arguments.sections});
  }
  return made->incomplete ? kIncomplete : kDone;
}

// An error message; empty: there is a section of this name.
std::string IsSection(const std::string& name) {
  if (report::FindSection(name) != nullptr) return "";
  return absl::StrCat("\"", name, "\" is not a section of the report; these are: ",
                      absl::StrJoin(report::SectionNames(), ", "));
}

void AddSections(CLI::App* report, const std::shared_ptr<MergeArguments>& arguments) {
  const auto json = report->add_flag("--json", arguments->json, "As JSON, which holds everything");
  const auto full =
      report->add_flag("--full", arguments->full, "Everything, not only what fits on one screen");
  AddList(report, "--section", &arguments->sections,
          "Print these sections in full, separated by commas")
      ->type_name(absl::StrCat("{", absl::StrJoin(report::SectionNames(), ","), "}"))
      ->check(IsSection)
      ->excludes(json)
      ->excludes(full);
  full->excludes(json);
}

void AddAgainst(CLI::App* report, const std::shared_ptr<MergeArguments>& arguments) {
  report
      ->add_option("--against", arguments->against,
                   "An earlier recording of the same program, or a directory of its traces or\n"
                   "profiles: say which steps, operators, kernels and collectives take more or\n"
                   "less time than then. Given several times, all are the time before, and the\n"
                   "intervals hold how they differ")
      ->allow_extra_args(false)
      ->check(IsGiven)
      ->excludes("--section")
      ->excludes("--svg");
}

}  // namespace

void RegisterMerge(CLI::App* app, Context* context) {
  CLI::App* const merge = app->add_subcommand(
      "merge", "Merge a recording's nodes, or any CTF traces, into one timeline");
  const auto arguments = std::make_shared<MergeArguments>();
  AddInput(merge, arguments);
  AddAssumption(merge, arguments);
  merge->add_option("--out", arguments->options.out_dir, "Output directory (default: RUN/out)")
      ->check(IsGiven);
  AddList(merge, "--format", &arguments->options.formats, FormatHelp())
      ->type_name(absl::StrCat("{", merge::FormatNames(","), "}"))
      ->capture_default_str();
  merge->add_option("--threads", arguments->options.threads,
                    "Number of threads that resolve names, and write CTF and Parquet\n"
                    "(default: one per processor)");
  merge
      ->add_option("--shard-size", arguments->shard_size,
                   "A Perfetto timeline larger than this is written as an overview\n"
                   "and windows of equal length, none of them larger")
      ->capture_default_str();
  AddRange(merge, arguments);
  AddEvents(merge, &arguments->options.events,
            "Show only events of these names, separated by commas; * stands for\n"
            "any characters, e.g. 'lttng_ust_libc:*'. A task is shown whole if its\n"
            "begin or its end is selected, a message if its send or its receive is");
  merge
      ->add_option("--look-back", arguments->look_back,
                   "With --from and --to: how much is read outside the cut, to find tasks that\n"
                   "last into it. all: everything; a duration, e.g. 32s: at most this much before\n"
                   "the cut, and no more than the tasks that are open there need; auto: 32s if\n"
                   "more than 2 min lie outside the cut, otherwise all. Earlier information is\n"
                   "then unknown: counters' values, pauses, which send was a group's first, tasks\n"
                   "of threads that write no events")
      ->capture_default_str();
  merge->add_flag("--critical-path", arguments->options.critical_path,
                  "Also draw what the steps waited for, one thing after the other: which\n"
                  "rank's work, which collective or tensor. Reads the recording twice, and\n"
                  "needs a job that `syncline why` explains (on GPUs there is none yet)");
  merge
      ->add_option("--job", arguments->options.job,
                   "With --critical-path: of this job, where several were recorded")
      ->needs("--critical-path");
  merge->footer(
      "The same input gives the same bytes, on any machine. The files of an earlier merge in the\n"
      "output directory are replaced in one step; other files there are kept. A directory that "
      "was\n"
      "not made by a merge is refused unless it is empty. Ctrl-C leaves the directory unchanged.\n"
      "In a directory of traces each host is a node; NAME=DIR names the node of one host.\n"
      "--from and --to must overlap the recording; a part that is outside is cut off, with a "
      "note.\n"
      "Events that --events skips are missing from the report's tasks and steps, too; its losses\n"
      "are complete.\n\n"
      "Examples:\n"
      "  syncline merge run-20261121-093012-7f3a\n"
      "  syncline merge a=/traces/a b=/traces/b --out merged\n"
      "Open timeline.perfetto-trace in https://ui.perfetto.dev");
  merge->callback([=] {
    context->ends_in_good_order = true;
    context->action = [=] { return Merge(*context, *arguments); };
  });
}

void RegisterEvents(CLI::App* app, Context* context) {
  CLI::App* const events =
      app->add_subcommand("events", "Print every event, decoded, in timeline order");
  const auto arguments = std::make_shared<MergeArguments>();
  AddInput(events, arguments);
  events->add_option("--format", arguments->format, "text or jsonl")
      ->check(CLI::IsMember({"text", "jsonl"}))
      ->capture_default_str();
  events->add_option("--threads", arguments->options.threads,
                     "Number of threads that format events (default: one per processor)");
  AddRange(events, arguments);
  AddEvents(events, &arguments->options.events,
            "Only events of these names, separated by commas; * stands for any\n"
            "characters, e.g. 'syncline_itt:*,*:malloc'. name:train* are those\n"
            "of tasks, markers, counters, collectives, ... that the job calls so");
  events->add_flag("--raw", arguments->raw,
                   "Ids of threads, processes and names as they were recorded: the traces\n"
                   "are then read once, not twice");
  events->footer(
      "Includes the events of TensorFlow's profiles in the recording.\n"
      "An id of which nothing is known stays a number: name_id = 17. JSON lines have a\n"
      "format_version (2), except with --raw.\n\n"
      "Examples:\n"
      "  syncline events run-20261121-093012-7f3a | grep train_step | head\n"
      "  syncline events run-20261121-093012-7f3a --from 1s --to 1.1s --nodes worker-0\n"
      "  syncline events run-20261121-093012-7f3a --events 'name:train_step' --format jsonl\n"
      "  syncline events run-20261121-093012-7f3a --events 'syncline_net:*,*MatMul'");
  events->callback([=] { context->action = [=] { return Events(*context, *arguments); }; });
}

void RegisterReport(CLI::App* app, Context* context) {
  CLI::App* const report = app->add_subcommand(
      "report", "Print what a recording shows: coverage, losses, clocks, steps, operators, cost");
  const auto arguments = std::make_shared<MergeArguments>();
  AddInput(report, arguments);
  AddAssumption(report, arguments);
  AddSections(report, arguments);
  report->add_option("--svg", arguments->svg, "Also draw two steps of all nodes into this file");
  report->add_option(
      "--step", arguments->step,
      "Which tasks are the job's steps, [DOMAIN:]NAME (default: by their names; of PyTorch "
      "jobs that mark none, from optimizer step to optimizer step)");
  AddAgainst(report, arguments);
  report->footer(
      "Without --full, --section and --json it prints one screen, whatever the number of nodes.\n"
      "--against names what certainly changed by more than a limit, which it prints; --full has\n"
      "the rest, too. What the words and numbers mean: docs/findings.md. Exit code 3: not\n"
      "comparable, or something is missing in a recording.\n\n"
      "Examples:\n"
      "  syncline report run-20261121-093012-7f3a\n"
      "  syncline report run-20261121-093012-7f3a --section nodes,losses\n"
      "  syncline report run-20261121-093012-7f3a --json --svg steps.svg\n"
      "  syncline report today --against last-week\n"
      "  syncline report today --against mon --against tue --against wed --full");
  report->callback([=] { context->action = [=] { return Report(*context, *arguments); }; });
}

}  // namespace syncline::cli
