// SPDX-License-Identifier: Apache-2.0
#include "agent/vtune/vtune_collector.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/parallel.h"
#include "common/process_part.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kSettlePeriod = milliseconds(50);
constexpr uint64_t kKeepFreeBytes = uint64_t{256} << 20;  // as a recording does without being told

// `pid`: 0 concerns the node.
v1::Complaint Warning(int32_t pid, const std::string& what) {
  v1::Complaint complaint;
  complaint.set_severity(v1::Complaint::WARNING);
  complaint.set_pid(pid);
  complaint.set_what(what);
  complaint.set_fix("the rest of the recording is not affected; docs/vtune.md");
  return complaint;
}

std::string NameOf(const vtune::ResultRecord& record) {
  return record.rank < 0 ? absl::StrCat("process ", record.pid)
                         : absl::StrCat("rank ", record.rank, " (process ", record.pid, ")");
}

}  // namespace

vtune::Request VtuneRequestOf(const v1::VtuneRequest& request) {
  return {.analysis = request.analysis(),
          .knobs = {request.knobs().begin(), request.knobs().end()},
          .data_limit_mb = request.data_limit_mb(),
          .ring_buffer_s = request.ring_buffer_s()};
}

// One recording's. Waits in real time: another program is waited for.
class VtuneCollector::Run {
 public:
  Run(const VtuneOptions& options, Log* log) : options_(options), log_(log) {}

  void Add(const v1::ProcessInfo& process, const v1::NodeTool& vtune,
           const vtune::Request& request) {
    collections_.push_back(std::make_unique<Collection>(&options_.tools, process, vtune, request));
  }
  void Fail(const std::string& what) { complaints_.push_back(Warning(0, what)); }
  bool empty() const { return collections_.empty(); }

  // The thread's work.
  void Work(const std::stop_token& stop) {
    for (const auto& one : collections_) one->Start();
    const auto limit = steady_clock::now() + milliseconds(options_.start_limit_ms);
    while (!AllSettled() && !stop.stop_requested() && steady_clock::now() < limit) {
      Wait(kSettlePeriod, stop);
    }
    for (const auto& one : collections_) one->GiveUpWaiting();
    Tell([&] { attached_ = true; });
    AwaitWindow(stop);
    if (window_.has_value()) {
      Wait(std::chrono::nanoseconds(window_->start_raw_ns - clock()->RawNs()), stop);
      All([](Collection* one) { one->Resume(); });
      WriteRecords("the agent ended before it had kept the result");
      if (window_->length_ns > 0) {
        const int64_t start_ns = std::max(window_->start_raw_ns, begun_raw_ns_);
        Wait(std::chrono::nanoseconds(start_ns + window_->length_ns - clock()->RawNs()), stop);
      } else {
        Wait(std::chrono::hours(24 * 365), stop);
      }
    }
    All([](Collection* one) { one->Stop(); });
    const auto end = steady_clock::now() + milliseconds(options_.end_limit_ms);
    for (const auto& one : collections_) one->AwaitEnd(LeftMs(end));
    Keep();
  }

  // Until VTune is attached everywhere, or is not waited for.
  void AwaitAttached() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return attached_; });
  }

  void Begin(const EvidenceWindow& window) {
    Tell([&] {
      if (window_.has_value()) return;
      window_ = window;
      begun_raw_ns_ = clock()->RawNs();
    });
  }

  // When the thread has ended.
  std::vector<v1::Complaint> TakeComplaints() {
    for (const auto& one : collections_) {
      const vtune::ResultRecord& record = one->record();
      if (record.problem.empty()) continue;
      complaints_.push_back(
          Warning(record.pid, absl::StrCat("VTune on ", NameOf(record), ": ", record.problem)));
    }
    return std::exchange(complaints_, {});
  }

 private:
  Clock* clock() const { return options_.tools.clock; }

  static int LeftMs(steady_clock::time_point end) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
    return static_cast<int>(std::max<int64_t>(0, left.count()));
  }

  bool AllSettled() {
    return std::all_of(collections_.begin(), collections_.end(),
                       [](const auto& one) { return one->IsSettled(); });
  }

  template <class Work>
  void All(const Work& work) {
    InParallel(collections_.size(), kThreadForEach, [&](size_t i) { work(collections_[i].get()); });
  }

  template <class Change>
  void Tell(const Change& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

  template <class Duration>
  void Wait(Duration duration, const std::stop_token& stop) {
    if (duration.count() <= 0) return;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, duration, [] { return false; });
  }

  // Or until it is over before it began.
  void AwaitWindow(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [this] { return window_.has_value(); });
  }

  std::filesystem::path FolderOf(const Collection& one) const {
    return window_->directory / vtune::kFolder / absl::StrCat(one.record().pid);
  }

  void WriteRecord(const Collection& one, const std::string& problem) {
    vtune::ResultRecord record = one.record();
    if (record.problem.empty()) record.problem = problem;
    const std::filesystem::path folder = FolderOf(one);
    absl::Status written = MakeDirectories(folder, 0700);
    if (written.ok()) {
      written = WriteFileAtomically(folder / vtune::kRecordFile, vtune::FormatRecord(record), 0600);
    }
    log_->Failure("vtune", written);
  }

  // For who fetches the recording if this agent does not come to the end.
  void WriteRecords(const std::string& problem) {
    for (const auto& one : collections_) {
      WriteRecord(*one, absl::StrCat(problem, ": look in ", one->WorkPath(), " on the node"));
    }
  }

  // What the recording's disk takes without becoming full.
  uint64_t RoomBytes() const {
    std::error_code error;
    const auto space = std::filesystem::space(window_->directory, error);
    return error || space.available < kKeepFreeBytes ? 0 : space.available - kKeepFreeBytes;
  }

  void Keep() {
    const auto end = steady_clock::now() + milliseconds(options_.copy_limit_ms);
    uint64_t bytes = 0;
    for (const auto& one : collections_) {
      if (!window_.has_value()) {
        one->Discard();
        continue;
      }
      const CopyLimits limits = {.bytes_max = std::min(options_.bytes_max - bytes, RoomBytes()),
                                 .late = [&] { return steady_clock::now() > end; }};
      one->Keep(FolderOf(*one) / vtune::kResultFolder, limits);
      bytes += one->record().bytes;
      WriteRecord(*one, "");
      log_->Line(one->record().problem.empty() ? LogLevel::kInfo : LogLevel::kWarning, "vtune",
                 {{"pid", absl::StrCat(one->record().pid)},
                  {"bytes", absl::StrCat(one->record().bytes)},
                  {"failure", one->record().problem}});
    }
  }

  const VtuneOptions& options_;
  Log* const log_;
  std::vector<std::unique_ptr<Collection>> collections_;  // the thread's own, while there is one
  std::vector<v1::Complaint> complaints_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool attached_ = false;                 // under mutex_
  std::optional<EvidenceWindow> window_;  // written once, under mutex_
  int64_t begun_raw_ns_ = 0;              // so, too
};

