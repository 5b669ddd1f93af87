#include "ctf/stream_chain.h"

#include <algorithm>
#include <map>

namespace syncline::ctf {
namespace {

struct Link {
  const TraceReader* reader = nullptr;
  ChainedReader* chained = nullptr;
  size_t stream = 0;
  StreamPlace place;
};

// A trace without a uuid has no streams elsewhere.
using Writer = std::tuple<Uuid, const TraceReader*, uint64_t, uint64_t>;

bool SamePacket(const Link& a, const Link& b, uint64_t number) {
  const auto mark = a.chained->MarkOf(a.stream, number);
  return mark && mark == b.chained->MarkOf(b.stream, number);
}

// Whether `next` is of the writer of `links`, all of which begin before it.
bool GoesOn(std::span<const Link> links, const Link& next, const StreamBefore& before) {
  if (next.place.first > before.number) return next.place.begin_ns >= before.end_ns;
  return std::any_of(links.begin(), links.end(), [&next](const Link& link) {
    return link.place.last >= next.place.first && SamePacket(link, next, next.place.first);
  });
}

}  // namespace

std::vector<Again> ChainStreams(std::span<TraceReader* const> readers) {
  std::map<Writer, std::vector<Link>> writers;
  for (TraceReader* reader : readers) {
    auto* const chained = dynamic_cast<ChainedReader*>(reader);
    if (chained == nullptr) continue;
    const std::optional<Uuid> uuid = chained->uuid();
    for (size_t i = 0; i < chained->places().size(); ++i) {
      chained->GoOnFrom(i, std::nullopt);
      const std::optional<StreamPlace>& place = chained->places()[i];
      if (!place) continue;
      const Writer writer(uuid.value_or(Uuid{}), uuid ? nullptr : reader, place->stream_class,
                          place->instance);
      writers[writer].push_back({reader, chained, i, *place});
    }
  }
  std::vector<Again> again;
  for (auto& [writer, links] : writers) {
    // Of two that begin with the same packet, the longer one is the original.
    std::stable_sort(links.begin(), links.end(), [](const Link& a, const Link& b) {
      return std::pair(a.place.first, ~a.place.last) < std::pair(b.place.first, ~b.place.last);
    });
    StreamBefore before;
    const auto extend = [&before](const StreamPlace& place) {
      before.number = place.last;
      before.discarded = place.discarded;
      before.end_ns = std::max(before.end_ns, place.end_ns);
    };
    extend(links[0].place);
    for (size_t i = 1; i < links.size(); ++i) {
      const StreamPlace& place = links[i].place;
      if (!GoesOn(std::span(links).first(i), links[i], before)) break;
      links[i].chained->GoOnFrom(links[i].stream, before);
      if (place.first <= before.number) {
        const uint64_t last = std::min(place.last, before.number);
        again.push_back({links[i].reader, links[i].stream, last - place.first + 1});
      }
      if (place.last > before.number) extend(place);
    }
  }
  return again;
}

}  // namespace syncline::ctf
