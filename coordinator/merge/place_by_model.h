// SPDX-License-Identifier: Apache-2.0
// A node's placement by the clock model; in test builds also the wrong ones of mutants.h.
#ifndef SYNCLINE_COORDINATOR_MERGE_PLACE_BY_MODEL_H_
#define SYNCLINE_COORDINATOR_MERGE_PLACE_BY_MODEL_H_

#include <memory>

#include "clocksync/clock_model.h"
#include "timeline/placement.h"

namespace syncline::merge {

// The model must know both clocks and outlive the placement.
std::unique_ptr<timeline::Placement> PlaceByModel(const clocksync::ClockModel& model, ClockId clock,
                                                  ClockId reference);

// The same places, of which nobody knows how far they are from the truth.
std::unique_ptr<timeline::Placement> WithoutBounds(std::unique_ptr<timeline::Placement> placement);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_PLACE_BY_MODEL_H_
