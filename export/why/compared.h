// SPDX-License-Identifier: Apache-2.0
// A comparison of recordings, with what only the command line knows.
//
// Thread-safety: plain values.
#ifndef SYNCLINE_EXPORT_WHY_COMPARED_H_
#define SYNCLINE_EXPORT_WHY_COMPARED_H_

#include <string>
#include <vector>

#include "analysis/why/comparison.h"
#include "analysis/why/cut_comparison.h"
#include "analysis/why/device_comparison.h"
#include "analysis/why/limits.h"

namespace syncline::report {

struct ComparedNames {
  std::vector<analysis::why::LimitResult> limits;
  std::string now;  // where the recordings lie
  std::vector<std::string> before;
};

template <class Comparison>
struct Compared : ComparedNames {
  Comparison comparison;
};
using ComparedRecordings = Compared<analysis::why::Comparison>;
using ComparedDevices = Compared<analysis::why::DeviceComparison>;
using ComparedCuts = Compared<analysis::why::CutComparison>;

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_COMPARED_H_
