// SPDX-License-Identifier: Apache-2.0
// LTTng's packet index, `index/NAME.idx` beside the stream file NAME: where each packet lies and
// which time it holds. With it a window of a long trace is found by halving, and the packets
// outside of it are never touched.
//
// An index is a hint and is never believed alone: what it says of a packet is compared with the
// packet's own header at every place that is used, and a stream whose index is missing, of another
// version, or wrong there, is walked packet by packet as if there were none. What the index lists
// and the stream does not hold is a loss that nothing else may show: IndexedExtent::beyond,
// FindUnheld.
//
// Format: big-endian; a header of 16 bytes (magic 0xc1f1dcc1, major 1, minor, bytes per entry),
// then entries of 56 bytes (minor 0) or 72 (minor 1): offset in bytes; sizes of packet and content
// in bits; begin, end; discarded events; stream id; stream instance, sequence number.
#ifndef SYNCLINE_CTF_PACKET_INDEX_H_
#define SYNCLINE_CTF_PACKET_INDEX_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/time.h"
#include "ctf/byte_source.h"
#include "ctf/index_entry.h"
#include "ctf/layout.h"
#include "ctf/packet_header.h"
#include "ctf/stream_summary.h"

namespace syncline::ctf {

class PacketIndex {
 public:
  // InvalidArgument: these bytes are no index, or of a version that is not known.
  static absl::StatusOr<PacketIndex> Open(std::unique_ptr<ByteSource> source);
  // The index of a stream file; nullopt when there is none that can be read.
  static std::optional<PacketIndex> OfStream(const std::filesystem::path& stream);

  uint64_t size() const { return size_; }
  absl::StatusOr<IndexEntry> At(uint64_t i);
  // Up to `count` entries from `first` on.
  absl::StatusOr<std::vector<IndexEntry>> Read(uint64_t first, size_t count);
  // The first entry for which `holds` is true, which is so for all that follow; size(): none.
  template <class Holds>
  absl::StatusOr<uint64_t> FirstWhere(Holds holds) {
    uint64_t low = 0;
    uint64_t high = size_;
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      const absl::StatusOr<IndexEntry> entry = At(middle);
      if (!entry.ok()) return entry.status();
      if (holds(*entry)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

 private:
  PacketIndex(std::unique_ptr<ByteSource> source, uint64_t entry_bytes);

  std::unique_ptr<ByteSource> source_;
  uint64_t entry_bytes_ = 0;
  uint64_t size_ = 0;
};

// What a stream holds, from its first packets and its last ones.
struct IndexedExtent {
  uint64_t packets = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  bool end_known = false;    // the last packet says when it ends; if not, its events tell...
  uint64_t resume_byte = 0;  // ...which are found from here on
  std::optional<uint64_t> cpu_id;
  PacketHeader first;  // and of the last one:
  std::optional<uint64_t> last_sequence;
  std::optional<uint64_t> last_discarded;
  uint64_t beyond = 0;        // packets that the index lists behind the stream's end
  int64_t beyond_end_ns = 0;  // of the last one
};

// A stream beside its index. All must outlive this. Errors are of reading alone.
class IndexedStream {
 public:
  IndexedStream(const TraceLayout& layout, ByteSource& stream, PacketIndex& index)
      : layout_(layout), stream_(stream), index_(index) {}

  // Where a packet begins before which no packet holds events of `begin_ns` or later, with one
  // packet of the time before, which tells what was discarded since. 0: from the start.
  absl::StatusOr<uint64_t> Seek(int64_t begin_ns);

  // Nullopt when the index does not fit the stream, as far as it was looked at.
  absl::StatusOr<std::optional<IndexedExtent>> Extent();

 private:
  // The header of the packet that entry `i` describes, when both say the same.
  absl::StatusOr<std::optional<PacketHeader>> Verified(uint64_t i);

  const TraceLayout& layout_;
  ByteSource& stream_;
  PacketIndex& index_;
};

// Packets that an index lists and its stream does not hold, with the time of the index's entries.
struct UnheldPackets {
  uint64_t packets = 0;
  int64_t begin_ns = kUnknownHi;
  int64_t end_ns = kUnknownLo;
};

// Of a stream of which `summary` tells: those of its own, by their numbers before its first or
// behind its last; all of one that has none.
absl::StatusOr<UnheldPackets> FindUnheld(const TraceLayout& layout, const StreamSummary& summary,
                                         PacketIndex* index);

// Seek() in a stream file that may have an index.
absl::StatusOr<uint64_t> SeekStream(const TraceLayout& layout, const std::filesystem::path& stream,
                                    int64_t begin_ns);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_PACKET_INDEX_H_
