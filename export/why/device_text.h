// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline why` of jobs that compute on devices, for a terminal: LATE, CAUSE, COST,
// ALL, the table of parts, TRUST, NEXT; NOBODY or UNDECIDED in place of LATE. What each word and
// number means: docs/findings.md.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_DEVICE_TEXT_H_
#define SYNCLINE_EXPORT_WHY_DEVICE_TEXT_H_

#include <string>

#include "analysis/why/device_model.h"
#include "export/why/why_text.h"

namespace syncline::report {

// As WhyText.
std::string DeviceWhyText(const analysis::why::DeviceAnswer& answer, const WhyTextOptions& options);

// "its device was held back by its temperature in 40 % to 41 % of the window, the others' in ..."
std::string HeldBackText(const analysis::why::DeviceHeldBack& held);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_DEVICE_TEXT_H_
