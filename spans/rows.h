// SPDX-License-Identifier: Apache-2.0
// A plain table of spans as text, row by row: CSV with a header, or JSON lines (an object a line).
//
//   rank,step,name,start_ns,duration_ns,kind,node,device,stream,sequence
//   0,3,matmul,1790857026000000000,20000,kernel,host0,GPU 0,7,
//
// Columns have these names, in any order. rank, step, name, start_ns, duration_ns and kind must be
// there; step may be empty, for what is in no step. Other columns are kept as texts. Nothing is
// skipped: the first row that cannot be is an error with its line and column.
//
// CSV as RFC 4180 has it: fields in quotes may have commas, doubled quotes and line ends.
// Thread-safe: no state.
#ifndef SYNCLINE_SPANS_ROWS_H_
#define SYNCLINE_SPANS_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace syncline::spans {

struct Row {
  int32_t rank = 0;
  std::optional<int64_t> step, sequence;
  std::string name, kind;  // not empty
  int64_t start_ns = 0;    // since 1970, UTC, by the clock of the rank's host
  int64_t duration_ns = 0;
  std::string node, device, stream;                         // empty: not given
  std::vector<std::pair<std::string, std::string>> others;  // that are not empty, by column
};

enum class Format : uint8_t { kCsv, kJsonLines };

// Of a text that begins so: a table is what has start_ns or duration_ns, as a column of its first
// line or in its first object. nullopt: it is none.
std::optional<Format> FormatOf(std::string_view head);

// InvalidArgument: "line 7, column start_ns: ...", by the lines of the text from 1 on.
absl::Status ReadRows(std::string_view text, Format format,
                      absl::FunctionRef<void(const Row&)> on_row);

}  // namespace syncline::spans

#endif  // SYNCLINE_SPANS_ROWS_H_
