// SPDX-License-Identifier: Apache-2.0
// Which stamps an edge can have on this host, found out by itself, and why not better ones:
//   device (hardware) > kernel > user, spinning (inside agreed bursts) > user, blocking.
// The first is tried where the device offers it, and climbed to when its stamps have come. Falls
// when stamps stay away, climbs again when they come. Each packet still uses the best stamps that
// it really has; the rung says what is waited for, whether to spin, and what a person is told.
#ifndef SYNCLINE_AGENT_PROBE_UDP_STAMP_LADDER_H_
#define SYNCLINE_AGENT_PROBE_UDP_STAMP_LADDER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "agent/probe/udp/probe_socket.h"
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
  // What that device offers, once it was asked.
  void set_hardware(const HardwareOffer& offer);
  bool hardware_asked() const { return hardware_asked_; }
  // The device's clock, when packets may have its stamps; else -1.
  int hardware_clock() const { return hardware_clock_; }

  // Stamps of the device, of packets that were sent and received: `usable` when they came and could
  // be placed in RAW. Only when hardware_clock() is there.
  void OnHardwareTransmit(bool usable);
  void OnHardwareReceive(bool usable);

  void OnTransmitStamp();
  void OnTransmitStampMissing();
  void OnReceive(bool stamped);
  // Whether a packet that was waited for without sleeping came while still spinning. On busy
  // processors most do not, and spinning then only takes time from the other side: it is left for a
  // while (kernel stamps are narrower with it, because nothing has gone cold, but do not need it).
  void OnSpinResult(bool caught);
  // There is no processor time left to spin with.
  void OnSpinRefused();

  clocksync::StampSource rung() const {
    return hardware_ ? clocksync::StampSource::kHardware : rung_;
  }
  // Whether to wait without sleeping inside a burst.
  bool spins() const {
    return options_.spin_allowed && spin_rest_ == 0 && rung_ <= clocksync::StampSource::kUserSpin;
  }
  bool waits_for_transmit_stamp() const { return rung_ == clocksync::StampSource::kKernel; }
  bool waits_for_hardware_stamp() const { return hardware_; }
  // Why not a better rung; "" on the best.
  std::string reason() const;

 private:
  std::string DeviceName() const { return device_.empty() ? "the network device" : device_; }
  void Fall(std::string reason);
  void Climb();
  void StopSpinning(const char* why);
  void JudgeHardware();

  const Options options_;
  std::string device_;
  bool hardware_asked_ = false;
  bool hardware_ = false;  // the rung above rung_
  int hardware_clock_ = -1;
  std::string hardware_reason_;  // why not hardware_
  struct Streak {
    int usable = 0;  // in a row
    int missing = 0;
    void Add(bool is_usable);
  };
  Streak hardware_sent_;
  Streak hardware_received_;
  clocksync::StampSource rung_ = clocksync::StampSource::kKernel;  // without hardware stamps
  std::string reason_;                                             // why not the kernel's
  int transmit_missing_ = 0;                                       // in a row
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
