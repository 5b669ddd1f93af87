// SPDX-License-Identifier: Apache-2.0
#include "coordinator/record/finish.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/parallel.h"
#include "common/status.h"
#include "coordinator/clocks/models.h"
#include "coordinator/collect/fetch.h"
#include "coordinator/record/interrupts.h"
#include "coordinator/record/recorder.h"
#include "coordinator/record/translate.h"
#include "xspace/profile_list.h"

namespace syncline::record {
namespace {

using recording::NodeState;

constexpr fleet::AgentClient::Timeout kReleaseTimeout{20'000};
constexpr fleet::AgentClient::Timeout kResumeStopTimeout{60'000};
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int kStopAttempts = 5;
// Transfers at a time: they share one disk and one link.
constexpr size_t kTransfers = 8;

// Of the lists that merge reads, which also says what is wrong with one that cannot be read.
void CountProfiles(const recording::Layout& layout, const std::string& node,
                   recording::Fetched* fetched) {
  for (const std::filesystem::path& directory : {layout.XSpace(node), layout.Kineto(node)}) {
    const auto json = ReadFile(directory / "profiles.json");
    if (!json.ok()) continue;
    const auto records = xspace::ParseProfileList(*json);
    if (!records.ok()) continue;
    for (const auto& record : *records) {
      if (xspace::WasLost(record)) ++fetched->lost_profiles;
      if (record.file.empty()) continue;
      ++fetched->profiles;
      if (directory == layout.Kineto(node)) ++fetched->kineto_profiles;
    }
  }
}

// The agent does not know the recording. Its state stays: another that is asked at that address may
// know it. The summary says it.
void SetGone(const absl::Status& not_found, NodeProgress* node) {
  node->gone = true;
  node->record->failure = absl::StrCat("nothing to fetch: ", not_found.message());
}

void FetchNode(const FinishInput& input, NodeProgress* node) {
  recording::NodeRecord& record = *node->record;
  collect::FetchOptions options;
  options.recording_id = input.recording_id;
  options.node = record.name;
  options.on_progress = [&](uint64_t done, uint64_t total) {
    input.reporter->Tell([&](Observer& observer) { observer.OnFetched(record.name, done, total); });
  };
  const absl::StatusOr<uint64_t> fetched =
      collect::FetchNode(node->client, input.layout, options, input.clock, input.interrupt);
  const absl::Status verified =
      fetched.ok() ? collect::VerifyFetched(input.layout, record) : absl::OkStatus();
  if (!verified.ok()) {
    record.failure = absl::StrCat("what was fetched is not all: ", verified.message());
    input.reporter->Note("error", record.name, record.failure,
                         absl::StrCat("the node keeps its copy: try again with `syncline fetch ",
                                      input.layout.root().string(),
                                      "`, or delete it with "
                                      "`syncline release ",
                                      input.recording_id, "`"));
    return;
  }
  if (fetched.ok()) {
    record.fetched = {.bytes = *fetched, .complete = true};
    CountProfiles(input.layout, record.name, &record.fetched);
    return;
  }
  if (absl::IsNotFound(fetched.status())) {
    SetGone(fetched.status(), node);
    return;
  }
  record.failure =
      absl::IsCancelled(fetched.status())
          ? "interrupted: its data is still on the node"
          : absl::StrCat("its data could not be fetched: ", fetched.status().message());
  input.reporter->Note(
      "error", record.name, record.failure,
      absl::StrCat(absl::IsResourceExhausted(fetched.status()) ? "free disk space here, then " : "",
                   "`syncline fetch ", input.layout.root().string(), "` resumes this transfer"));
}

void SetStates(std::vector<NodeProgress>* nodes) {
  for (NodeProgress& node : *nodes) {
    recording::NodeRecord& record = *node.record;
    if (record.state == NodeState::kMissing) continue;
    if (!record.fetched.complete) {
      record.state = NodeState::kLeft;
      continue;
    }
    record.state = NodeState::kComplete;
    if (!record.failure.empty() || !DescribeLoss(record).empty()) {
      record.state = NodeState::kIncomplete;
    }
  }
}

void ReleaseAll(const FinishInput& input) {
  InParallel(input.nodes->size(), 128, [&](size_t i) {
    NodeProgress& node = (*input.nodes)[i];
    if (!node.stopped || !node.record->fetched.complete) return;
    v1::ReleaseRequest request;
    request.set_recording_id(input.recording_id);
    const auto released = node.client->Release(request, kReleaseTimeout);
    if (released.ok() || absl::IsNotFound(released.status())) return;
    input.reporter->Note(
        "note", node.record->name,
        absl::StrCat("everything was fetched, but the node keeps its copy: ",
                     released.status().message()),
        absl::StrCat("`syncline release ", input.recording_id, "` frees the space"));
  });
}

// When the node began, as far as its processes can tell; 0: nothing is known.
int64_t FirstCoveredRawNs(const recording::NodeRecord& node) {
  int64_t first_ns = 0;
  for (const recording::ProcessRecord& process : node.processes) {
    const int64_t on_ns = process.on_monotonic_ns;
    if (on_ns != 0 && (first_ns == 0 || on_ns < first_ns)) first_ns = on_ns;
  }
  const recording::Gate& stop = node.stop;
  return first_ns == 0
             ? 0
             : first_ns + (stop.gate_begin_monotonic_raw_ns - stop.gate_begin_monotonic_ns);
}

// The coordinator was killed before it could say when the window ended: it ends where the reference
// stopped, or after the longest that another node recorded. Where not even T was written down it is
// when the reference began; one that recorded nothing has a window without length.
void SetLostWindow(recording::Recording* recording) {
  recording->window.stop_reason = "coordinator lost";
  int64_t& zero_ns = recording->reference.zero_monotonic_raw_ns;
  int64_t longest_ns = 0;
  for (const recording::NodeRecord& node : recording->nodes) {
    if (node.stop.gate_end_monotonic_raw_ns == 0) continue;
    if (node.name == recording->reference.node) {
      if (zero_ns == 0) zero_ns = FirstCoveredRawNs(node);
      if (zero_ns == 0) zero_ns = node.stop.gate_end_monotonic_raw_ns;
      recording->window.end_timeline_ns = node.stop.gate_end_monotonic_raw_ns - zero_ns;
      return;
    }
    if (node.start.gate_end_monotonic_raw_ns == 0) continue;
    longest_ns = std::max(
        longest_ns, node.stop.gate_end_monotonic_raw_ns - node.start.gate_end_monotonic_raw_ns);
  }
  recording->window.end_timeline_ns = longest_ns != 0 ? longest_ns : recording->window.requested_ns;
}

}  // namespace

void StopNode(const v1::StopRequest& request, fleet::AgentClient::Timeout timeout,
              const std::stop_token& interrupt, host::Clock* clock, Reporter* reporter,
              NodeProgress* node) {
  absl::StatusOr<v1::StopResponse> stopped = absl::CancelledError("interrupted");
  for (int attempt = 0; attempt < kStopAttempts && !interrupt.stop_requested(); ++attempt) {
    if (attempt > 0) clock->Wait(kSecondNs, interrupt);
    stopped = node->client->Stop(request, timeout);
    if (!absl::IsUnavailable(stopped.status())) break;
  }
  if (stopped.ok()) {
    node->stopped = true;
    reporter->Notes(node->record->name, Apply(*stopped, node->record));
    return;
  }
  const bool start_failed = !std::exchange(node->failure, stopped.status()).ok();
  if (interrupt.stop_requested()) {
    // It was told, or its lease ends it: who interrupts does not wait for its answer.
    node->record->failure = "interrupted before it said that it stopped: its data is still there";
    reporter->Note("error", node->record->name, node->record->failure,
                   "`syncline fetch RUN` ends the recording there, if it still runs, and collects "
                   "the data");
    return;
  }
  if (start_failed && absl::IsNotFound(stopped.status())) {  // it was said; nothing is left there
    node->record->state = NodeState::kMissing;
    return;
  }
  if (absl::IsNotFound(stopped.status())) {
    SetGone(stopped.status(), node);
    return;
  }
  node->record->failure = absl::StrCat("could not be stopped: ", stopped.status().message());
  reporter->Note("error", node->record->name, node->record->failure,
                 "its lease ends the recording there; fetch it after that");
}

absl::StatusOr<Recorded> Finish(const FinishInput& input) {
  input.reporter->Phase("fetching");
  InParallel(input.nodes->size(), kTransfers, [&](size_t i) {
    NodeProgress& node = (*input.nodes)[i];
    if (node.stopped && !node.record->fetched.complete) FetchNode(input, &node);
  });
  SetStates(input.nodes);
  absl::StatusOr<clocksync::BuildResult> models =
      clocks::WriteModels(input.layout, *input.recording);
  if (models.ok()) input.recording->epoch_unix_ns = models->model.epoch_unix_ns();
  absl::Status written = recording::WriteRecording(input.layout.root(), *input.recording);
  if (written.ok()) written = collect::SyncToDisk(input.layout);
  if (written.ok() && absl::IsResourceExhausted(models.status())) written = models.status();
  if (!written.ok()) {
    return absl::Status(written.code(),
                        absl::StrCat(written.message(),
                                     "\nNothing was released: all data is still on the nodes. Free "
                                     "disk space, then: syncline fetch ",
                                     input.layout.root().string()));
  }
  if (!models.ok()) {
    return WithContext(models.status(),
                       absl::StrCat("The recording is in \"", input.layout.root().string(),
                                    "\", but it has no clock model"));
  }
  ReleaseAll(input);
  Recorded recorded{*input.recording, *std::move(models), {}};
  for (const NodeProgress& node : *input.nodes) {
    if (node.gone) recorded.gone_from.insert(node.record->name);
  }
  return recorded;
}

absl::StatusOr<Recorded> Resume(const std::filesystem::path& directory,
                                const std::vector<fleet::Member>& members, host::Clock* clock,
                                Interrupts* interrupts, Observer* observer) {
  SYNCLINE_ASSIGN_OR_RETURN(recording::Recording recording, recording::ReadRecording(directory));
  Reporter reporter(observer);
  std::vector<NodeProgress> nodes;
  for (recording::NodeRecord& record : recording.nodes) {
    const auto member = std::find_if(members.begin(), members.end(), [&](const fleet::Member& one) {
      return one.node.name == record.name;
    });
    if (member == members.end()) continue;
    if (record.state == NodeState::kMissing || record.fetched.complete) continue;
    record.failure.clear();
    nodes.push_back({.client = member->client.get(), .record = &record});
  }
  const std::stop_token interrupt = interrupts->Next();
  reporter.Phase("stopping the nodes that still record");
  InParallel(nodes.size(), kThreadForEach, [&](size_t i) {
    v1::StopRequest request;
    request.set_recording_id(recording.recording_id);
    request.set_reason("fetched");
    StopNode(request, kResumeStopTimeout, interrupt, clock, &reporter, &nodes[i]);
  });
  if (recording.window.stop_reason.empty()) SetLostWindow(&recording);
  return Finish({.recording_id = recording.recording_id,
                 .layout = recording::Layout(directory),
                 .recording = &recording,
                 .nodes = &nodes,
                 .clock = clock,
                 .reporter = &reporter,
                 .interrupt = interrupt});
}

}  // namespace syncline::record
