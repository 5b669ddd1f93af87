// SPDX-License-Identifier: Apache-2.0
// Cost counted by a process in its control block -> an estimate with an interval.
//
// A process times a sample of its calls of our code: the last of about 7 in a row at first, of ever
// more later, at last of 251, give or take a quarter at random; that one stands for them all. A
// call of more than 50 us was interrupted,
// and stands for itself. What happens rarely is timed always. With x the time of a sample, n the
// calls that it stands for and m samples, what the samples stand for took
//
//     S = sum(n x)        Var(S) = m / (m - 1) (sum (n x)^2 - S^2 / m)
//
// Var takes the n x for independent draws, which they are nearly: the n are random, so that no
// rhythm of the program keeps step with them. That they also grow is counted as if it were chance:
// the interval is wider than need be. How S is distributed is not assumed: Chebyshev's inequality
// holds for every distribution, |S - truth| < sqrt(20 Var) in 95 of 100 recordings. Calls behind
// each thread's last sample are taken to be like the others, and their whole size is added to the
// deviation. Below it is cut off at what a clock has really seen; above, and with fewer than 30
// samples only there, at 50 us for each call that was not timed.
//
// Not in it: a kind of call that is rare and dear and that no sample met; interrupted calls that
// were not timed (the time was somebody else's).
//
// Worked example: 100 samples of n = 10, half of them 100 ns, half 300 ns: S = 200 us, sum (n x)^2
// = 50 (1 us^2 + 9 us^2) = 500 us^2, Var = 100 / 99 (500 - 400) us^2 = 101 us^2; 200 us +- 45 us.
//
// The variance is an estimate, too: hence the 30 samples. Thread-safe: no state.
#ifndef SYNCLINE_CONTROL_BLOCK_COST_H_
#define SYNCLINE_CONTROL_BLOCK_COST_H_

#include "common/time.h"
#include "control_block/block_file.h"

namespace syncline::control_block {

// The time spent inside our code in the recording that `gate` answers for, all threads added.
// Unbounded when the libraries in the process are older than the sums.
DurationEstimate CostOf(const GateAnswer& gate);

}  // namespace syncline::control_block

#endif  // SYNCLINE_CONTROL_BLOCK_COST_H_
