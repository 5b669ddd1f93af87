// SPDX-License-Identifier: Apache-2.0
// What an edge's samples say about the assumptions: how much wander they prove, which step could
// have hidden among them, where they are missing. For reports: no interval depends on it.
//
// Wander. The truth lies in [lo, hi] at each knot. Where hi at t lies below the chord of two lo, at
// a and b around t, by D, or lo above the chord of two hi, the clocks' rates must have changed:
// under |theta''| <= w the truth is at most w (t - a)(b - t) / 2 away from its chord, so w >= 2 D /
// ((t - a)(b - t)). The largest of these is the smallest wander that the data permit, as far as
// knots tell.
//
// Steps. Take the samples before an instant alone: theta is in [lo, hi] there; those after it
// alone: in [lo', hi']. While these overlap nothing contradicts a clock that did not step, and the
// largest step that could be meant is max(hi' - lo, hi - lo'). A larger one tears them apart for
// certain.
#ifndef SYNCLINE_CLOCKSYNC_AUDIT_H_
#define SYNCLINE_CLOCKSYNC_AUDIT_H_

#include <cstdint>
#include <vector>

#include "clocksync/corridor.h"

namespace syncline::clocksync {

struct SampleGap {
  int64_t begin_ns = 0;  // by the local clock
  int64_t end_ns = 0;
  int64_t bound_ns = 0;  // half of the interval in its middle; kUnknownHi: unknown
};

struct EdgeAudit {
  int64_t wander_needed_ppt_per_s = 0;  // thousandths of ppb per second
  // Steps larger than this would have been seen, in the median of the instants looked at and at the
  // worst of them; kUnknownHi: any could have hidden.
  int64_t unseen_step_ns_median = 0;
  int64_t unseen_step_ns_worst = 0;
  int64_t unseen_step_worst_at_ns = 0;  // by the local clock
};

// Times without samples that are much longer than their usual distance, in order.
std::vector<SampleGap> FindGaps(const Constraints& constraints, const Corridor& corridor);

EdgeAudit AuditEdge(const Constraints& constraints, const Corridor& corridor,
                    const CorridorOptions& options);

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_AUDIT_H_
