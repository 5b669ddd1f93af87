// SPDX-License-Identifier: Apache-2.0
// The job of `syncline selftest` on this machine: two ranks of train.py under `syncline run`, and
// the file by which one of them is told to be slow.
//
// Thread-compatible.
#ifndef SYNCLINE_COORDINATOR_SELFTEST_DEMO_JOB_H_
#define SYNCLINE_COORDINATOR_SELFTEST_DEMO_JOB_H_

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/host/clock.h"
#include "coordinator/selftest/checks.h"

namespace syncline::selftest {

inline constexpr int32_t kDemoRanks = 2;

struct DemoPlace {
  std::filesystem::path syncline;   // the program
  std::filesystem::path job;        // train.py
  std::filesystem::path directory;  // of its logs and its switch; it is there
  std::string python = "python3";   // that has PyTorch
  std::map<std::string, std::string> environment;
};

// What `switch` holds while this is so.
std::string SwitchText(const Delay& delay);

// The newest step that a log of train.py names; 0: none.
uint64_t NewestStep(std::string_view log);

class DemoJob {
 public:
  // NotFound: a program is missing.
  static absl::StatusOr<DemoJob> Start(const DemoPlace& place);
  DemoJob(DemoJob&& other) noexcept;
  DemoJob& operator=(DemoJob&&) = delete;
  // Ends both ranks.
  ~DemoJob();

  // Until rank 0 has trained so many steps more. FailedPrecondition: a rank ended, with the end of
  // its log; DeadlineExceeded; Cancelled: `stop` came first.
  absl::Status AwaitSteps(uint64_t count, host::Clock* clock, const std::stop_token& stop);
  absl::Status Apply(const Delay& delay) const;

 private:
  explicit DemoJob(const DemoPlace& place) : place_(place) {}
  std::filesystem::path LogOf(int32_t rank) const;
  absl::Status CheckAlive();

  DemoPlace place_;
  std::vector<pid_t> children_;  // by rank; 0: has ended, and was waited for
};

}  // namespace syncline::selftest

#endif  // SYNCLINE_COORDINATOR_SELFTEST_DEMO_JOB_H_
