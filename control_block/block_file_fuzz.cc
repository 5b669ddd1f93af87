// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the readers of control blocks and of name tables, and uses what they
// return.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "control_block/block_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace cb = syncline::control_block;
  const std::span<const uint8_t> bytes(data, size);
  if (const auto block = cb::ParseBlock(bytes); block.ok()) {
    const std::string name = cb::BlockFileName(block->facts.id);
    if (const auto id = cb::ParseBlockFileName(name); id && *id != block->facts.id) std::abort();
    if (block->threads.size() > 1024) std::abort();
  }
  if (const auto names = cb::ParseNames(bytes); names.ok()) {
    size_t text_bytes = 0;
    for (uint32_t id = 0; id <= names->size() + 1; ++id) text_bytes += names->Text(id).size();
    if (text_bytes > size) std::abort();
  }
  return 0;
}
