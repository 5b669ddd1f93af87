// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/place_by_model.h"

#include <optional>
#include <span>
#include <utility>

#include "coordinator/merge/mutants.h"

namespace syncline::merge {
namespace {

using timeline::ModelPlacement;
using timeline::Placement;

#if SYNCLINE_TEST_MUTANTS
class WrongPlacement final : public Placement {
 public:
  WrongPlacement(std::unique_ptr<Placement> right, std::unique_ptr<Placement> reference)
      : right_(std::move(right)), reference_(std::move(reference)) {}

  TimelineTime At(int64_t clock_ns) override {
    if (CurrentMutant() == Mutant::kBoundOfASecond) return right_->At(clock_ns);
    const int64_t unmoved_ns = reference_->At(clock_ns).ns;
    if (CurrentMutant() == Mutant::kZeroOffset) return {unmoved_ns};
    return {2 * unmoved_ns - right_->At(clock_ns).ns};
  }
  std::optional<int64_t> BoundNs(int64_t clock_ns) const override {
    constexpr int64_t kSecondNs = 1'000'000'000;
    return CurrentMutant() == Mutant::kBoundOfASecond ? kSecondNs : right_->BoundNs(clock_ns);
  }
  // Of the flipped sign only nearly the inverse: rates of clocks differ by less than matters here.
  int64_t ClockNs(TimelineTime time) const override {
    if (CurrentMutant() == Mutant::kBoundOfASecond) return right_->ClockNs(time);
    const int64_t unmoved_ns = reference_->ClockNs(time);
    if (CurrentMutant() == Mutant::kZeroOffset) return unmoved_ns;
    return 2 * unmoved_ns - right_->ClockNs(time);
  }
  ClockId clock() const override { return right_->clock(); }

 private:
  std::unique_ptr<Placement> right_;
  std::unique_ptr<Placement> reference_;
};
#endif

class UnboundedPlacement final : public Placement {
 public:
  explicit UnboundedPlacement(std::unique_ptr<Placement> placed) : placed_(std::move(placed)) {}

  TimelineTime At(int64_t clock_ns) override { return placed_->At(clock_ns); }
  void PlaceAll(std::span<int64_t> times_ns) override { placed_->PlaceAll(times_ns); }
  std::optional<clocksync::ClockLine> LineAt(int64_t clock_ns) override {
    return placed_->LineAt(clock_ns);
  }
  std::optional<int64_t> BoundNs(int64_t) const override { return std::nullopt; }
  int64_t ClockNs(TimelineTime time) const override { return placed_->ClockNs(time); }
  ClockId clock() const override { return placed_->clock(); }
  std::unique_ptr<Placement> Clone() const override {
    std::unique_ptr<Placement> other = placed_->Clone();
    return other == nullptr ? nullptr : WithoutBounds(std::move(other));
  }

 private:
  std::unique_ptr<Placement> placed_;
};

}  // namespace

std::unique_ptr<Placement> WithoutBounds(std::unique_ptr<Placement> placement) {
  return std::make_unique<UnboundedPlacement>(std::move(placement));
}

std::unique_ptr<Placement> PlaceByModel(const clocksync::ClockModel& model, ClockId clock,
                                        [[maybe_unused]] ClockId reference) {
  std::unique_ptr<Placement> right = ModelPlacement(model, clock);
#if SYNCLINE_TEST_MUTANTS
  if (CurrentMutant() == Mutant::kZeroOffset || CurrentMutant() == Mutant::kSignFlipped ||
      CurrentMutant() == Mutant::kBoundOfASecond) {
    return std::make_unique<WrongPlacement>(std::move(right), ModelPlacement(model, reference));
  }
#endif
  return right;
}

}  // namespace syncline::merge
