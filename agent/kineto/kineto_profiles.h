// SPDX-License-Identifier: Apache-2.0
// Profiles that processes under `syncline run --kineto` make of themselves while they are recorded
// (instrumentation/torch/syncline_kineto.py). They leave them in their user's piece folder, which
// is memory; they are taken from there as they come, and kept below kineto/ in the recording's
// directory. Nobody is asked for anything: what is not there was not wanted.
//
// Thread-safe.
#ifndef SYNCLINE_AGENT_KINETO_KINETO_PROFILES_H_
#define SYNCLINE_AGENT_KINETO_KINETO_PROFILES_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/evidence/evidence_source.h"
#include "agent/evidence/runtime_directories.h"
#include "agent/host/log.h"
#include "agent/host/process_folder.h"
#include "agent/host/process_table.h"
#include "agent/kineto/piece_folder.h"
#include "agent/probe/clock.h"
#include "control_block/block_file.h"
#include "xspace/profile_list.h"

namespace syncline::agent {

struct KinetoOptions {
  std::filesystem::path proc = "/proc";
  // Of one user in one recording; what is beyond is said to be missing.
  uint64_t pieces_max = 4096;
  uint64_t bytes_max = uint64_t{16} << 30;
  uint64_t piece_bytes_max = uint64_t{1} << 30;
  int folder_entries_max = kFolderEntriesMax;
};

class KinetoProfiles : public EvidenceSource {
 public:
  // Neither clock nor log is owned; both outlive this.
  KinetoProfiles(RuntimeDirectories directories, Clock* clock, Log* log, KinetoOptions options = {})
      : directories_(std::move(directories)),
        clock_(clock),
        log_(log),
        options_(std::move(options)) {}

  void Find(const std::vector<uint32_t>&) override {}
  void Begin(const EvidenceWindow& window) override;
  void Adopt(const EvidenceWindow& window) override;
  void End() override {}  // the gate tells the processes
  std::vector<v1::Complaint> Collect() override;

 private:
  using Key = std::tuple<uint32_t, control_block::BlockId, int32_t>;  // user, process and piece
  struct Piece {
    xspace::ProfileRecord record;
    bool settled = false;  // nothing more comes of it
  };
  struct User {
    uint64_t pieces = 0;
    uint64_t bytes = 0;
    bool said = false;          // that there are too many
    std::string list_failure;   // the first one
    std::string clear_failure;  // that old files may be left
  };
  // One round of taking.
  struct Round {
    std::function<bool()> enough;                        // asked before each list and record
    std::optional<std::vector<ProcessEntry>> processes;  // listed when they are first needed
  };

  void Watch(const std::stop_token& stop);
  // nullptr: it is gone, or hidden from the agent.
  const ProcessEntry* Find(const control_block::BlockId& process, Round* round) const;
  // Takes what has come.
  void Take(Round* round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeFrom(uint32_t uid, const std::filesystem::path& runtime, Round* round)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the piece is one of this recording's, and the user may still have one.
  bool Accepts(const Key& key, const xspace::ProfileRecord& record, Round* round)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether pieces of living processes are yet to come.
  bool Awaits(Round* round) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakePiece(const Key& key, const PieceFolder& folder, xspace::ProfileRecord record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<uint64_t> TakeFile(const PieceFolder& folder, const std::string& file,
                                    const std::string& kept, uint64_t bytes_left)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reset(const EvidenceWindow& window) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<v1::Complaint> Complain() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RuntimeDirectories directories_;
  Clock* const clock_;
  Log* const log_;
  const KinetoOptions options_;
  std::mutex mutex_;
  std::string recording_id_ ABSL_GUARDED_BY(mutex_);
  std::filesystem::path directory_ ABSL_GUARDED_BY(mutex_);
  bool adopted_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t begun_monotonic_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, Piece> pieces_ ABSL_GUARDED_BY(mutex_);
  std::map<uint32_t, User> users_ ABSL_GUARDED_BY(mutex_);
  std::jthread watcher_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_KINETO_KINETO_PROFILES_H_