VtuneCollector::VtuneCollector(Processes processes, VtuneFinder* finder, Log* log,
                               VtuneOptions options)
    : processes_(std::move(processes)), finder_(finder), log_(log), options_(std::move(options)) {}

VtuneCollector::~VtuneCollector() = default;

void VtuneCollector::Configure(const v1::PrepareRequest& request) {
  const std::lock_guard lock(mutex_);
  request_ = request;
}

std::vector<v1::ProcessInfo> VtuneCollector::Ranks(const std::vector<uint32_t>& left_out,
                                                   Run* run) const {
  std::vector<v1::Complaint> said_elsewhere;
  std::vector<v1::ProcessInfo> ranks;
  std::vector<v1::ProcessInfo> others;
  for (v1::ProcessInfo& process : processes_(&said_elsewhere)) {
    const bool served = std::count(left_out.begin(), left_out.end(), process.uid()) == 0;
    if (!served || process.pid() == 0) continue;  // 0: out of sight
    // Launchers, loader workers and children are not attached to: each costs as much as its rank.
    if (process.part() == kPartRank)
      ranks.push_back(std::move(process));
    else if (process.part().empty())
      others.push_back(std::move(process));
  }
  if (ranks.empty()) ranks = std::move(others);  // a program that is no distributed job
  if (ranks.empty()) run->Fail("VTune found no process to attach to on this node");
  if (ranks.size() > options_.processes_max) {
    run->Fail(absl::StrCat("VTune attaches to ", options_.processes_max, " of ", ranks.size(),
                           " ranks of this node: that is the most at a time"));
    ranks.resize(options_.processes_max);
  }
  return ranks;
}

void VtuneCollector::Find(const std::vector<uint32_t>& left_out) {
  const std::lock_guard lock(mutex_);
  thread_ = {};  // of a recording that did not come to be; bounded
  run_ = std::make_unique<Run>(options_, log_);
  const std::optional<v1::NodeTool> vtune = finder_->Find();
  if (!vtune.has_value()) return run_->Fail("VTune is not installed on this node");
  if (!vtune->problem().empty()) {
    return run_->Fail(absl::StrCat("VTune is not used: ", vtune->problem()));
  }
  for (const v1::ProcessInfo& process : Ranks(left_out, run_.get())) {
    run_->Add(process, *vtune, VtuneRequestOf(request_.vtune()));
  }
  if (run_->empty()) return;
  thread_ = std::jthread([run = run_.get()](const std::stop_token& stop) { run->Work(stop); });
  run_->AwaitAttached();
}

void VtuneCollector::Begin(const EvidenceWindow& window) {
  const std::lock_guard lock(mutex_);
  if (run_ != nullptr) run_->Begin(window);
}

void VtuneCollector::End() {
  const std::lock_guard lock(mutex_);
  thread_.request_stop();
}

std::vector<v1::Complaint> VtuneCollector::Collect() {
  const std::lock_guard lock(mutex_);
  thread_ = {};  // it has time limits
  if (run_ == nullptr) return {};
  std::vector<v1::Complaint> complaints = run_->TakeComplaints();
  run_.reset();
  return complaints;
}

}  // namespace syncline::agent
