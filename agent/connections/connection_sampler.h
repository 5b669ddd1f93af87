// SPDX-License-Identifier: Apache-2.0
// Samples what the kernel says of the TCP connections of the recorded processes, as text lines
// (evidence/connection_samples.h). It has no thread and no clock of its own: somebody calls
// Search() every few seconds, and Round() at the rate that is wanted.
//
// Each process is looked at in its own network namespace. A socket that several processes have (a
// data loader's worker inherits those of its rank) is that of the oldest.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_CONNECTIONS_CONNECTION_SAMPLER_H_
#define SYNCLINE_AGENT_CONNECTIONS_CONNECTION_SAMPLER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/connections/socket_diagnosis.h"
#include "agent/evidence/runtime_directories.h"
#include "agent/host/process_table.h"
#include "agent/probe/clock.h"
#include "control_block/block_file.h"

namespace syncline::agent {

struct ConnectionSamplerOptions {
  std::filesystem::path proc = "/proc";
  std::function<absl::StatusOr<std::unique_ptr<SocketSource>>(const std::filesystem::path& proc,
                                                              int32_t pid, uint64_t inode)>
      open = OpenSocketDiagnosis;
  size_t connections_max = 8192;  // that are declared; of the node
  size_t namespaces_max = 64;
  size_t descriptors_max = 100'000;  // that a search looks at, of all processes: some 0.8 s
};

class ConnectionSampler {
 public:
  // `clock` is not owned.
  ConnectionSampler(RuntimeDirectories directories, Clock* clock,
                    ConnectionSamplerOptions options = {});

  void LeaveOut(const std::vector<uint32_t>& users) { left_out_ = {users.begin(), users.end()}; }
  // Finds the recorded processes, their sockets and namespaces; forgets who is gone.
  void Search();
  // Reads all connections, and writes those of which something has changed.
  void Round();

  // The lines since the last call.
  std::string TakeText() { return std::exchange(text_, {}); }
  // What is missing that somebody could do something about, for people.
  std::vector<std::string> TakeComplaints() { return std::exchange(complaints_, {}); }

 private:
  struct Owner {
    uint32_t process = 0;  // of its line
    uint64_t start_ticks = 0;
  };
  struct Namespace {
    std::unique_ptr<SocketSource> source;
    std::map<uint64_t, Owner> owners;  // by inode of the socket
  };
  using ConnectionKey = std::tuple<uint64_t, uint64_t, std::string, std::string>;
  struct Known {
    uint32_t index = 0;  // of its line
    evidence::ConnectionValues values;
  };

  void Visit(const control_block::BlockId& id, const ProcessEntry& entry, size_t* left);
  bool ReadNamespace(uint64_t inode, Namespace* space);
  void Write(uint64_t space, const SocketState& state, const Owner& owner, int64_t at_ns,
             int64_t until_ns);
  void Complain(const std::string& what);

  const RuntimeDirectories directories_;
  Clock* const clock_;
  const ConnectionSamplerOptions options_;
  std::set<uint32_t> left_out_;
  std::map<control_block::BlockId, uint32_t> processes_;  // their lines
  std::map<uint64_t, Namespace> spaces_;                  // by inode
  std::map<ConnectionKey, Known> connections_;
  uint32_t next_process_ = 0;
  std::string text_;
  std::set<std::string> said_;
  std::vector<std::string> complaints_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CONNECTIONS_CONNECTION_SAMPLER_H_
