// SPDX-License-Identifier: Apache-2.0
// How well one clock is known from another, as a picture: the samples, the corridor that they
// prove, the estimate in it. For `syncline clocks`, on the terminal and as SVG.
//
// What is drawn is the offset (remote - local) less a straight line, the usual drift: what is left
// is nanoseconds, where the offset itself may be days. Each message gives one end: from above those
// that went to the remote clock, from below those that came back. The truth lies between all of
// them.
//
// Self-contained SVG: no scripts, no external fonts. The same edges give the same bytes.
#ifndef SYNCLINE_EXPORT_REPORT_CLOCK_PLOT_H_
#define SYNCLINE_EXPORT_REPORT_CLOCK_PLOT_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "clocksync/builder.h"
#include "clocksync/events.h"

namespace syncline::report {

// Edges as BuildOptions::audit fills them, and what happened.
struct ClockPlotInput {
  std::string title;
  std::span<const clocksync::EdgeQuality> edges;
  std::span<const clocksync::ClockEvent> events;
  size_t edges_max = 12;  // further ones are counted
};

std::string ClockPlotSvg(const ClockPlotInput& input);

// At most `width` columns; the narrowest edges first, `edges_max` of them.
std::string ClockPlotText(const ClockPlotInput& input, size_t width);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_CLOCK_PLOT_H_
