// SPDX-License-Identifier: Apache-2.0
#include "timeline/placement.h"

namespace syncline::timeline {
namespace {

class Modelled final : public Placement {
 public:
  Modelled(const clocksync::ClockModel& model, ClockId clock)
      : model_(model), clock_(clock), mapper_(model.MapperFor(clock)) {}

  TimelineTime At(int64_t clock_ns) override { return mapper_.At(clock_ns); }
  void PlaceAll(std::span<int64_t> times_ns) override { mapper_.PlaceAll(times_ns); }
  std::optional<clocksync::ClockLine> LineAt(int64_t clock_ns) override {
    return mapper_.LineAt(clock_ns);
  }
  std::optional<int64_t> BoundNs(int64_t clock_ns) const override {
    const TimelineEstimate where = model_.Locate({clock_, clock_ns});
    if (!where.bounded()) return std::nullopt;
    return where.bound_ns();
  }
  int64_t ClockNs(TimelineTime time) const override { return model_.Unlocate(clock_, time).ns; }
  ClockId clock() const override { return clock_; }
  std::unique_ptr<Placement> Clone() const override { return ModelPlacement(model_, clock_); }

 private:
  const clocksync::ClockModel& model_;
  ClockId clock_;
  clocksync::ClockModel::Mapper mapper_;
};

}  // namespace

std::unique_ptr<Placement> ModelPlacement(const clocksync::ClockModel& model, ClockId clock) {
  return std::make_unique<Modelled>(model, clock);
}

}  // namespace syncline::timeline
