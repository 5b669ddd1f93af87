// SPDX-License-Identifier: Apache-2.0
// Where a job's ranks wait for collectives: nothing in a trace says "waiting". DDP waits in a bare
// gap, FSDP inside of its containers. A *blocking site* (segments.h: Site) is learnt from the job:
// its silences end when a pending collective leaves. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_BLOCKING_SITES_H_
#define SYNCLINE_ANALYSIS_WHY_BLOCKING_SITES_H_

#include <set>
#include <span>
#include <vector>

#include "analysis/why/segments.h"

namespace syncline::analysis::why {

struct RankSilences {
  std::span<const Silence> silences;
  std::span<const CollectiveEntry> collectives;
};

// Weighed by time: of a site's silence with a collective pending at least 30 % ends at most 0.3 ms
// after one leaves, or 90 % at most 5 ms before one does (Gloo's thread says so late), of all ranks
// together. Or 8 silences or more, of one rank, since others may be silent there for reasons of
// their own, or of all, show it: 90 % of them, by time, end so soon after a leave; or 95 % end
// behind one, and what lies behind it is steadier (75th less 25th percentile, by 30 %) than what
// they last: code that does not wait ends whenever it ends, and the leaves only scatter what lies
// behind them.
// And the site holds at least 0.5 % of `total_ns`, the time of all ranks.
// `small`, if it is given: sites that fulfil all but the last.
// Sites of which the program says that it waits there (Silence::is_wait) are always among them.
// `all_said`: the drivers say where they wait (they may also wait in a future of PyTorch's): then a
// silence beside four collectives or more does not weigh, for of so many one often ends by chance
// as it does.
std::set<Site> BlockingSites(std::span<const RankSilences> ranks, int64_t total_ns, bool all_said,
                             std::set<Site>* small = nullptr);

// The program said so of one of these.
bool SaysWaits(const RankSilences& rank);

// In how much of the silences at these sites a collective was pending.
int64_t PendingNs(const RankSilences& rank, const std::set<Site>& sites);

struct Wait {
  OwnInterval interval;
  uint32_t awaited = 0;    // index into the rank's collectives: whose leave lies nearest to the end
  bool ambiguous = false;  // another one, which was entered at another place, left as near
};

// The waits of one rank: at blocking sites, from when the collective waited for was entered to at
// most 0.3 ms behind its leave (what the driver is silent for after that is its own), or to the
// silence's end where it leaves later; and, wherever they are, for transfers as long as this thread
// waited for them. In order; none overlaps the next.
std::vector<Wait> WaitsOf(const RankSilences& rank, const std::set<Site>& sites, int32_t tid);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_BLOCKING_SITES_H_
