// How far the truth of a time may lie from where it is on the timeline, for tables' bounds.
//
// Thread-safety: a ReachOf belongs to one thread.
#ifndef SYNCLINE_EXPORT_PARQUET_REACH_H_
#define SYNCLINE_EXPORT_PARQUET_REACH_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "clocksync/clock_model.h"
#include "common/time.h"
#include "export/parquet/table.h"

namespace syncline::parquet {

// How far the truth may lie before and after an estimate.
struct Reach {
  int64_t lo_ns = 0;
  int64_t hi_ns = 0;
};

// Of a time as it was recorded; nullopt: unknown.
using ReachOf = std::function<std::optional<Reach>(NodeTime)>;

// By the model, which outlives it; without one all is unknown.
ReachOf ReachBy(const clocksync::ClockModel* model);

// The larger reach of two times, before and behind; nullopt where one is unknown.
std::optional<Reach> Widest(const std::optional<Reach>& a, const std::optional<Reach>& b);

// Into the columns bound_lo_ns and bound_hi_ns.
void PutReach(const std::optional<Reach>& reach, Column* lo, Column* hi);

}  // namespace syncline::parquet

#endif  // SYNCLINE_EXPORT_PARQUET_REACH_H_
