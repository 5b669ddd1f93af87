// SPDX-License-Identifier: Apache-2.0
#include "timeline/messages.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/text.h"

namespace syncline::timeline {
namespace {

// How long a process goes on counting before it asks the kernel again (docs/event-schema.md).
constexpr int64_t kCheckNs = 50'000'000;

std::string Spelled(const MessageMatcher::Address& address) {
  const bool v6 = address.text.find(':') != std::string_view::npos;
  return v6 ? absl::StrCat("[", AbslView(address.text), "]:", address.port)
            : absl::StrCat(AbslView(address.text), ":", address.port);
}

bool IsLoopback(std::string_view text) {
  return absl::StartsWith(AbslView(text), "127.") || text == "::1";
}

// Bytes that both have; both sorted by position.
template <class Transfers>
uint64_t CommonBytes(const Transfers& a, const Transfers& b) {
  uint64_t common = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const uint64_t a_end = a[i].begin + a[i].bytes;
    const uint64_t b_end = b[j].begin + b[j].bytes;
    const uint64_t begin = std::max(a[i].begin, b[j].begin);
    const uint64_t end = std::min(a_end, b_end);
    if (begin < end) common += end - begin;
    if (a_end < b_end) {
      ++i;
    } else {
      ++j;
    }
  }
  return common;
}

}  // namespace

uint32_t MessageMatcher::EndOf(uint32_t node, uint32_t process, uint64_t connection,
                               ClockId clock) {
  const auto [entry, is_new] =
      end_numbers_.try_emplace({node, process, connection}, static_cast<uint32_t>(ends_.size()));
  if (is_new) {
    End end;
    end.node = node;
    end.clock = clock;
    ends_.push_back(std::move(end));
  }
  return entry->second;
}

void MessageMatcher::SetProcess(uint32_t end, std::string_view name) { ends_[end].process = name; }

void MessageMatcher::OnConnection(uint32_t number, Address local, Address remote) {
  End& end = ends_[number];
  if (!end.local.empty()) return;
  end.local = Spelled(local);
  end.remote = Spelled(remote);
  end.loopback = IsLoopback(local.text);
  by_addresses_.emplace(std::pair(end.local, end.remote), number);
}

void MessageMatcher::OnRetransmits(uint32_t number, uint32_t retransmits) {
  End& end = ends_[number];
  if (!end.first_retransmits.has_value()) end.first_retransmits = retransmits;
  end.last_retransmits = retransmits;
}

void MessageMatcher::Add(End* end, Direction* direction, const Transfer& transfer) {
  direction->bytes += transfer.bytes;
  const TimelineTime when = transfer.at.timeline;
  if (!end->begin.has_value()) {
    end->begin = end->end = when;
  } else {
    end->begin = std::min(*end->begin, when);
    end->end = std::max(end->end, when);
  }
  if (transfers_ >= options_.transfers_max) {
    ++direction->left_out;
    return;
  }
  ++transfers_;
  direction->transfers.push_back(transfer);
}

void MessageMatcher::OnSend(uint32_t end, uint64_t begin, uint64_t bytes, Place at, TrackId track) {
  Add(&ends_[end], &ends_[end].sent, {begin, bytes, at, track});
}

void MessageMatcher::OnReceive(uint32_t end, uint64_t begin, uint64_t bytes, Place at,
                               TrackId track) {
  Add(&ends_[end], &ends_[end].received, {begin, bytes, at, track});
}

void MessageMatcher::OnUnplaced(uint32_t end, bool receive, uint64_t bytes) {
  Direction& direction = receive ? ends_[end].received : ends_[end].sent;
  direction.bytes += bytes;
  direction.unplaced_bytes += bytes;
}

void MessageMatcher::OnDoubt(uint32_t end, bool receive) {
  Direction& direction = receive ? ends_[end].received : ends_[end].sent;
  direction.doubted = true;
  for (const Transfer& transfer : direction.transfers) direction.unplaced_bytes += transfer.bytes;
  transfers_ -= direction.transfers.size();
  direction.transfers.clear();
}

// Where bytes went by unseen, they do so again, also behind the last time that the kernel was
// asked.
void MessageMatcher::DropUnchecked(Direction* direction) {
  std::vector<Transfer>& transfers = direction->transfers;
  if (!direction->doubted || transfers.empty()) return;
  const int64_t checked_ns = transfers.back().at.ns - kCheckNs;
  const auto first =
      std::find_if(transfers.begin(), transfers.end(),
                   [&](const Transfer& transfer) { return transfer.at.ns > checked_ns; });
  for (auto it = first; it != transfers.end(); ++it) direction->unplaced_bytes += it->bytes;
  transfers.erase(first, transfers.end());
}

uint64_t MessageMatcher::Overlap(const End& a, const End& b) {
  return CommonBytes(a.sent.transfers, b.received.transfers) +
         CommonBytes(b.sent.transfers, a.received.transfers);
}

