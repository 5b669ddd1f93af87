// SPDX-License-Identifier: Apache-2.0
#include "coordinator/record/monitor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/parallel.h"

namespace syncline::record {
namespace {

constexpr int64_t kPeriodNs = 500'000'000;
constexpr fleet::AgentClient::Timeout kStatusTimeout{2'000};
constexpr size_t kThreads = 32;

bool Ended(const NodeCounters& node) {
  return node.state == v1::STOPPED || node.state == v1::FAILED || node.state == v1::RELEASED;
}

}  // namespace

Monitor::Monitor(const std::vector<NodeProgress>* nodes, std::string recording_id, int64_t lease_ms,
                 int64_t start_raw_ns, host::Clock* clock, Reporter* reporter)
    : nodes_(*nodes),
      recording_id_(std::move(recording_id)),
      lease_ms_(lease_ms),
      start_raw_ns_(start_raw_ns),
      clock_(*clock),
      reporter_(*reporter),
      counters_(nodes->size()),
      reported_(nodes->size()),
      heard_raw_ns_(nodes->size(), clock->RawNs()),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void Monitor::Run(const std::stop_token& stop) {
  for (size_t i = 0; i < nodes_.size(); ++i) counters_[i].node = nodes_[i].record->name;
  do {
    Ask(stop);
    reporter_.Tell([&](Observer& observer) {
      observer.OnCounters(clock_.RawNs() - start_raw_ns_, counters_);
    });
    bool ended = true;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const bool silent = clock_.RawNs() - heard_raw_ns_[i] > lease_ms_ * 1'000'000;
      ended = ended && (!nodes_[i].started || silent || Ended(counters_[i]));
    }
    all_ended_ = ended;
    clock_.Wait(kPeriodNs, stop);
  } while (!stop.stop_requested());
}

void Monitor::Ask(const std::stop_token& stop) {
  std::vector<std::string> trouble(nodes_.size());
  InParallel(nodes_.size(), kThreads, [&](size_t i) {
    if (!nodes_[i].started) return;
    v1::StatusRequest request;
    request.set_recording_id(recording_id_);
    request.set_renew_lease_ms(lease_ms_);
    const absl::StatusOr<v1::StatusResponse> status =
        nodes_[i].client->Status(request, kStatusTimeout);
    NodeCounters& counters = counters_[i];
    counters.reachable = status.ok();
    if (!status.ok()) {
      trouble[i] = absl::StrCat("does not answer while recording: ", status.status().message());
      return;
    }
    heard_raw_ns_[i] = clock_.RawNs();
    counters.events = status->events_count();
    counters.lost = status->lost_count();
    counters.bytes = status->bytes();
    counters.processes = status->processes_count();
    for (const v1::RecordingInfo& recording : status->recordings()) {
      if (recording.recording_id() != recording_id_) continue;
      counters.state = recording.state();
      // After the end was asked for, this is what was asked for.
      if (Ended(counters) && !stop.stop_requested()) {
        const std::string& why =
            recording.failure().empty() ? recording.stop_reason() : recording.failure();
        trouble[i] = absl::StrCat("stopped recording on its own", why.empty() ? "" : ": ", why);
      }
    }
  });
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (trouble[i].empty()) {
      reported_[i] = false;
    } else if (!reported_[i]) {
      reported_[i] = true;
      reporter_.Note("warning", counters_[i].node, trouble[i]);
    }
  }
}

}  // namespace syncline::record
