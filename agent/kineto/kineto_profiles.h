// Profiles that processes under `syncline run --kineto` make of themselves while they are recorded
// (instrumentation/torch/syncline_kineto.py). They leave them in kineto/ below their user's runtime
// directory, which is memory; they are taken from there as they come, and kept below kineto/ in the
// recording's directory. Nobody is asked for anything: what is not there was not wanted.
//
// Every byte and every file there is the process's: owner, kind and size are checked, and no link
// is followed. Thread-safe.
#ifndef SYNCLINE_AGENT_KINETO_KINETO_PROFILES_H_
#define SYNCLINE_AGENT_KINETO_KINETO_PROFILES_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/log.h"
#include "agent/probe/clock.h"
#include "agent/recording/operator_profiles.h"
#include "xspace/profile_list.h"

namespace syncline::agent {

// A user and the runtime directory of the user's processes.
using RuntimeDirectories = std::function<std::vector<std::pair<uint32_t, std::filesystem::path>>()>;

class KinetoProfiles : public OperatorProfiles {
 public:
  // None is owned; all outlive this.
  KinetoProfiles(RuntimeDirectories directories, Clock* clock, Log* log,
                 std::filesystem::path proc = "/proc")
      : directories_(std::move(directories)), clock_(clock), log_(log), proc_(std::move(proc)) {}

  void Find() override {}
  void Begin(const ProfileWindow& window) override;
  void End() override {}  // the gate tells the processes
  std::vector<v1::Complaint> Collect() override;

 private:
  using Key = std::tuple<uint64_t, int32_t, uint64_t, int32_t>;  // process and piece

  void Watch(const std::stop_token& stop);
  // Takes what has come. How many pieces of living processes are yet to come.
  int Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeFrom(uint32_t uid, int directory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakePiece(uint32_t uid, int directory, xspace::ProfileRecord record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveLeftovers();
  std::vector<v1::Complaint> Complain() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RuntimeDirectories directories_;
  Clock* const clock_;
  Log* const log_;
  const std::filesystem::path proc_;
  std::mutex mutex_;
  std::string recording_id_ ABSL_GUARDED_BY(mutex_);
  std::filesystem::path directory_ ABSL_GUARDED_BY(mutex_);
  int64_t begun_realtime_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, xspace::ProfileRecord> records_ ABSL_GUARDED_BY(mutex_);
  std::set<Key> taken_ ABSL_GUARDED_BY(mutex_);
  std::jthread watcher_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_KINETO_KINETO_PROFILES_H_
