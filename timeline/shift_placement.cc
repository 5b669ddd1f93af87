// SPDX-License-Identifier: Apache-2.0
#include "timeline/placement.h"

namespace syncline::timeline {
namespace {

class Shifted final : public Placement {
 public:
  Shifted(ClockId clock, int64_t shift_ns) : clock_(clock), shift_ns_(shift_ns) {}

  TimelineTime At(int64_t clock_ns) override {
    // Wraps instead of overflowing: a damaged timestamp must not be undefined behaviour.
    return {
        static_cast<int64_t>(static_cast<uint64_t>(clock_ns) + static_cast<uint64_t>(shift_ns_))};
  }
  void PlaceAll(std::span<int64_t> times_ns) override {
    for (int64_t& ns : times_ns) ns = Shifted::At(ns).ns;
  }
  std::optional<clocksync::ClockLine> LineAt(int64_t clock_ns) override {
    constexpr int64_t kNear = int64_t{1} << 61;
    if (shift_ns_ < -kNear || shift_ns_ > kNear || clock_ns < -kNear || clock_ns > kNear) {
      return std::nullopt;
    }
    return clocksync::ClockLine{-kNear, kNear, 0, shift_ns_};
  }
  std::optional<int64_t> BoundNs(int64_t) const override { return std::nullopt; }
  int64_t ClockNs(TimelineTime time) const override {
    return static_cast<int64_t>(static_cast<uint64_t>(time.ns) - static_cast<uint64_t>(shift_ns_));
  }
  ClockId clock() const override { return clock_; }
  std::unique_ptr<Placement> Clone() const override { return ShiftPlacement(clock_, shift_ns_); }

 private:
  ClockId clock_;
  int64_t shift_ns_;
};

}  // namespace

std::unique_ptr<Placement> ShiftPlacement(ClockId clock, int64_t shift_ns) {
  return std::make_unique<Shifted>(clock, shift_ns);
}

}  // namespace syncline::timeline
