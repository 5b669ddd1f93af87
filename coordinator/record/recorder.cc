// SPDX-License-Identifier: Apache-2.0
#include "coordinator/record/recorder.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/parallel.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/clocks/models.h"
#include "coordinator/record/finish.h"
#include "coordinator/record/translate.h"
#include "coordinator/record/vtune_nodes.h"

namespace syncline::record {
namespace {

using recording::NodeState;
using std::chrono::milliseconds;

constexpr int64_t kMillisecondNs = 1'000'000;
constexpr milliseconds kDescribeTimeout{10'000};
// Creating sessions and allocating buffers takes hundreds of ms, seconds when a process hangs.
constexpr milliseconds kPrepareTimeout{60'000};
constexpr milliseconds kReleaseTimeout{20'000};
constexpr milliseconds kFlushTimeout{60'000};
constexpr milliseconds kPartingTimeout{1'000};
// For clock samples and recording.json (guess: an hour of a small fleet); the nodes' data is asked
// about when its size is known.
constexpr uint64_t kDiskFreeMin = 8 << 20;
constexpr uint64_t kSamplesToStart = 16;
constexpr milliseconds kClockPatience{5'000};

// How long before an instant the nodes must be told of it: a round trip and some scheduling, more
// for a large fleet (guess: 2 ms a node for the calls of one coordinator).
int64_t LeadNs(size_t nodes) {
  return 300 * kMillisecondNs + static_cast<int64_t>(nodes) * 2 * kMillisecondNs;
}

milliseconds AfterInstant(int64_t lead_ns, milliseconds then) {
  return milliseconds(lead_ns / kMillisecondNs) + then;
}

std::string DetailName(v1::Detail detail) {
  switch (detail) {
    case v1::DETAIL_NORMAL:
      return "normal";
    case v1::DETAIL_LOW:
      return "low";
    default:
      return "full";
  }
}

bool IsEmptyDirectory(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) && std::filesystem::is_empty(path, error);
}

// Ends the running calls of all nodes when a token stops.
class Canceller {
 public:
  Canceller(const std::vector<NodeProgress>& nodes, const std::stop_token& stop)
      : callback_(stop, Cancel{&nodes}) {}

 private:
  struct Cancel {
    const std::vector<NodeProgress>* nodes;
    void operator()() const {
      for (const NodeProgress& node : *nodes) node.client->Cancel();
    }
  };
  std::stop_callback<Cancel> callback_;
};

}  // namespace

absl::Status FailureOf(std::string_view what, const std::vector<NodeProgress>& nodes,
                       std::string_view advice) {
  constexpr size_t kShownMax = 20;
  absl::StatusCode code = absl::StatusCode::kOk;
  size_t failed = 0;
  std::string lines;
  for (const NodeProgress& node : nodes) {
    if (node.failure.ok() || !node.takes_part) continue;
    if (failed++ == 0) code = node.failure.code();
    if (failed > kShownMax) continue;
    absl::StrAppend(&lines, "\n  ", node.record->name, " (", node.record->address,
                    "): ", node.failure.message());
  }
  if (failed == 0) return absl::OkStatus();
  if (failed > kShownMax) absl::StrAppend(&lines, "\n  ... and ", failed - kShownMax, " more");
  return absl::Status(code, absl::StrCat(failed, " of ", nodes.size(), " nodes ", AbslView(what),
                                         AbslView(advice), ":", lines));
}

Recorder::Recorder(const std::vector<fleet::Member>* members, RecordOptions options,
                   host::Clock* clock, Interrupts* interrupts, Observer* observer)
    : members_(*members),
      options_(std::move(options)),
      clock_(*clock),
      interrupts_(*interrupts),
      reporter_(observer),
      layout_(options_.directory) {
  recording_.recording_id = options_.recording_id;
  recording_.created_by = options_.created_by;
  recording_.window.requested_ns = options_.window_ns;
  const auto& extra_events = options_.prepare.extra_events();
  recording_.extra_events.assign(extra_events.begin(), extra_events.end());
  recording_.detail = DetailName(options_.prepare.detail());
  recording_.nodes.resize(members_.size());
  for (size_t i = 0; i < members_.size(); ++i) {
    recording_.nodes[i].name = members_[i].node.name;
    recording_.nodes[i].address = members_[i].node.Address();
    recording_.nodes[i].role = members_[i].node.role;
    nodes_.push_back({.client = members_[i].client.get(), .record = &recording_.nodes[i]});
  }
  options_.prepare.set_recording_id(options_.recording_id);
  options_.prepare.set_holder(
      absl::StrCat(options_.created_by.user, "@", options_.created_by.host));
  options_.prepare.set_lease_ms(options_.lease_ms);
}

Recorder::~Recorder() = default;

absl::StatusOr<Recorded> Recorder::Run() {
  SYNCLINE_RETURN_IF_ERROR(MakeDirectory());
  absl::Status status;
  {
    // Until T an interrupt ends the running calls, and with them the recording.
    const std::stop_token interrupt = interrupts_.First();
    const Canceller canceller(nodes_, interrupt);
    const auto phase = [&](std::string_view what, void (Recorder::*work)()) {
      if (!status.ok()) return;
      (this->*work)();
      status = interrupt.stop_requested()
                   ? absl::CancelledError("interrupted: nothing was recorded")
                   : Settle(what);
    };
    reporter_.Phase(absl::StrCat("asking ", nodes_.size(), " nodes"));
    phase("cannot participate", &Recorder::DescribeAll);
    if (status.ok()) status = CheckTools();
    if (status.ok()) reporter_.Phase("measuring clocks");
    phase("have no usable clock", &Recorder::ProbeClocks);
    if (status.ok()) reporter_.Phase(absl::StrCat("preparing ", TakingPart(), " nodes"));
    phase("cannot be prepared", &Recorder::PrepareAll);
  }
  if (status.ok()) status = StartAll();
  if (!status.ok()) {
    RollBack();
    return status;
  }
  Watch();
  StopAll();
  // Whoever completes this later knows when the window ended. A full disk is told by Finish().
  recording::WriteRecording(layout_.root(), recording_).IgnoreError();
  return Finish({.recording_id = options_.recording_id,
                 .layout = layout_,
                 .recording = &recording_,
                 .nodes = &nodes_,
                 .clock = &clock_,
                 .reporter = &reporter_,
                 .interrupt = interrupts_.Leave()});
}

absl::Status Recorder::MakeDirectory() {
  std::error_code error;
  if (std::filesystem::exists(layout_.RecordingJson(), error)) {
    return absl::AlreadyExistsError(
        absl::StrCat("\"", layout_.root().string(),
                     "\" already holds a recording; choose another directory with --out"));
  }
  if (std::filesystem::exists(layout_.root(), error) && !IsEmptyDirectory(layout_.root())) {
    return absl::FailedPreconditionError(
        absl::StrCat("\"", layout_.root().string(), "\" is not empty and not a recording; choose ",
                     "another directory with --out"));
  }
  made_directory_ = !std::filesystem::exists(layout_.root(), error);
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(layout_.Clocks()));
  const std::filesystem::space_info space = std::filesystem::space(layout_.root(), error);
  if (error || space.available >= kDiskFreeMin) return absl::OkStatus();
  Remove();
  return absl::ResourceExhaustedError(
      absl::StrCat("this machine's disk is too full for a recording: ", space.available >> 20,
                   " MiB are free in \"", layout_.root().string(),
                   "\"; free disk space, or choose another directory with --out"));
}

void Recorder::DescribeAll() {
  InParallel(nodes_.size(), 128, [&](size_t i) {
    NodeProgress& node = nodes_[i];
    absl::StatusOr<v1::DescribeResponse> description = node.client->Describe({}, kDescribeTimeout);
    if (!description.ok()) {
      node.failure = description.status();
      return;
    }
    AddVersionComplaint(options_.created_by.version, &*description);
    reporter_.Tell([&](Observer& observer) { observer.OnNode(node.record->name, *description); });
    if (options_.prepare.has_vtune()) node.no_vtune = WhyNoVtune(*description);
    for (const v1::Complaint& complaint : description->complaints()) {
      const recording::ComplaintRecord record = FromComplaint(complaint);
      node.record->complaints.push_back(record);
      if (complaint.severity() != v1::Complaint::BLOCKER) continue;
      node.failure = absl::FailedPreconditionError(
          record.fix.empty() ? record.what : absl::StrCat(record.what, ": ", record.fix));
    }
  });
}

absl::Status Recorder::CheckTools() {
  if (!options_.prepare.has_vtune()) return absl::OkStatus();
  SYNCLINE_RETURN_IF_ERROR(CheckVtune(nodes_));
  for (NodeProgress& node : nodes_) {
    if (!node.takes_part || node.no_vtune.empty()) continue;
    node.record->complaints.push_back(
        {.severity = "warning",
         .what = absl::StrCat("recorded without VTune: ", node.no_vtune),
         .fix = "docs/vtune.md"});
    reporter_.Notes(node.record->name, {node.record->complaints.back()});
  }
  return absl::OkStatus();
}

void Recorder::ProbeClocks() {
  std::vector<clocks::ProbeTarget> targets;
  for (const NodeProgress& node : nodes_) {
    targets.push_back({node.record->name, node.client,
                       layout_.Samples(recording::kCoordinatorName, node.record->name)});
  }
  prober_ = std::make_unique<clocks::Prober>(std::move(targets), &clock_);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].takes_part) prober_->Abandon(i);
  }
  prober_->Await(kSamplesToStart, kClockPatience, interrupts_.First());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].takes_part || prober_->SampleCount(i) > 0) continue;
    const absl::Status why = prober_->StatusOf(i);
    nodes_[i].failure = absl::UnavailableError(absl::StrCat(
        "its clock cannot be read: ", why.ok() ? "no probe was answered" : why.message()));
  }
  std::vector<clocks::PeerTarget> peers;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].takes_part || !nodes_[i].failure.ok()) continue;
    const hosts::Node& node = members_[i].node;
    peers.push_back({node.name, node.local() ? "" : node.Address(), nodes_[i].client});
  }
  peers_ = std::make_unique<clocks::PeerProbing>(std::move(peers), layout_);
}

