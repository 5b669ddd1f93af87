// SPDX-License-Identifier: Apache-2.0
#include "coordinator/fleet/fake_agent.h"

#include <openssl/sha.h>

#include <algorithm>
#include <condition_variable>

#include "common/checksum.h"
#include "common/status.h"

namespace syncline::fleet {
namespace {

std::string Sha256(const std::string& bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return std::string(reinterpret_cast<const char*>(digest), sizeof digest);
}

// Answers a few probes, then is silent until it is cancelled: no thread spins in a test.
class FakeClockStream : public ClockStream {
 public:
  FakeClockStream(host::FakeClock* clock, int64_t offset_ns)
      : clock_(*clock), offset_ns_(offset_ns) {}

  absl::StatusOr<Exchange> Probe(uint64_t sequence_number) override {
    constexpr uint64_t kAnswers = 32;
    std::unique_lock<std::mutex> lock(mutex_);
    if (sequence_number > kAnswers) wake_.wait(lock, [this] { return cancelled_; });
    if (cancelled_) return absl::CancelledError("cancelled");
    Exchange exchange;
    exchange.sent_raw_ns = clock_.RawNs();
    exchange.reply.set_sequence_number(sequence_number);
    const auto remote = static_cast<uint64_t>(exchange.sent_raw_ns + 10'000 + offset_ns_);
    exchange.reply.set_t2_monotonic_raw_ns(remote);
    exchange.reply.set_t3_monotonic_raw_ns(remote);
    exchange.received_raw_ns = exchange.sent_raw_ns + 20'000;
    return exchange;
  }
  void Cancel() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    wake_.notify_all();
  }

 private:
  host::FakeClock& clock_;
  const int64_t offset_ns_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool cancelled_ = false;
};

}  // namespace

absl::Status FakeAgent::Enter(const std::string& call, const absl::Status& told) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++calls_[call];
  if (behaviour.dies_while_recording && recording_) {
    return absl::UnavailableError("nothing listens there");
  }
  return told;
}

int FakeAgent::Count(const std::string& call) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = calls_.find(call);
  return found == calls_.end() ? 0 : found->second;
}

v1::PrepareRequest FakeAgent::last_prepare() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_prepare_;
}

v1::StartRequest FakeAgent::last_start() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_start_;
}

v1::FetchRequest FakeAgent::last_fetch() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_fetch_;
}

absl::StatusOr<v1::DescribeResponse> FakeAgent::Describe(const v1::DescribeRequest&, Timeout) {
  SYNCLINE_RETURN_IF_ERROR(Enter("describe", behaviour.describe));
  v1::DescribeResponse response;
  response.set_protocol(behaviour.protocol);
  response.set_agent_version(behaviour.version);
  response.set_hostname("fake");
  for (const v1::NodeTool& tool : behaviour.tools) *response.add_tools() = tool;
  v1::ProcessInfo* const process = response.add_processes();
  process->set_pid(26);
  process->set_own_pid(26);
  process->set_command_line("python train.py");
  process->set_has_control_block(true);
  if (behaviour.blocked) {
    v1::Complaint* const complaint = response.add_complaints();
    complaint->set_severity(v1::Complaint::BLOCKER);
    complaint->set_what("/dev/shm is too small");
    complaint->set_fix("mount it with size=1g");
  }
  return response;
}

absl::StatusOr<v1::PrepareResponse> FakeAgent::Prepare(const v1::PrepareRequest& request, Timeout) {
  SYNCLINE_RETURN_IF_ERROR(Enter("prepare", behaviour.prepare));
  if (behaviour.on_prepare) behaviour.on_prepare();
  const std::lock_guard<std::mutex> lock(mutex_);
  last_prepare_ = request;
  v1::PrepareResponse response;
  response.set_session_name("syncline-" + request.recording_id());
  if (behaviour.has_process) {
    v1::ProcessInfo* const process = response.add_processes();
    process->set_own_pid(7);
    process->set_command_line("python train.py");
    process->set_has_control_block(true);
  }
  return response;
}

absl::StatusOr<v1::StartResponse> FakeAgent::Start(const v1::StartRequest& request, Timeout) {
  SYNCLINE_RETURN_IF_ERROR(Enter("start", behaviour.start));
  const std::lock_guard<std::mutex> lock(mutex_);
  last_start_ = request;
  recording_ = true;
  v1::StartResponse response;
  response.set_gate_begin_monotonic_raw_ns(request.at_monotonic_raw_ns() + 100);
  response.set_gate_end_monotonic_raw_ns(request.at_monotonic_raw_ns() + 200);
  response.set_gate_begin_monotonic_ns(response.gate_begin_monotonic_raw_ns());
  response.set_gate_end_monotonic_ns(response.gate_end_monotonic_raw_ns());
  response.set_processes_switched_count(1);
  return response;
}

