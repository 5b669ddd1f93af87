// SPDX-License-Identifier: Apache-2.0
// syncline record and fetch: make a recording; complete one.
#include <CLI/CLI.hpp>
#include <bit>
#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/status.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"
#include "coordinator/cli/look.h"
#include "coordinator/cli/parse.h"
#include "coordinator/cli/record_run.h"
#include "coordinator/cli/record_summary.h"
#include "coordinator/cli/record_view.h"
#include "coordinator/cli/standstill_text.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/record/finish.h"
#include "coordinator/record/recorder.h"
#include "vtune/analyses.h"

namespace syncline::cli {
namespace {

// The monitor renews leases twice a second and waits up to 2 s for an answer.
constexpr int64_t kLeaseMinNs = 5'000'000'000;
constexpr int64_t kLeaseMaxNs = 24 * 3600 * int64_t{1'000'000'000};
// Nodes are told of the end when all have begun, which takes tens of ms: a window that is shorter
// ends late everywhere, and a process whose calls are farther apart covers nothing of it.
constexpr int64_t kWindowMinNs = 100'000'000;
// What a recording needs before its first event: metadata, a packet per CPU, clock readings.
constexpr uint64_t kLimitMin = 1 << 20;
constexpr uint64_t kBufferBytesMin = 4 << 10;  // LTTng's own: a page
constexpr uint64_t kBufferBytesMax = uint64_t{1} << 30;
constexpr uint32_t kBufferCountMax = 1024;

struct RecordArguments {
  std::string window;
  std::string directory;
  std::string buffers = "user";
  std::string limit;
  std::string keep_free = "1G";
  std::string lease = "60s";
  std::string buffer_size;
  uint32_t buffer_count = 0;
  std::vector<std::string> events;
  bool allow_missing = false;
  bool no_tf_profiler = false;
  bool no_evidence = false;
  bool samples = false;
  bool scheduling = false;
  std::string detail = "full";
  uint32_t tf_profiler_level = 0;
  uint32_t device_level = 0;
  bool tf_profiler_collectives = false;
  std::string vtune;  // the analysis; empty: none
  std::vector<std::string> vtune_knobs;
  uint32_t vtune_data_limit_mb = 0;
  uint32_t vtune_ring_s = 0;
  bool json = false;
};

// "20261121-093012-7f3a": by the wall clock for people, with a tail against accidents.
std::string NewRecordingId(const Context& context) {
  std::random_device random;
  const absl::Time now = absl::FromUnixNanos(context.clock->UnixNs());
  return absl::StrCat(absl::FormatTime("%Y%m%d-%H%M%S", now, absl::UTCTimeZone()),
                      absl::StrFormat("-%04x", random() & 0xffff));
}

// Wrong sizes are refused here, before any node is asked; whether they fit, each node knows.
absl::Status SetBuffers(const RecordArguments& arguments, v1::PrepareRequest* prepare) {
  if (!arguments.buffer_size.empty()) {
    SYNCLINE_ASSIGN_OR_RETURN(const uint64_t bytes, ParseSize(arguments.buffer_size));
    if (bytes < kBufferBytesMin || bytes > kBufferBytesMax || !std::has_single_bit(bytes)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--buffer-size must be a power of two from 4K to 1G: ", arguments.buffer_size));
    }
    prepare->set_subbuffer_bytes(bytes);
  }
  const uint32_t count = arguments.buffer_count;
  if (count != 0 && (count < 2 || count > kBufferCountMax || !std::has_single_bit(count))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--buffer-count must be a power of two from 2 to ", kBufferCountMax, ": ", count));
  }
  prepare->set_subbuffer_count(count);
  return absl::OkStatus();
}

absl::Status SetVtune(const RecordArguments& arguments, v1::PrepareRequest* prepare) {
  if (arguments.vtune.empty()) {
    const bool none = arguments.vtune_knobs.empty() && arguments.vtune_data_limit_mb == 0 &&
                      arguments.vtune_ring_s == 0;
    if (none) return absl::OkStatus();
    return absl::InvalidArgumentError("The options --vtune-... need --vtune ANALYSIS");
  }
  SYNCLINE_RETURN_IF_ERROR(
      vtune::CheckRequest({.analysis = arguments.vtune, .knobs = arguments.vtune_knobs}));
  v1::VtuneRequest& request = *prepare->mutable_vtune();
  request.set_analysis(arguments.vtune);
  for (const std::string& knob : arguments.vtune_knobs) request.add_knobs(knob);
  request.set_data_limit_mb(arguments.vtune_data_limit_mb);
  request.set_ring_buffer_s(arguments.vtune_ring_s);
  return absl::OkStatus();
}

absl::StatusOr<record::RecordOptions> OptionsFrom(const Context& context,
                                                  const RecordArguments& arguments) {
  record::RecordOptions options;
  options.recording_id = NewRecordingId(context);
  options.directory = arguments.directory.empty() ? absl::StrCat("run-", options.recording_id)
                                                  : arguments.directory;
  options.allow_missing = arguments.allow_missing;
  options.created_by = context.created_by;
  if (!arguments.window.empty()) {
    SYNCLINE_ASSIGN_OR_RETURN(options.window_ns, ParseDuration(arguments.window));
    if (options.window_ns < kWindowMinNs) {
      return absl::InvalidArgumentError(
          "--for must be at least 100ms: the stop is sent only after all nodes have started, and a "
          "process is recorded from its first call in the window");
    }
  }
  if (!arguments.limit.empty()) {
    SYNCLINE_ASSIGN_OR_RETURN(const uint64_t limit, ParseSize(arguments.limit));
    if (limit < kLimitMin) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--limit must be at least 1M, a size per node such as 512M or 2G: ", arguments.limit));
    }
    options.prepare.set_size_limit_bytes(limit);
  }
  SYNCLINE_ASSIGN_OR_RETURN(const uint64_t keep_free, ParseSize(arguments.keep_free));
  options.prepare.set_disk_keep_free_bytes(keep_free);
  SYNCLINE_RETURN_IF_ERROR(SetBuffers(arguments, &options.prepare));
  SYNCLINE_ASSIGN_OR_RETURN(const int64_t lease_ns, ParseDuration(arguments.lease));
  if (lease_ns < kLeaseMinNs || lease_ns > kLeaseMaxNs) {
    return absl::InvalidArgumentError("--lease must be 5s to 24h");
  }
  options.lease_ms = lease_ns / 1'000'000;
  options.prepare.set_buffer_scheme(arguments.buffers == "process" ? v1::PER_PROCESS
                                                                   : v1::PER_USER);
  options.prepare.set_skip_tf_profiler(arguments.no_tf_profiler);
  options.prepare.set_skip_evidence(arguments.no_evidence);
  options.prepare.set_sample_code(arguments.samples);
  options.prepare.set_record_scheduling(arguments.scheduling);
  options.prepare.set_detail(arguments.detail == "low"      ? v1::DETAIL_LOW
                             : arguments.detail == "normal" ? v1::DETAIL_NORMAL
                                                            : v1::DETAIL_FULL);
  options.prepare.set_tf_profiler_level(arguments.tf_profiler_level);
  options.prepare.set_tf_profiler_device_level(arguments.device_level);
  options.prepare.set_tf_profiler_collectives(arguments.tf_profiler_collectives);
  SYNCLINE_RETURN_IF_ERROR(SetVtune(arguments, &options.prepare));
  for (const std::string& event : arguments.events) options.prepare.add_extra_events(event);
  return options;
}

int PrintJson(const Context& context, const recording::Recording& recording) {
  *context.out << recording::FormatRecording(recording);
  return recording::IsComplete(recording) ? kDone : kIncomplete;
}

int Record(const Context& context, const RecordArguments& arguments) {
  const absl::StatusOr<record::RecordOptions> options = OptionsFrom(context, arguments);
  if (!options.ok()) return Fail(context, options.status());
  const absl::StatusOr<std::vector<fleet::Member>> members = ConnectTargets(context);
  if (!members.ok()) return Fail(context, members.status());
  absl::StatusOr<record::Recorded> recorded;
  {
    RecordView view(&context, options->window_ns);
    record::Recorder recorder(&*members, *options, context.clock, context.interrupts, &view);
    recorded = recorder.Run();
  }
  if (!recorded.ok()) return Fail(context, recorded.status());
  const std::optional<stacks::KeptLook> look =
      LookBehindRecord(context, recorded->recording, options->directory);
  const int code = arguments.json ? PrintJson(context, recorded->recording)
                                  : PrintSummary(context, *recorded, options->directory);
  if (look.has_value()) {
    *context.err << StandstillText(*look, {.width = TerminalWidth().value_or(80), .stacks = false});
    PrintNote(context, "note", "",
              absl::StrCat("`syncline why ", options->directory.string(),
                           "` shows the stacks, `syncline stacks` where the ranks stand now"),
              "");
  }
  return code;
}

// The nodes as the recording knows them, at the addresses of today where targets are given.
absl::StatusOr<std::vector<hosts::Node>> NodesOf(const Context& context,
                                                 const std::string& directory) {
  if (!context.hosts_file.empty() || !context.host_list.empty()) return Targets(context);
  SYNCLINE_ASSIGN_OR_RETURN(const recording::Recording recording,
                            recording::ReadRecording(directory));
  std::vector<hosts::Node> nodes;
  for (const recording::NodeRecord& record : recording.nodes) {
    SYNCLINE_ASSIGN_OR_RETURN(hosts::Node node, hosts::ParseAddress(record.name, record.address));
    nodes.push_back(std::move(node));
  }
  return nodes;
}

int FetchRun(const Context& context, const std::string& directory, bool json) {
  const absl::StatusOr<std::vector<hosts::Node>> nodes = NodesOf(context, directory);
  if (!nodes.ok()) return Fail(context, nodes.status());
  const absl::StatusOr<std::vector<fleet::Member>> members = Connect(context, *nodes);
  if (!members.ok()) return Fail(context, members.status());
  const absl::StatusOr<recording::Recording> before = recording::ReadRecording(directory);
  if (!before.ok()) return Fail(context, before.status());
  RecordView view(&context, 0);
  const absl::StatusOr<record::Recorded> recorded =
      record::Resume(directory, *members, context.clock, context.interrupts, &view);
  if (!recorded.ok()) return Fail(context, recorded.status());
  return json ? PrintJson(context, recorded->recording)
              : PrintFetchSummary(context, *before, *recorded, directory);
}

void AddProfilers(CLI::App* record, RecordArguments* arguments) {
  CLI::Option* const level =
      record
          ->add_option("--tf-profiler-level", arguments->tf_profiler_level,
                       "What TensorFlow's own profilers record: 1 marks, 2 operators, 3 also the\n"
                       "tensors received (default: 3)")
          ->check(CLI::Range(1, 3));
  CLI::Option* const device_level =
      record
          ->add_option("--device-level", arguments->device_level,
                       "What the profilers of TensorFlow and JAX record of devices: 0 nothing, 1\n"
                       "kernels and copies, as XLA's device_tracer_level. On NVIDIA GPUs it takes\n"
                       "CUPTI, which serves one tool at a time (default: 0)")
          ->check(CLI::Range(0, 3));
  CLI::Option* const collectives = record->add_flag(
      "--tf-profiler-collectives", arguments->tf_profiler_collectives,
      "Also profile TensorFlow workers that run collectives. TensorFlow's profiler sometimes\n"
      "crashes such workers, and the job with them");
  record
      ->add_flag(
          "--no-tf-profiler", arguments->no_tf_profiler,
          "Do not use TensorFlow's own profilers: no operators are recorded. With them a program\n"
          "cannot start a profile of its own (tf.profiler, TensorBoard) while it is recorded")
      ->excludes(level)
      ->excludes(device_level)
      ->excludes(collectives);
}

void AddDetail(CLI::App* record, RecordArguments* arguments) {
  record
      ->add_option("--detail", arguments->detail,
                   "How much is recorded of PyTorch's operators, for what it costs: full; normal,\n"
                   "of operators inside of others those that mostly take 0.1 ms or more; low, of\n"
                   "these 0.5 ms or more, and no messages. `syncline why` works with each")
      ->check(CLI::IsMember({"full", "normal", "low"}))
      ->capture_default_str();
}

// What the agents sample beside the tracer.
void AddSamples(CLI::App* record, RecordArguments* arguments) {
  record->add_flag("--no-evidence", arguments->no_evidence,
                   "Take no samples of processor time and control groups, which `syncline why`\n"
                   "uses: 20 a second and node, at most 1 % of a processor");
  record->add_flag("--samples", arguments->samples,
                   "Sample which code the recorded threads run, 99 times in a second of processor\n"
                   "time: `syncline report RUN --section hot` shows it by task and operator");
  record->add_flag("--scheduling", arguments->scheduling,
                   "Record when each thread of the job ran, waited for a CPU (and who had it) and\n"
                   "slept: `syncline report RUN --section scheduling`, and lanes on the timeline.\n"
                   "Agents need root or CAP_PERFMON for it");
}

void AddVtune(CLI::App* record, RecordArguments* arguments) {
  record->add_option("--vtune-knob", arguments->vtune_knobs,
                     "A knob of the analysis, NAME=VALUE; repeatable. It replaces the one of the\n"
                     "same name that the analysis gets otherwise");
  record->add_option("--vtune-data-limit", arguments->vtune_data_limit_mb,
                     "VTune's limit for one result, in MB (default: VTune's own)");
  record->add_option("--vtune-ring", arguments->vtune_ring_s,
                     "VTune keeps only the last seconds (default: everything)");
}

// What `record` and `vtune` have in common.
void AddOptions(CLI::App* record, RecordArguments* arguments) {
  record->add_option("--for", arguments->window,
                     "How long: 500ms, 10s, 2m; without it until Ctrl-C");
  record->add_option("--out", arguments->directory, "Directory to create (default: run-ID)")
      ->check(IsGiven);
  record->add_flag("--allow-missing", arguments->allow_missing,
                   "Continue without nodes that cannot participate");
  record->add_option("--buffers", arguments->buffers, "One set of buffers per user, or per process")
      ->check(CLI::IsMember({"user", "process"}))
      ->capture_default_str();
  record->add_option("--buffer-size", arguments->buffer_size,
                     "Size of a sub-buffer: a power of two from 4K (default: what fits)");
  record->add_option("--buffer-count", arguments->buffer_count,
                     "Sub-buffers per CPU: a power of two from 2 (default: 4)");
  record->add_option("--event", arguments->events,
                     "Another LTTng-UST event to record, e.g. 'lttng_ust_libc:*'; repeatable");
  record->add_option("--limit", arguments->limit,
                     "Stop a node's recording at this size, e.g. 2G (from 1M)");
  record
      ->add_option("--keep-free", arguments->keep_free,
                   "Stop before a node's disk has less than this left")
      ->capture_default_str();
  record
      ->add_option("--lease", arguments->lease,
                   "A node without contact to this command for this long stops, and keeps its data")
      ->capture_default_str();
  AddDetail(record, arguments);
  AddProfilers(record, arguments);
  AddSamples(record, arguments);
  AddVtune(record, arguments);
  record->add_flag("--json", arguments->json, "Print recording.json instead of the summary");
}

}  // namespace

absl::StatusOr<std::filesystem::path> RecordFor(const Context& context, const RecordRun& run) {
  RecordArguments arguments;
  arguments.directory = run.directory;
  arguments.allow_missing = run.allow_missing;
  arguments.no_evidence = run.no_evidence;
  SYNCLINE_ASSIGN_OR_RETURN(record::RecordOptions options, OptionsFrom(context, arguments));
  options.window_ns = run.window_ns;
  SYNCLINE_ASSIGN_OR_RETURN(const std::vector<fleet::Member> members, ConnectTargets(context));
  RecordView view(&context, options.window_ns);
  record::Recorder recorder(&members, options, context.clock, context.interrupts, &view);
  SYNCLINE_RETURN_IF_ERROR(recorder.Run().status());
  return options.directory;
}

void RegisterRecord(CLI::App* app, Context* context) {
  CLI::App* const record =
      app->add_subcommand("record", "Record all nodes together, and collect the data");
  const auto arguments = std::make_shared<RecordArguments>();
  AddOptions(record, arguments.get());
  record
      ->add_option("--vtune", arguments->vtune,
                   "Collect with Intel VTune beside the recording, on the nodes that have it:\n" +
                       absl::StrJoin(vtune::AnalysisNames(), ", "))
      ->check(IsGiven);
  record->footer(
      "All nodes start at one instant, each by its own clock; either all participate or none "
      "does.\n"
      "The first Ctrl-C stops and keeps everything, the second leaves the data on the nodes, the\n"
      "third ends the program at once. Before the start, the first Ctrl-C leaves no data "
      "anywhere.\n"
      "SIGTERM and a closed terminal do the same. `syncline fetch RUN` collects what is still on\n"
      "the nodes.\n"
      "Exit code 3: the recording is incomplete, and the output says what is missing. 130:\n"
      "interrupted before anything was recorded.\n\n"
      "Examples:\n"
      "  syncline record --for 10s --hosts hosts.txt --tls-dir tls\n"
      "  syncline record --for 30s --out slow-step -H node[01-16] --allow-missing");
  record->callback([=] {
    context->ends_in_good_order = true;
    context->action = [=] { return Record(*context, *arguments); };
  });
}

void RegisterVtune(CLI::App* app, Context* context) {
  CLI::App* const command = app->add_subcommand(
      "vtune", "Record, and collect with Intel VTune on the nodes that have it");
  const auto arguments = std::make_shared<RecordArguments>();
  command->add_option("ANALYSIS", arguments->vtune, absl::StrJoin(vtune::AnalysisNames(), ", "))
      ->required();
  AddOptions(command, arguments.get());
  command->footer(
      "The same as `syncline record --vtune ANALYSIS`. VTune is attached to each rank before the\n"
      "recording starts, resumed at its start and stopped at its end, on all nodes; the results\n"
      "are in nodes/NODE/vtune/PID/result of the recording. `syncline nodes` shows which nodes\n"
      "have VTune. Nodes without it are recorded without it; a collection that fails leaves the\n"
      "recording as it is. Built to Intel's user guide, and never run against VTune: run\n"
      "scripts/try-vtune before you use it on a job that matters (docs/vtune.md).\n\n"
      "Examples:\n"
      "  syncline vtune hotspots --for 10s --hosts hosts.txt --tls-dir tls\n"
      "  syncline vtune threading --for 10s --vtune-knob sampling-interval=1");
  command->callback([=] {
    context->ends_in_good_order = true;
    context->action = [=] { return Record(*context, *arguments); };
  });
}

void RegisterFetch(CLI::App* app, Context* context) {
  CLI::App* const fetch =
      app->add_subcommand("fetch", "Collect what is still on the nodes of a recording");
  const auto directory = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  fetch->add_option("RUN", *directory, "The recording's directory")->required();
  fetch->add_flag("--json", *json, "Print recording.json instead of the summary");
  fetch->footer(
      "Continues where an earlier transfer ended; data already collected is not transferred "
      "again.\n\n"
      "Example:\n  syncline fetch run-20261121-093012-7f3a --tls-dir tls");
  fetch->callback([=] {
    context->ends_in_good_order = true;
    context->action = [=] { return FetchRun(*context, *directory, *json); };
  });
}

}  // namespace syncline::cli
