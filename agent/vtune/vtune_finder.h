// SPDX-License-Identifier: Apache-2.0
// Where Intel VTune is installed on this node, and which version it is. An agent of root's takes
// only a program that nobody but root could have put there.
//
// Thread-safe.
#ifndef SYNCLINE_AGENT_VTUNE_VTUNE_FINDER_H_
#define SYNCLINE_AGENT_VTUNE_VTUNE_FINDER_H_

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "agent/session/spawn.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

struct VtuneFinderOptions {
  std::string profiler_directory;  // $VTUNE_PROFILER_DIR of the agent
  std::string path;                // $PATH of the agent
  // Where each version has a folder of its own.
  std::filesystem::path versions = "/opt/intel/oneapi/vtune";
  bool only_roots = false;  // only programs that root alone could have put there
  int version_limit_ms = 3'000;
};

// Of a path without links. FailedPrecondition that names it: the file, or a folder above it,
// belongs to somebody other than root, is a link, or others can write there.
absl::Status CheckOnlyRoots(const std::filesystem::path& file);

// Of "2024.2.1" and "2024.10": the numbers between the dots decide.
bool IsOlderVersion(std::string_view a, std::string_view b);

class VtuneFinder {
 public:
  // `runner` is not owned and outlives this.
  VtuneFinder(ProcessRunner* runner, VtuneFinderOptions options)
      : runner_(runner), options_(std::move(options)) {}

  // In the order of VTUNE_PROFILER_DIR, PATH, newest version below `versions`. nullopt: not
  // installed. `problem` of the answer: why it is not used. Its version is asked for once, until
  // the file changes.
  std::optional<v1::NodeTool> Find();

 private:
  std::string FindFile() const;
  void AskVersion(v1::NodeTool* tool) const;

  ProcessRunner* const runner_;
  const VtuneFinderOptions options_;
  std::mutex mutex_;
  std::optional<v1::NodeTool> known_ ABSL_GUARDED_BY(mutex_);
  std::filesystem::file_time_type known_time_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_VTUNE_VTUNE_FINDER_H_