absl::StatusOr<v1::StopResponse> FakeAgent::Stop(const v1::StopRequest& request, Timeout) {
  SYNCLINE_RETURN_IF_ERROR(Enter("stop", behaviour.stop));
  if (behaviour.on_stop) behaviour.on_stop();
  const std::lock_guard<std::mutex> lock(mutex_);
  recording_ = false;
  v1::StopResponse response;
  // An agent that is asked to stop now, and not at an instant, is asked long after that.
  const int64_t now_ns = last_start_.at_monotonic_raw_ns() + 3'600'000'000'000;
  const int64_t asked_ns =
      request.at_monotonic_raw_ns() != 0 ? request.at_monotonic_raw_ns() : now_ns;
  const int64_t closed_ns = asked_ns - behaviour.early_end_ns;
  response.set_gate_begin_monotonic_raw_ns(closed_ns + 100);
  response.set_gate_end_monotonic_raw_ns(closed_ns + 200);
  response.set_gate_begin_monotonic_ns(response.gate_begin_monotonic_raw_ns());
  response.set_gate_end_monotonic_ns(response.gate_end_monotonic_raw_ns());
  response.set_complete(true);
  response.set_stop_reason(behaviour.stop_reason);
  if (behaviour.has_process) {
    v1::ProcessCoverage* const coverage = response.add_coverage();
    coverage->set_own_pid(7);
    if (behaviour.on_after_start_ns != 0) {
      coverage->set_on_monotonic_ns(last_start_.at_monotonic_raw_ns() +
                                    behaviour.on_after_start_ns);
      coverage->set_off_monotonic_ns(request.at_monotonic_raw_ns() + behaviour.off_after_stop_ns);
    }
  }
  v1::ChannelResult* const channel = response.add_channels();
  channel->set_name("syncline");
  channel->set_discarded_events_valid(true);
  channel->set_discarded_events_count(behaviour.discarded_events);
  if (behaviour.change_stopped) behaviour.change_stopped(&response);
  return response;
}

absl::StatusOr<v1::StatusResponse> FakeAgent::Status(const v1::StatusRequest& request, Timeout) {
  SYNCLINE_RETURN_IF_ERROR(Enter("status", behaviour.status));
  v1::StatusResponse response;
  v1::RecordingInfo* const info = response.add_recordings();
  info->set_recording_id(request.recording_id());
  info->set_state(v1::RECORDING);
  response.set_events_count(1000);
  return response;
}

absl::StatusOr<v1::ReleaseResponse> FakeAgent::Release(const v1::ReleaseRequest&, Timeout) {
  SYNCLINE_RETURN_IF_ERROR(Enter("release", behaviour.release));
  v1::ReleaseResponse response;
  response.set_existed(true);
  return response;
}

absl::Status FakeAgent::Fetch(const v1::FetchRequest& request, Timeout, const ChunkSink& sink) {
  SYNCLINE_RETURN_IF_ERROR(Enter("fetch", absl::OkStatus()));
  const bool breaks = behaviour.break_after_chunks >= 0 && Count("fetch") <= behaviour.break_times;
  int chunks = 0;
  const auto send = [&](v1::FetchChunk& chunk) -> absl::Status {
    if (breaks && chunks++ >= behaviour.break_after_chunks) {
      return absl::UnavailableError("the connection broke");
    }
    if (behaviour.chunk_pause_ns > 0) clock_.Wait(behaviour.chunk_pause_ns, {});
    return sink(chunk);
  };
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    last_fetch_ = request;
  }
  v1::FetchChunk list;
  list.mutable_list();
  for (const auto& [path, bytes] : files) {
    v1::FileEntry* const entry = list.mutable_list()->add_files();
    entry->set_path(path);
    entry->set_size_bytes(bytes.size());
  }
  SYNCLINE_RETURN_IF_ERROR(send(list));
  for (const auto& [path, listed] : files) {
    const std::string bytes = listed + behaviour.beyond_the_list;
    size_t offset = 0;
    for (const v1::FetchResume& resume : request.resume()) {
      if (resume.path() == path) offset = resume.offset_bytes();
    }
    while (offset < bytes.size()) {
      v1::FetchChunk chunk;
      v1::FileData* const data = chunk.mutable_data();
      data->set_path(path);
      data->set_offset_bytes(offset);
      data->set_data(bytes.substr(offset, chunk_bytes));
      data->set_crc32c(Crc32c(data->data()));
      if (path == behaviour.damage_path && behaviour.damage_times > 0) {
        --behaviour.damage_times;
        (*data->mutable_data())[0] ^= 1;
      }
      offset += data->data().size();
      SYNCLINE_RETURN_IF_ERROR(send(chunk));
    }
    if (path == behaviour.unfinished_path) continue;
    v1::FetchChunk end;
    end.mutable_end()->set_path(path);
    end.mutable_end()->set_size_bytes(bytes.size());
    end.mutable_end()->set_sha256(behaviour.lie_about_hash ? std::string(32, 'x') : Sha256(bytes));
    SYNCLINE_RETURN_IF_ERROR(send(end));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ClockStream>> FakeAgent::OpenClockStream() {
  SYNCLINE_RETURN_IF_ERROR(Enter("clock", behaviour.clock));
  return std::make_unique<FakeClockStream>(&clock_, behaviour.clock_offset_ns);
}

}  // namespace syncline::fleet
