// SPDX-License-Identifier: Apache-2.0
#include "ctf/index_sizes.h"

#include <algorithm>

#include "ctf/packet_index.h"

namespace syncline::ctf {
namespace {

constexpr size_t kEntriesMax = 16;  // at once; of a short stream fewer

}  // namespace

std::optional<uint64_t> IndexSizes::ContentOf(uint64_t offset, const PacketHeader& header) {
  for (;; ++at_) {
    if (at_ == fetched_.size()) Fetch(offset);
    if (at_ == fetched_.size() || fetched_[at_].offset > offset) return std::nullopt;
    const IndexEntry& entry = fetched_[at_];
    if (entry.offset < offset) continue;
    const bool same =
        entry.packet_bits == header.packet_bits && entry.begin_cycles == header.begin_cycles &&
        entry.end_cycles == header.end_cycles && entry.content_bits <= entry.packet_bits;
    return same ? std::optional<uint64_t>(entry.content_bits) : std::nullopt;
  }
}

// The next entries; at first, those from `offset` on.
void IndexSizes::Fetch(uint64_t offset) {
  if (over_) return;
  fetched_.clear();
  at_ = 0;
  std::optional<PacketIndex> index = PacketIndex::OfStream(stream_);
  if (index && !next_) {
    const auto found =
        index->FirstWhere([offset](const IndexEntry& entry) { return entry.offset >= offset; });
    if (found.ok()) next_ = *found;
  }
  if (index && next_) {
    const auto entries = index->Read(*next_, entries_);
    entries_ = std::min(2 * entries_, kEntriesMax);
    if (entries.ok()) fetched_ = *entries;
    *next_ += fetched_.size();
  }
  over_ = fetched_.empty();
}

}  // namespace syncline::ctf
