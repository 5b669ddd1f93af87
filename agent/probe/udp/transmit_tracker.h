// SPDX-License-Identifier: Apache-2.0
// Which transmit stamps are still awaited, and whose they are.
#ifndef SYNCLINE_AGENT_PROBE_UDP_TRANSMIT_TRACKER_H_
#define SYNCLINE_AGENT_PROBE_UDP_TRANSMIT_TRACKER_H_

#include <compare>
#include <cstdint>
#include <deque>
#include <optional>

namespace syncline::probe {

// Guessed: a loaded NIC gives its stamp within milliseconds.
inline constexpr int64_t kTransmitStampWaitNs = 200'000'000;

// One side of an edge of a plan.
struct EdgeKey {
  uint64_t plan_id = 0;
  uint32_t edge_id = 0;
  bool initiator = false;
  auto operator<=>(const EdgeKey&) const = default;
};

class TransmitTracker {
 public:
  struct Awaited {
    uint64_t id = 0;  // of the send
    EdgeKey edge;
    uint64_t sequence = 0;
    int64_t deadline_raw_ns = 0;
    // What is still awaited.
    bool kernel = true;
    bool hardware = false;
  };
  enum class Kind { kKernel, kHardware };

  // Ids must increase. `hardware`: the device is to stamp the packet, too.
  void Sent(uint64_t id, const EdgeKey& edge, uint64_t sequence, int64_t now_raw_ns,
            bool hardware = false);
  // Whose stamp it is; nothing when it is late, not awaited or a second one of this kind for the
  // same packet (only the first, which is the earliest, is sound).
  std::optional<Awaited> Stamped(uint64_t id, Kind kind = Kind::kKernel);
  // The oldest whose time is over, with what did not come; call until nothing is left.
  std::optional<Awaited> Expired(int64_t now_raw_ns);
  // When the oldest is given up; the far future when none is awaited.
  int64_t NextDeadlineRawNs() const;

 private:
  void DropStamped();
  std::deque<Awaited> awaited_;  // by id, and so by deadline
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_TRANSMIT_TRACKER_H_
