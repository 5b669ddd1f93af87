// SPDX-License-Identifier: Apache-2.0
#include "timeline/message_arrows.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace syncline::timeline {
namespace {

// How many arrows each stream may have: those with the fewest messages first, so that what they do
// not need is there for the others.
std::vector<size_t> SharesOf(const MessageChoice& drawable, size_t arrows_max) {
  std::vector<size_t> by_size(drawable.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return drawable[a].size() < drawable[b].size(); });
  std::vector<size_t> shares(drawable.size());
  size_t left = arrows_max;
  for (size_t i = 0; i < by_size.size(); ++i) {
    const size_t fair = left / (by_size.size() - i);
    shares[by_size[i]] = std::min(fair, drawable[by_size[i]].size());
    left -= shares[by_size[i]];
  }
  return shares;
}

// Places in `drawable` of the largest message of each of `parts` equal parts of the time.
std::vector<bool> LargestOfParts(const std::vector<Message>& messages,
                                 const std::vector<size_t>& drawable, size_t parts) {
  const auto [first, last] =
      std::minmax_element(drawable.begin(), drawable.end(),
                          [&](size_t a, size_t b) { return messages[a].sent < messages[b].sent; });
  const int64_t begin_ns = messages[*first].sent.ns;
  const int64_t part_ns = (messages[*last].sent.ns - begin_ns) / static_cast<int64_t>(parts) + 1;
  std::vector<std::optional<size_t>> largest(parts);
  for (size_t i = 0; i < drawable.size(); ++i) {
    const Message& message = messages[drawable[i]];
    auto& best = largest[static_cast<size_t>((message.sent.ns - begin_ns) / part_ns)];
    if (!best.has_value() || message.bytes > messages[drawable[*best]].bytes) best = i;
  }
  std::vector<bool> chosen(drawable.size());
  for (const std::optional<size_t>& best : largest) {
    if (best.has_value()) chosen[*best] = true;
  }
  return chosen;
}

// `share` of `drawable`, which are more.
std::vector<size_t> ChooseFrom(const std::vector<Message>& messages,
                               const std::vector<size_t>& drawable, size_t share) {
  if (share == 0) return {};
  const std::vector<bool> largest = LargestOfParts(messages, drawable, share);
  const auto parts = static_cast<size_t>(std::count(largest.begin(), largest.end(), true));
  const size_t more = share - parts;  // what parts without messages leave
  const size_t others = drawable.size() - parts;
  std::vector<size_t> chosen;
  for (size_t i = 0, other = 0; i < drawable.size(); ++i) {
    // Every so-manyth: where the count of those to be chosen so far goes up.
    const bool is_chosen = largest[i] || (other + 1) * more / others > other * more / others;
    if (!largest[i]) ++other;
    if (is_chosen) chosen.push_back(drawable[i]);
  }
  return chosen;
}

}  // namespace

MessageChoice Drawable(std::span<const MessageStream> streams, const std::optional<Interval>& cut) {
  MessageChoice drawable(streams.size());
  for (size_t i = 0; i < streams.size(); ++i) {
    const std::vector<Message>& messages = streams[i].messages;
    for (size_t at = 0; at < messages.size(); ++at) {
      if (!cut.has_value() ||
          (cut->Contains(messages[at].sent) && cut->Contains(messages[at].last))) {
        drawable[i].push_back(at);
      }
    }
  }
  return drawable;
}

MessageChoice ChooseArrows(std::span<const MessageStream> streams, MessageChoice drawable,
                           size_t arrows_max) {
  const std::vector<size_t> shares = SharesOf(drawable, arrows_max);
  for (size_t i = 0; i < streams.size(); ++i) {
    if (shares[i] == drawable[i].size()) continue;
    drawable[i] = ChooseFrom(streams[i].messages, drawable[i], shares[i]);
  }
  return drawable;
}

}  // namespace syncline::timeline
