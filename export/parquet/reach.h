// SPDX-License-Identifier: Apache-2.0
// The bounds of times as columns: how far the truth may lie before and behind them.
//
// Thread-safety: no state.
#ifndef SYNCLINE_EXPORT_PARQUET_REACH_H_
#define SYNCLINE_EXPORT_PARQUET_REACH_H_

#include <optional>

#include "clocksync/reach.h"
#include "export/parquet/table.h"

namespace syncline::parquet {

using clocksync::Reach;

// The larger reach of two times, before and behind; nullopt where one is unknown.
std::optional<Reach> Widest(const std::optional<Reach>& a, const std::optional<Reach>& b);

// Into the columns bound_lo_ns and bound_hi_ns.
void PutReach(const std::optional<Reach>& reach, Column* lo, Column* hi);

}  // namespace syncline::parquet

#endif  // SYNCLINE_EXPORT_PARQUET_REACH_H_
