// SPDX-License-Identifier: Apache-2.0
// Which messages get an arrow on the timeline, where more were recorded than can be read.
//
// Thousands of arrows a second would hide everything else. As many as the limit allows are chosen,
// evenly over connections and over time:
//   - each direction of a connection gets as many as every other, and what it does not need goes to
//     those that have more;
//   - the time of a direction is cut into as many equal parts as it may have arrows. The largest
//     message of each part is chosen, because large ones are those that take time; what parts
//     without messages leave is spread evenly over the others.
// Messages of one size are drawn like any others, however many there are. The same messages give
// the same choice. Thread-safe: no state.
#ifndef SYNCLINE_TIMELINE_MESSAGE_ARROWS_H_
#define SYNCLINE_TIMELINE_MESSAGE_ARROWS_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "common/time.h"
#include "timeline/messages.h"

namespace syncline::timeline {

inline constexpr size_t kMessageArrowsMax = 20'000;  // guessed: what a viewer can show at once

// Of each stream those that could be drawn: all, or those sent and received in `cut`. Indices into
// its messages, ascending.
using MessageChoice = std::vector<std::vector<size_t>>;
MessageChoice Drawable(std::span<const MessageStream> streams, const std::optional<Interval>& cut);

// Of these `arrows_max` of all streams together, or all where they are fewer.
MessageChoice ChooseArrows(std::span<const MessageStream> streams, MessageChoice drawable,
                           size_t arrows_max = kMessageArrowsMax);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_MESSAGE_ARROWS_H_
