// Which stamps an edge can have on this host, found out by itself, and why not better ones:
//   kernel > user, spinning (inside agreed bursts) > user, blocking.
// Falls when stamps stay away, climbs again when they come. Each packet still uses the best stamps
// that it really has; the rung says what is waited for, whether to spin, and what a person is told.
#ifndef SYNCLINE_AGENT_PROBE_UDP_STAMP_LADDER_H_
#define SYNCLINE_AGENT_PROBE_UDP_STAMP_LADDER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "clocksync/samples.h"

namespace syncline::probe {

class StampLadder {
 public:
  struct Options {
    bool kernel_wanted = true;
    bool spin_allowed = true;
  };
  explicit StampLadder(const Options& options);

  // The network device towards the peer, for the reason; "" while unknown.
  void set_device(std::string device) { device_ = std::move(device); }
  const std::string& device() const { return device_; }
  bool kernel_wanted() const { return options_.kernel_wanted; }

  void OnTransmitStamp();
  void OnTransmitStampMissing();
  void OnReceive(bool stamped);
  // Whether a packet that was waited for without sleeping came while still spinning. On busy
  // processors most do not, and spinning then only takes time from the other side: it is left for a
  // while (kernel stamps are narrower with it, because nothing has gone cold, but do not need it).
  void OnSpinResult(bool caught);
  // There is no processor time left to spin with.
  void OnSpinRefused();

  clocksync::StampSource rung() const { return rung_; }
  // Whether to wait without sleeping inside a burst.
  bool spins() const {
    return options_.spin_allowed && spin_rest_ == 0 && rung_ <= clocksync::StampSource::kUserSpin;
  }
  bool waits_for_transmit_stamp() const { return rung_ == clocksync::StampSource::kKernel; }
  // Why not a better rung. Hardware stamps are not used by this version.
  const std::string& reason() const { return reason_; }

 private:
  std::string DeviceName() const { return device_.empty() ? "the network device" : device_; }
  void Fall(std::string reason);
  void Climb();
  void StopSpinning(const char* why);

  const Options options_;
  std::string device_;
  clocksync::StampSource rung_ = clocksync::StampSource::kKernel;
  std::string reason_;
  int transmit_missing_ = 0;  // in a row
  int receive_missing_ = 0;
  int transmit_stamped_ = 0;  // in a row, since the last that was missing
  int receive_stamped_ = 0;
  int spins_ = 0;  // since spinning began, at most kSpinsToJudge
  int spins_caught_ = 0;
  int spin_rest_ = 0;  // so many packets more before it is tried again, with kernel stamps
};

// For people and JSON: "kernel", "spin", ...
const char* StampSourceName(clocksync::StampSource source);

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_STAMP_LADDER_H_
