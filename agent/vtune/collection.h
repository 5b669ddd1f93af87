// SPDX-License-Identifier: Apache-2.0
// One collection of VTune's: attached to one process, from its paused begin to the copied result.
// Whatever goes wrong is the record's `problem`, the first thing only; nothing here throws a
// recording over. Every wait has a limit.
//
// Thread-compatible: different collections may be worked on at once. Start() must be called by a
// thread that lives until the end: VTune ends with it.
#ifndef SYNCLINE_AGENT_VTUNE_COLLECTION_H_
#define SYNCLINE_AGENT_VTUNE_COLLECTION_H_

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/probe/clock.h"
#include "agent/session/spawn.h"
#include "agent/vtune/result_folder.h"
#include "syncline/v1/agent.pb.h"
#include "vtune/analyses.h"
#include "vtune/result_record.h"

namespace syncline::agent {

// None is owned; all live longer than the collection.
struct CollectionTools {
  ProcessRunner* runner = nullptr;
  Clock* clock = nullptr;
  // Starts a program as a user: its uid, then the program's command line follow.
  std::vector<std::string> child;
  std::filesystem::path work = "/var/tmp";  // where VTune writes
  int command_limit_ms = 10'000;            // of `vtune -command`
};

class Collection {
 public:
  // Of the process, with the VTune of this node.
  Collection(const CollectionTools* tools, const v1::ProcessInfo& process,
             const v1::NodeTool& vtune, const vtune::Request& request);
  ~Collection();  // ends VTune if it still runs
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;

  void Start();
  // Whether VTune has said that it collects, or will not. To be asked again and again.
  bool IsSettled();
  // The start waits no longer.
  void GiveUpWaiting();

  void Resume() { Command("resume", &record_.resume); }
  void Stop();
  // Waits until VTune has ended, at most so long; then it is killed.
  void AwaitEnd(int limit_ms);
  // Copies the result to `to`, and removes what is left of it elsewhere unless it could not all be
  // copied.
  void Keep(const std::filesystem::path& to, const CopyLimits& limits);
  // What is left of a result that nobody wants.
  void Discard();

  const vtune::ResultRecord& record() const { return record_; }
  // Where VTune writes while it runs; empty: nowhere.
  std::string WorkPath() const;

 private:
  bool runs() const { return pid_ > 0; }
  bool HasEnded() const;
  void Command(const char* verb, vtune::CommandRun* run);
  void Fail(const std::string& what);     // unless something failed before
  void FailToo(const std::string& what);  // also then
  std::string Said() const;               // the last line of it
  std::vector<std::string> AsUser(const std::vector<std::string>& command) const;

  const CollectionTools& tools_;
  const std::string program_;
  const vtune::Request request_;
  vtune::ResultRecord record_;
  std::optional<ResultFolder> folder_;
  Descriptor output_{-1};
  pid_t pid_ = -1;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_VTUNE_COLLECTION_H_
