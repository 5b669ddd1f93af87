// SPDX-License-Identifier: Apache-2.0
// Many events of one class, decoded field by field instead of event by event: what differs from
// field to field is decided once for all of them, and the rest is tight loops over numbers.
#ifndef SYNCLINE_CTF_COLUMNS_H_
#define SYNCLINE_CTF_COLUMNS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/event_cursor.h"
#include "ctf/fast_path.h"

namespace syncline::ctf {

// Kept between calls, to save allocation.
struct ColumnScratch {
  std::vector<const uint8_t*> at;  // in each event
  std::vector<uint64_t> numbers;
  std::vector<std::string_view> texts;
  std::vector<uint32_t> counts;
  std::array<std::vector<uint64_t>, FastProgram::kSlots> slots;  // values that others refer to
};

// Gives the fields of `records` to `sink`. The records must be of one class that has these fields
// and have been found by a reader, which has checked that they lie inside their packet.
void WalkColumns(std::span<const FastField> fields, std::span<const EventRecord> records,
                 ColumnScratch& scratch, ColumnSink& sink);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_COLUMNS_H_
