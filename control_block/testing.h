// SPDX-License-Identifier: Apache-2.0
// Builds control blocks for tests.
#ifndef SYNCLINE_CONTROL_BLOCK_TESTING_H_
#define SYNCLINE_CONTROL_BLOCK_TESTING_H_

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "instrumentation/abi/control_block.h"

namespace syncline::control_block {

// A live block of process 4026531836-1234-5678 with two threads (keys 11 and 12).
inline std::vector<uint8_t> MakeBlockBytes() {
  struct {
    syncline_block block;
    syncline_thread_slot slots[SYNCLINE_BLOCK_THREADS];
  }* made = new std::remove_pointer_t<decltype(made)>();
  std::memset(static_cast<void*>(made), 0, sizeof *made);
  syncline_block& block = made->block;
  std::memcpy(block.magic, SYNCLINE_BLOCK_MAGIC, 8);
  block.version = SYNCLINE_BLOCK_VERSION;
  block.header_bytes = sizeof block;
  block.state = SYNCLINE_STATE_LIVE;
  block.sources = SYNCLINE_SOURCE_ITT;
  block.pid = 1234;
  block.uid = 0;
  block.pid_namespace = 4026531836;
  block.start_ticks = 5678;
  block.rank = 1;
  block.world_size = 2;
  block.local_rank = -1;
  block.process_key = 10;
  std::strcpy(block.job, "night");
  std::strcpy(block.role, "worker");
  std::strcpy(block.command_line, "python train.py");
  block.thread_slots_used = 2;
  block.recording_generation = 3;
  block.asked_monotonic_ns = 900;
  block.on_monotonic_ns = 1000;
  block.lost_before_on = 1;
  block.events_at_on = 5;
  block.names_bytes = sizeof(syncline_names_header);
  made->slots[0] = {11, 1234, 8, 1, 900, 3, "main"};
  made->slots[1] = {12, 1235, 4, 0, 100, 1, "worker"};
  const auto* bytes = reinterpret_cast<const uint8_t*>(made);
  std::vector<uint8_t> result(bytes, bytes + sizeof *made);
  delete made;
  return result;
}

// A table with `names` as ids 1, 2, ..., all of kind `kind`.
inline std::string MakeNamesBytes(const std::vector<std::string>& names, uint8_t kind = 2) {
  syncline_names_header header{};
  std::memcpy(header.magic, SYNCLINE_NAMES_MAGIC, 8);
  header.version = SYNCLINE_BLOCK_VERSION;
  header.limit_bytes = 64u << 20;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  for (uint32_t i = 0; i < names.size(); ++i) {
    const syncline_name_record record{i + 1, static_cast<uint16_t>(names[i].size()), kind, 0};
    bytes.append(reinterpret_cast<const char*>(&record), sizeof record);
    bytes += names[i];
    bytes.append(4 - names[i].size() % 4, '\0');
  }
  return bytes;
}

inline std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace syncline::control_block

#endif  // SYNCLINE_CONTROL_BLOCK_TESTING_H_