// Of several that mirror it (addresses are used again, or simulated hosts share them), the only one
// with bytes in common.
std::optional<uint32_t> MessageMatcher::PartnerOf(uint32_t number) const {
  const End& end = ends_[number];
  if (end.local.empty() || !end.begin.has_value()) return std::nullopt;
  std::optional<uint32_t> found;
  const auto [first, last] = by_addresses_.equal_range({end.remote, end.local});
  for (auto candidate = first; candidate != last; ++candidate) {
    const End& other = ends_[candidate->second];
    if (candidate->second == number || !other.begin.has_value()) continue;
    if (end.loopback && end.node != other.node) continue;
    const int64_t apart_ns = std::max(other.begin->ns - end.end.ns, end.begin->ns - other.end.ns);
    if (apart_ns > options_.margin_ns) continue;
    if (Overlap(end, other) == 0) continue;
    if (found.has_value()) return std::nullopt;
    found = candidate->second;
  }
  return found;
}

MessageStream MessageMatcher::MatchDirection(const End& sender, const End& receiver) {
  MessageStream stream;
  stream.send_node = sender.node;
  stream.receive_node = receiver.node;
  stream.sender = sender.process;
  stream.receiver = receiver.process;
  stream.from = sender.local;
  stream.to = sender.remote;
  stream.sender_clock = sender.clock;
  stream.receiver_clock = receiver.clock;
  stream.sent_bytes = sender.sent.bytes;
  stream.received_bytes = receiver.received.bytes;
  stream.unplaced_bytes = sender.sent.unplaced_bytes + receiver.received.unplaced_bytes;
  if (sender.first_retransmits.has_value()) {
    stream.retransmits = *sender.last_retransmits - *sender.first_retransmits;
  }
  const std::vector<Transfer>& sends = sender.sent.transfers;
  const std::vector<Transfer>& receives = receiver.received.transfers;
  stream.matched_bytes = CommonBytes(sends, receives);
  size_t at = 0;
  for (const Transfer& send : sends) {
    const uint64_t send_end = send.begin + send.bytes;
    while (at < receives.size() && receives[at].begin + receives[at].bytes <= send.begin) ++at;
    size_t last = at;
    while (last < receives.size() && receives[last].begin + receives[last].bytes < send_end &&
           last + 1 < receives.size() &&
           receives[last + 1].begin == receives[last].begin + receives[last].bytes) {
      ++last;
    }
    const bool whole = at < receives.size() && receives[at].begin <= send.begin &&
                       receives[last].begin + receives[last].bytes >= send_end;
    if (!whole) {
      ++stream.unmatched;
      continue;
    }
    const Transfer& first_taken = receives[at];
    const Transfer& last_taken = receives[last];
    stream.messages.push_back({send.bytes, send.at.ns, first_taken.at.ns, last_taken.at.ns,
                               send.at.timeline, first_taken.at.timeline, last_taken.at.timeline,
                               send.track, last_taken.track});
  }
  return stream;
}

MessageMatcher::Result MessageMatcher::Match() {
  Result result;
  const auto by_position = [](const Transfer& a, const Transfer& b) { return a.begin < b.begin; };
  for (End& end : ends_) {
    for (Direction* direction : {&end.sent, &end.received}) {
      DropUnchecked(direction);
      std::stable_sort(direction->transfers.begin(), direction->transfers.end(), by_position);
      if (result.nodes.size() <= end.node) result.nodes.resize(end.node + 1);
      if (direction->doubted) ++result.nodes[end.node].doubted;
      result.nodes[end.node].left_out += direction->left_out;
    }
  }
  for (uint32_t number = 0; number < ends_.size(); ++number) {
    const End& end = ends_[number];
    const std::optional<uint32_t> partner = PartnerOf(number);
    // Two that each see only the other: else one of them has another choice.
    if (!partner.has_value() || PartnerOf(*partner) != number) {
      if (end.sent.bytes + end.received.bytes == 0) continue;
      ++result.nodes[end.node].alone;
      result.nodes[end.node].alone_bytes += end.sent.bytes + end.received.bytes;
      continue;
    }
    if (number < *partner) ++result.nodes[end.node].connections;
    MessageStream stream = MatchDirection(end, ends_[*partner]);
    if (stream.sent_bytes > 0) result.streams.push_back(std::move(stream));
  }
  std::stable_sort(
      result.streams.begin(), result.streams.end(),
      [](const MessageStream& a, const MessageStream& b) {
        return std::tie(a.send_node, a.receive_node, a.sender, a.receiver, a.from, a.to) <
               std::tie(b.send_node, b.receive_node, b.sender, b.receiver, b.from, b.to);
      });
  return result;
}

}  // namespace syncline::timeline
