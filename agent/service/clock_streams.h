// SPDX-License-Identifier: Apache-2.0
// How many clock exchanges run at a time: each holds a thread of the server's. Nodes have a budget
// of their own, and of that one node has a part, so that no node's certificate can keep out the
// coordinators, whose probes a recording's times stand on. Thread-safe.
#ifndef SYNCLINE_AGENT_SERVICE_CLOCK_STREAMS_H_
#define SYNCLINE_AGENT_SERVICE_CLOCK_STREAMS_H_

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "agent/service/peer_role.h"

namespace syncline::agent {

class ClockStreams {
 public:
  static constexpr int kOperatorsMax = 32;
  static constexpr int kNodesMax = 16;
  static constexpr int kOneNodeMax = 4;

  // One exchange, for as long as it lives.
  class Stream {
   public:
    Stream(ClockStreams* streams, Peer peer) : streams_(streams), peer_(std::move(peer)) {}
    Stream(Stream&& other) noexcept
        : streams_(std::exchange(other.streams_, nullptr)), peer_(std::move(other.peer_)) {}
    Stream& operator=(Stream&&) = delete;
    ~Stream() {
      if (streams_ != nullptr) streams_->End(peer_);
    }

   private:
    ClockStreams* streams_;
    Peer peer_;
  };

  // Nullopt: too many run already.
  std::optional<Stream> Begin(const Peer& peer) {
    const std::lock_guard lock(mutex_);
    if (peer.role == PeerRole::kOperator) {
      if (operators_ >= kOperatorsMax) return std::nullopt;
      ++operators_;
      return Stream(this, peer);
    }
    if (nodes_ >= kNodesMax) return std::nullopt;
    const auto own = of_node_.find(peer.name);
    if (own != of_node_.end() && own->second >= kOneNodeMax) return std::nullopt;
    ++nodes_;
    ++of_node_[peer.name];
    return Stream(this, peer);
  }

 private:
  void End(const Peer& peer) {
    const std::lock_guard lock(mutex_);
    if (peer.role == PeerRole::kOperator) {
      --operators_;
      return;
    }
    --nodes_;
    const auto own = of_node_.find(peer.name);
    if (own != of_node_.end() && --own->second == 0) of_node_.erase(own);
  }

  std::mutex mutex_;
  int operators_ ABSL_GUARDED_BY(mutex_) = 0;
  int nodes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> of_node_ ABSL_GUARDED_BY(mutex_);  // by their certificates' names
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SERVICE_CLOCK_STREAMS_H_
