// SPDX-License-Identifier: Apache-2.0
// What a packet index says of a packet (packet_index.h).
#ifndef SYNCLINE_CTF_INDEX_ENTRY_H_
#define SYNCLINE_CTF_INDEX_ENTRY_H_

#include <cstdint>
#include <optional>

namespace syncline::ctf {

struct IndexEntry {
  uint64_t offset = 0;  // bytes
  uint64_t packet_bits = 0;
  uint64_t content_bits = 0;
  uint64_t begin_cycles = 0;
  uint64_t end_cycles = 0;
  uint64_t stream_id = 0;
  std::optional<uint64_t> stream_instance_id;  // since minor 1
  std::optional<uint64_t> sequence;
};

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_INDEX_ENTRY_H_
