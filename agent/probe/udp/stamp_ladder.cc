// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/stamp_ladder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/probe/udp/transmit_tracker.h"

namespace syncline::probe {

using clocksync::StampSource;

namespace {

// Guessed: one missing stamp is an accident, three in a row are a driver that gives none.
constexpr int kMissingToFall = 3;
// A receive stamp costs nothing to wait for, and the kernel needs a few packets to begin.
constexpr int kReceiveMissingToFall = 16;
constexpr int kStampedToClimb = 16;
// Less than a burst: the first request of one has no reading of the clock close before it.
constexpr int kHardwareToClimb = 4;
// Guessed: spinning is given up when less than a quarter of so many packets were caught by it.
constexpr int kSpinsToJudge = 64;
constexpr int kSpinRest = 256;

}  // namespace

StampLadder::StampLadder(const Options& options)
    : options_(options), hardware_reason_("the network device is not yet known") {
  if (!options_.kernel_wanted) Fall("kernel stamps were not requested");
}

void StampLadder::set_hardware(const HardwareOffer& offer) {
  hardware_asked_ = true;
  hardware_clock_ = options_.kernel_wanted ? offer.clock : -1;
  hardware_reason_ = hardware_clock_ < 0
                         ? offer.refusal
                         : absl::StrCat("no hardware stamps from ", DeviceName(), " yet");
}

void StampLadder::Streak::Add(bool is_usable) {
  usable = is_usable ? usable + 1 : 0;
  missing = is_usable ? 0 : missing + 1;
}

void StampLadder::OnHardwareTransmit(bool usable) {
  hardware_sent_.Add(usable);
  JudgeHardware();
}

void StampLadder::OnHardwareReceive(bool usable) {
  hardware_received_.Add(usable);
  JudgeHardware();
}

void StampLadder::JudgeHardware() {
  if (std::min(hardware_sent_.usable, hardware_received_.usable) >= kHardwareToClimb) {
    hardware_ = true;
    hardware_reason_.clear();
  } else if (hardware_sent_.missing >= kMissingToFall) {
    hardware_ = false;
    hardware_reason_ =
        absl::StrCat("no hardware TX stamps from ", DeviceName(), " that could be used");
  } else if (hardware_received_.missing >= kReceiveMissingToFall) {
    hardware_ = false;
    hardware_reason_ =
        absl::StrCat("no hardware RX stamps from ", DeviceName(), " that could be used");
  }
}

std::string StampLadder::reason() const {
  return hardware_ || rung_ == StampSource::kKernel ? hardware_reason_ : reason_;
}

void StampLadder::OnTransmitStamp() {
  transmit_missing_ = 0;
  ++transmit_stamped_;
  Climb();
}

void StampLadder::OnTransmitStampMissing() {
  transmit_stamped_ = 0;
  if (++transmit_missing_ != kMissingToFall || rung_ != StampSource::kKernel) return;
  Fall(absl::StrCat("no TX stamps within ", kTransmitStampWaitNs / 1'000'000, " ms from ",
                    DeviceName()));
}

void StampLadder::OnReceive(bool stamped) {
  if (stamped) {
    receive_missing_ = 0;
    ++receive_stamped_;
    Climb();
    return;
  }
  receive_stamped_ = 0;
  if (++receive_missing_ != kReceiveMissingToFall || rung_ != StampSource::kKernel) return;
  Fall(absl::StrCat("packets arrive without RX stamps from ", DeviceName()));
}

void StampLadder::OnSpinResult(bool caught) {
  if (!options_.spin_allowed || rung_ > StampSource::kUserSpin) return;
  if (spin_rest_ > 0) {
    --spin_rest_;
    return;
  }
  spins_caught_ += caught ? 1 : 0;
  if (++spins_ < kSpinsToJudge) return;
  if (spins_caught_ < kSpinsToJudge / 4) {
    if (rung_ == StampSource::kUserSpin) {
      StopSpinning("packets arrive too late for spinning: the processors are busy");
    } else {
      spin_rest_ = kSpinRest;
    }
  }
  spins_ = spins_caught_ = 0;
}

void StampLadder::OnSpinRefused() { StopSpinning("no processor time left for spinning"); }

void StampLadder::StopSpinning(const char* why) {
  if (rung_ != StampSource::kUserSpin) return;
  rung_ = StampSource::kUserBlocking;
  absl::StrAppend(&reason_, "; ", why);
}

void StampLadder::Fall(std::string reason) {
  reason_ = std::move(reason);
  spins_ = spins_caught_ = spin_rest_ = 0;
  rung_ = options_.spin_allowed ? StampSource::kUserSpin : StampSource::kUserBlocking;
  if (!options_.spin_allowed) absl::StrAppend(&reason_, "; spinning is not allowed by the plan");
}

void StampLadder::Climb() {
  if (rung_ == StampSource::kKernel || !options_.kernel_wanted) return;
  if (std::min(transmit_stamped_, receive_stamped_) < kStampedToClimb) return;
  rung_ = StampSource::kKernel;
}

const char* StampSourceName(StampSource source) {
  switch (source) {
    case StampSource::kHardware:
      return "hardware";
    case StampSource::kKernel:
      return "kernel";
    case StampSource::kUserSpin:
      return "spin";
    case StampSource::kUserBlocking:
      return "blocking";
    case StampSource::kGrpc:
      return "grpc";
  }
  return "unknown";
}

}  // namespace syncline::probe
