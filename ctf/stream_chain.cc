// SPDX-License-Identifier: Apache-2.0
#include "ctf/stream_chain.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace syncline::ctf {
namespace {

struct Link {
  const TraceReader* reader = nullptr;
  ChainedReader* chained = nullptr;
  size_t stream = 0;
  StreamPlace place;
  bool shares = false;  // numbers with another one
};

// A trace without a uuid has no streams elsewhere.
using Writer = std::tuple<Uuid, const TraceReader*, uint64_t, uint64_t>;

// A packet that is whole, by its number, with the place of its stream in the chain.
using Packets = std::unordered_multimap<uint64_t, std::pair<size_t, PacketMark>>;

// The streams of one writer, in the order of their numbers.
class Chain {
 public:
  explicit Chain(std::vector<Link> links) : links_(std::move(links)) {
    // Of two that begin with the same packet, the longer one is the original.
    std::stable_sort(links_.begin(), links_.end(), [](const Link& a, const Link& b) {
      return std::pair(a.place.first, ~a.place.last) < std::pair(b.place.first, ~b.place.last);
    });
    size_t longest = 0;
    for (size_t i = 1; i < links_.size(); ++i) {
      const bool shares = links_[i].place.first <= links_[longest].place.last;
      links_[i].shares = links_[i].shares || shares;
      links_[longest].shares = links_[longest].shares || shares;
      if (links_[i].place.last > links_[longest].place.last) longest = i;
    }
  }

  void Run(std::vector<Again>* again) {
    marks_.resize(links_.size());
    for (size_t i = 0; i < links_.size(); ++i) {
      if (!links_[i].shares) continue;
      marks_[i] = links_[i].chained->MarksOf(links_[i].stream);
      for (const PacketMark& mark : marks_[i]) {
        if (mark.whole) packets_.emplace(mark.number, std::pair(i, mark));
      }
    }
    for (size_t i = 0; i < links_.size(); ++i) Add(i, again);
  }

 private:
  void Add(size_t i, std::vector<Again>* again) {
    const Link& link = links_[i];
    const StreamPlace& place = link.place;
    const bool later = last_ != nullptr && place.first > number_;
    if (later && place.begin_ns < last_->end_ns) return;  // another writer's
    StreamBefore before;
    if (later) before = {number_, last_->discarded, last_->end_ns, nullptr};
    if (link.shares && !PassOver(i, &before, again)) return;
    link.chained->GoOnFrom(link.stream, std::move(before));
    if (last_ != nullptr && place.last <= last_->last) return;
    last_ = &place;
    if (__builtin_add_overflow(place.last, place.lost_behind, &number_)) number_ = place.last;
  }

  // What is elsewhere of the stream: of packets that are whole, the first of the same; of others,
  // one that is. False: it shares numbers with those before it, and no packet.
  bool PassOver(size_t i, StreamBefore* before, std::vector<Again>* again) {
    auto elsewhere = std::make_shared<std::vector<uint64_t>>();
    uint64_t different = 0;
    for (const PacketMark& mark : marks_[i]) {
      bool found = false;
      bool differs = false;
      const auto [begin, end] = packets_.equal_range(mark.number);
      for (auto known = begin; known != end; ++known) {
        const auto& [stream, other] = known->second;
        if (mark.whole ? stream >= i : stream == i) continue;
        const bool same = mark.whole ? other.hash == mark.hash
                                     : mark.begin_cycles && other.begin_cycles == mark.begin_cycles;
        (same ? found : differs) = true;
      }
      if (found) elsewhere->push_back(mark.offset);
      if (!found && differs) ++different;
    }
    if (elsewhere->empty()) return different == 0;
    again->push_back({links_[i].reader, links_[i].stream, elsewhere->size(), different});
    before->elsewhere = std::move(elsewhere);
    return true;
  }

  std::vector<Link> links_;
  std::vector<std::vector<PacketMark>> marks_;  // beside links_
  Packets packets_;
  const StreamPlace* last_ = nullptr;  // the one that reached furthest
  uint64_t number_ = 0;                // so far
};

std::map<Writer, std::vector<Link>> LinksOf(std::span<TraceReader* const> readers) {
  std::map<Writer, std::vector<Link>> writers;
  for (TraceReader* reader : readers) {
    auto* const chained = dynamic_cast<ChainedReader*>(reader);
    if (chained == nullptr) continue;
    const std::optional<Uuid> uuid = chained->uuid();
    for (size_t i = 0; i < chained->places().size(); ++i) {
      const std::optional<StreamPlace>& place = chained->places()[i];
      if (!place) continue;
      const Writer writer(uuid.value_or(Uuid{}), uuid ? nullptr : reader, place->stream_class,
                          place->instance);
      writers[writer].push_back({reader, chained, i, *place});
    }
  }
  return writers;
}

}  // namespace

std::vector<Again> ChainStreams(std::span<TraceReader* const> readers) {
  for (TraceReader* reader : readers) {
    auto* const chained = dynamic_cast<ChainedReader*>(reader);
    if (chained == nullptr) continue;
    for (size_t i = 0; i < chained->places().size(); ++i) chained->GoOnFrom(i, {});
  }
  std::vector<Again> again;
  for (auto& [writer, links] : LinksOf(readers)) {
    if (links.size() > 1) Chain(std::move(links)).Run(&again);
  }
  return again;
}

LateBegins FindLateBegins(std::span<TraceReader* const> readers) {
  LateBegins late;
  for (const auto& [writer, links] : LinksOf(readers)) {
    uint64_t first = UINT64_MAX;
    for (const Link& link : links) first = std::min(first, link.place.first);
    if (first == 0) continue;
    ++late.writers;
    late.packets += first;
  }
  return late;
}

}  // namespace syncline::ctf