void Recorder::PrepareAll() {
  InParallel(nodes_.size(), kThreadForEach, [&](size_t i) {
    NodeProgress& node = nodes_[i];
    if (!node.takes_part) return;
    node.prepare_sent = true;
    v1::PrepareRequest request = options_.prepare;
    if (!node.no_vtune.empty()) request.clear_vtune();
    const absl::StatusOr<v1::PrepareResponse> ready =
        node.client->Prepare(request, kPrepareTimeout);
    if (!ready.ok()) {
      node.failure = ready.status();
      return;
    }
    reporter_.Notes(node.record->name, Apply(*ready, node.record));
  });
}

absl::Status Recorder::StartAll() {
  const std::vector<clocksync::Edge> edges = Edges();
  SYNCLINE_ASSIGN_OR_RETURN(reference_, clocks::ChooseReference(edges));
  prober_->Hurry(5'000 * kMillisecondNs);
  peers_->Hurry(5'000 * kMillisecondNs);
  // From here on there may be data on the nodes: whoever reads the directory later must find them.
  for (NodeProgress& node : nodes_) {
    if (node.takes_part) node.record->state = NodeState::kLeft;
  }
  recording_.reference.node = nodes_[reference_].record->name;
  SYNCLINE_RETURN_IF_ERROR(WriteBeginning());

  const int64_t lead_ns = LeadNs(nodes_.size());
  start_raw_ns_ = clock_.RawNs() + lead_ns;
  const int64_t zero_ns = clocks::ToRemote(edges[reference_], start_raw_ns_);
  SYNCLINE_ASSIGN_OR_RETURN(const auto instants,
                            clocks::InstantInNodes(edges, reference_, zero_ns));
  recording_.reference.zero_monotonic_raw_ns = zero_ns;
  InParallel(nodes_.size(), kThreadForEach, [&](size_t i) {
    NodeProgress& node = nodes_[i];
    if (!node.takes_part) return;
    v1::StartRequest request;
    request.set_recording_id(options_.recording_id);
    request.set_at_monotonic_raw_ns(instants[i].value_or(0));
    request.set_window_ns(options_.window_ns);
    node.record->start.requested_monotonic_raw_ns = request.at_monotonic_raw_ns();
    const absl::StatusOr<v1::StartResponse> started =
        node.client->Start(request, AfterInstant(lead_ns, milliseconds(15'000)));
    node.started = started.ok();
    if (started.ok()) {
      reporter_.Notes(node.record->name, Apply(*started, node.record));
      return;
    }
    node.failure = started.status();
    node.record->failure = absl::StrCat("did not start: ", started.status().message());
    reporter_.Note("error", node.record->name, node.record->failure);
  });
  const bool any = std::any_of(nodes_.begin(), nodes_.end(),
                               [](const NodeProgress& node) { return node.started; });
  if (!any) return FailureOf("did not start", nodes_, "");
  return WriteBeginning();
}

absl::Status Recorder::WriteBeginning() {
  const absl::Status written = recording::WriteRecording(layout_.root(), recording_);
  if (!absl::IsResourceExhausted(written)) return written;
  return absl::ResourceExhaustedError(
      absl::StrCat(written.message(),
                   "\nThis machine's disk is full, so nothing was recorded: free disk space, or "
                   "choose another directory with --out"));
}

void Recorder::Watch() {
  const std::stop_token interrupt = interrupts_.First();
  reporter_.Phase("recording");
  monitor_ = std::make_unique<Monitor>(&nodes_, options_.recording_id, options_.lease_ms,
                                       start_raw_ns_, &clock_, &reporter_);
  const bool endless = options_.window_ns == 0;
  const int64_t end_ns = start_raw_ns_ + options_.window_ns - LeadNs(nodes_.size());
  while (!interrupt.stop_requested() && !monitor_->all_ended()) {
    const int64_t left_ns = end_ns - clock_.RawNs();
    if (!endless && left_ns <= 0) break;
    constexpr int64_t kStepNs = 100 * kMillisecondNs;
    clock_.Wait(endless ? kStepNs : std::min(left_ns, kStepNs), interrupt);
  }
  recording_.window.stop_reason = interrupt.stop_requested() ? "interrupted"
                                  : monitor_->all_ended()    ? "lost nodes"
                                                             : "requested";
  // Its last round may wait for a node that hangs; the others are stopped meanwhile.
  monitor_->Quiet();
}

void Recorder::StopAll() {
  if (!interrupts_.First().stop_requested()) reporter_.Phase("stopping");
  prober_->Hurry(5'000 * kMillisecondNs);
  peers_->Hurry(5'000 * kMillisecondNs);
  const std::vector<clocksync::Edge> edges = Edges();
  const int64_t lead_ns = LeadNs(nodes_.size());
  int64_t end_ns = recording_.reference.zero_monotonic_raw_ns + options_.window_ns;
  if (recording_.window.stop_reason != "requested") {
    // Soon, but at one instant for all.
    end_ns = clocks::ToRemote(edges[reference_], clock_.RawNs() + lead_ns);
  }
  recording_.window.end_timeline_ns = end_ns - recording_.reference.zero_monotonic_raw_ns;
  const auto instants = clocks::InstantInNodes(edges, reference_, end_ns);
  // The first press means "stop and keep everything": that is being done.
  const std::stop_callback patience(interrupts_.First(), [this] {
    reporter_.Phase("stopping; Ctrl-C once more leaves the data on the nodes");
  });
  const std::stop_token interrupt = interrupts_.Second();
  const Canceller canceller(nodes_, interrupt);
  InParallel(nodes_.size(), kThreadForEach, [&](size_t i) {
    NodeProgress& node = nodes_[i];
    if (!node.takes_part) return;
    v1::StopRequest request;
    request.set_recording_id(options_.recording_id);
    request.set_reason(recording_.window.stop_reason);
    if (instants.ok()) request.set_at_monotonic_raw_ns((*instants)[i].value_or(0));
    node.record->stop.requested_monotonic_raw_ns = request.at_monotonic_raw_ns();
    StopNode(request, AfterInstant(lead_ns, kFlushTimeout), interrupt, &clock_, &reporter_, &node);
    if (node.stopped || !interrupt.stop_requested()) return;
    // It may have been cut off before it was sent. Told once more, the node does not go on until
    // its lease ends; its answer is not needed.
    node.client->Stop(request, kPartingTimeout).IgnoreError();
  });
  monitor_.reset();
  // A last burst after the end of the window, so that no node's model has to extrapolate into it.
  prober_->Hurry(kMillisecondNs * 1'000);
  clock_.Wait(300 * kMillisecondNs, interrupt);
  prober_->Stop();
  peers_->Stop();
}

void Recorder::RollBack() {
  if (prober_ != nullptr) prober_->Stop();
  if (peers_ != nullptr) peers_->Stop();
  bool left = false;
  std::vector<absl::Status> released(nodes_.size());
  InParallel(nodes_.size(), 128, [&](size_t i) {
    if (!nodes_[i].prepare_sent) return;
    v1::ReleaseRequest request;
    request.set_recording_id(options_.recording_id);
    request.set_even_if_not_fetched(true);
    const auto response = nodes_[i].client->Release(request, kReleaseTimeout);
    if (!response.ok() && !absl::IsNotFound(response.status())) released[i] = response.status();
  });
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (released[i].ok()) continue;
    left = true;
    reporter_.Note(
        "warning", nodes_[i].record->name,
        absl::StrCat("could not be rolled back: ", released[i].message()),
        absl::StrCat("the recording there ends when its lease expires; `syncline release ",
                     options_.recording_id, "` deletes it"));
  }
  if (!left) Remove();
}

void Recorder::Remove() {
  std::error_code ignored;
  std::filesystem::remove_all(layout_.Clocks(), ignored);
  std::filesystem::remove_all(layout_.root() / "nodes", ignored);
  std::filesystem::remove(layout_.RecordingJson(), ignored);
  if (made_directory_) std::filesystem::remove(layout_.root(), ignored);
}

absl::Status Recorder::Settle(std::string_view phase) {
  const absl::Status failure = FailureOf(
      phase, nodes_, options_.allow_missing ? "" : " (--allow-missing continues without them)");
  if (failure.ok()) return absl::OkStatus();
  if (!options_.allow_missing) return failure;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    NodeProgress& node = nodes_[i];
    if (node.failure.ok() || !node.takes_part) continue;
    node.takes_part = false;
    node.record->failure = std::string(node.failure.message());
    reporter_.Note("warning", node.record->name, absl::StrCat("skipped: ", node.failure.message()));
    if (prober_ != nullptr) prober_->Abandon(i);
    if (!node.prepare_sent) continue;
    v1::ReleaseRequest request;
    request.set_recording_id(options_.recording_id);
    request.set_even_if_not_fetched(true);
    (void)node.client->Release(request, kReleaseTimeout);
  }
  return TakingPart() > 0 ? absl::OkStatus() : failure;
}

size_t Recorder::TakingPart() const {
  return static_cast<size_t>(std::count_if(
      nodes_.begin(), nodes_.end(), [](const NodeProgress& node) { return node.takes_part; }));
}

std::vector<clocksync::Edge> Recorder::Edges() const {
  std::vector<clocksync::Edge> edges;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    edges.push_back(prober_->EdgeOf(i));
    if (!nodes_[i].takes_part) edges.back().samples.clear();
  }
  return edges;
}

}  // namespace syncline::record
