// SPDX-License-Identifier: Apache-2.0
#include "agent/connections/connection_sampler.h"

#include "absl/strings/str_cat.h"
#include "agent/evidence/recorded_processes.h"
#include "agent/host/proc_links.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

constexpr size_t kSaidMax = 20;
constexpr size_t kProcessesMax = 10'000;

}  // namespace

ConnectionSampler::ConnectionSampler(RuntimeDirectories directories, Clock* clock,
                                     ConnectionSamplerOptions options)
    : directories_(std::move(directories)), clock_(clock), options_(std::move(options)) {}

void ConnectionSampler::Complain(const std::string& what) {
  if (said_.size() >= kSaidMax || !said_.insert(what).second) return;
  evidence::AppendNote(what, &text_);
  complaints_.push_back(what);
}

void ConnectionSampler::Search() {
  const auto listed = ListProcesses(options_.proc);
  if (!listed.ok()) return;  // the next search may see more
  for (auto& [inode, space] : spaces_) space.owners.clear();
  size_t left = options_.descriptors_max;
  for (const auto& [id, found] : RecordedAmong(AliveById(*listed), directories_(), left_out_)) {
    Visit(id, *found.entry, &left);
  }
  if (left == 0) {
    Complain(absl::StrCat("TCP connections may not be sampled of all processes: they have ",
                          options_.descriptors_max, " files open or more"));
  }
  std::erase_if(spaces_, [](const auto& one) { return one.second.owners.empty(); });
}

void ConnectionSampler::Visit(const control_block::BlockId& id, const ProcessEntry& entry,
                              size_t* left) {
  const std::set<uint64_t> sockets = OpenSockets(options_.proc, entry.pid, left);
  const uint64_t inode = NetNamespaceOf(options_.proc, entry.pid);
  if (sockets.empty() || inode == 0) return;
  auto space = spaces_.find(inode);
  if (space == spaces_.end()) {
    if (spaces_.size() >= options_.namespaces_max) {
      return Complain(
          absl::StrCat("TCP connections are not sampled of all processes: they are in "
                       "more than ",
                       options_.namespaces_max, " network namespaces"));
    }
    auto opened = options_.open(options_.proc, entry.pid, inode);
    if (!opened.ok()) {
      // One that has just ended is nobody's loss.
      if (!absl::IsUnavailable(opened.status())) {
        Complain(absl::StrCat("TCP connections are not sampled of ", entry.name, ": ",
                              opened.status().message()));
      }
      return;
    }
    space = spaces_.emplace(inode, Namespace{*std::move(opened), {}}).first;
  }
  auto process = processes_.find(id);
  if (process == processes_.end()) {
    if (processes_.size() >= kProcessesMax) return;
    process = processes_.emplace(id, next_process_++).first;
    evidence::Append(evidence::ProcessIdentity{entry.pid, entry.start_ticks,
                                               static_cast<int64_t>(entry.pid_namespace),
                                               entry.own_pid, entry.name},
                     &text_);
  }
  for (const uint64_t socket : sockets) {
    const Owner owner{process->second, entry.start_ticks};
    const auto [known, added] = space->second.owners.emplace(socket, owner);
    if (!added && entry.start_ticks < known->second.start_ticks) known->second = owner;
  }
}

void ConnectionSampler::Round() {
  bool all = true;
  for (auto& [inode, space] : spaces_) all &= ReadNamespace(inode, &space);
  if (all) evidence::AppendRound(clock_->MonotonicNs(), &text_);
}

bool ConnectionSampler::ReadNamespace(uint64_t inode, Namespace* space) {
  const int64_t at_ns = clock_->MonotonicNs();
  const auto states =
      space->source->Read([&](uint64_t socket) { return space->owners.contains(socket); });
  const int64_t until_ns = clock_->MonotonicNs();
  if (!states.ok()) {
    Complain(
        absl::StrCat("TCP connections are not sampled all the time: ", states.status().message()));
    return false;
  }
  for (const SocketState& state : *states) {
    Write(inode, state, space->owners.at(state.inode), at_ns, until_ns);
  }
  return true;
}

void ConnectionSampler::Write(uint64_t space, const SocketState& state, const Owner& owner,
                              int64_t at_ns, int64_t until_ns) {
  const ConnectionKey key{space, state.inode, state.local, state.remote};
  auto known = connections_.find(key);
  if (known == connections_.end()) {
    if (connections_.size() >= options_.connections_max) {
      return Complain(absl::StrCat("TCP connections are not all sampled: there were more than ",
                                   options_.connections_max));
    }
    const auto index = static_cast<uint32_t>(connections_.size());
    known = connections_.emplace(key, Known{index, {}}).first;
    evidence::Append(evidence::Connection{owner.process, space, state.local, state.remote}, &text_);
  } else if (known->second.values == state.values) {
    return;
  }
  known->second.values = state.values;
  evidence::Append(evidence::ConnectionSample{known->second.index, at_ns, until_ns, state.values},
                   &text_);
}

}  // namespace syncline::agent
