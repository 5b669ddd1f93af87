// SPDX-License-Identifier: Apache-2.0
// What a stream's packet index says of the sizes of its contents, beside the packets themselves:
// one that was changed to a smaller one hides events, and nothing else in the stream tells.
#ifndef SYNCLINE_CTF_INDEX_SIZES_H_
#define SYNCLINE_CTF_INDEX_SIZES_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "ctf/index_entry.h"
#include "ctf/packet_header.h"

namespace syncline::ctf {

// For packets in the order of the stream. Holds no descriptor between calls, and a few hundred
// bytes. Not thread-safe.
class IndexSizes {
 public:
  // `stream`: the file that may have an index.
  explicit IndexSizes(std::filesystem::path stream) : stream_(std::move(stream)) {}

  // Bits of content of the packet that begins at this byte, behind the one asked for before;
  // nullopt: the index does not tell, or means another packet by what else it says.
  std::optional<uint64_t> ContentOf(uint64_t offset, const PacketHeader& header);

 private:
  void Fetch(uint64_t offset);

  std::filesystem::path stream_;
  std::vector<IndexEntry> fetched_;
  size_t at_ = 0;                 // in fetched_
  std::optional<uint64_t> next_;  // the entry behind them; nullopt: not looked for yet
  size_t entries_ = 4;            // to be fetched
  bool over_ = false;
};

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_INDEX_SIZES_H_
