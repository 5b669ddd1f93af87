// What kinds of collectives make their ranks wait for.
#ifndef SYNCLINE_TIMELINE_COLLECTIVE_KINDS_H_
#define SYNCLINE_TIMELINE_COLLECTIVE_KINDS_H_

#include <string_view>

namespace syncline::timeline {

// Whether nobody leaves before everybody has entered, by what the collective computes: every rank's
// result needs every rank's part. Not so where data flow one way only (a broadcast's root may leave
// before anybody else enters; reduce, gather, scatter) nor in an all-to-all, whose parts may be
// empty. `collective` as in Collective::name: "allreduce". Of nothing at all (may_be_empty) only a
// barrier waits.
bool EverybodyWaits(std::string_view collective, bool may_be_empty);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_COLLECTIVE_KINDS_H_
