// SPDX-License-Identifier: Apache-2.0
#include "export/parquet/partition.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace syncline::parquet {
namespace {

constexpr size_t kBatchRowsMin = size_t{1} << 12;
constexpr size_t kRowsInMemory = size_t{1} << 21;  // of all nodes together, about
constexpr size_t kBatchTextBytes = 64 << 20;       // of a column: Arrow's offsets have 31 bits
constexpr size_t kRowsBetweenLooks = 256;          // at that
constexpr uint64_t kParts = 4;

// As Hive writes the value of a partition: what a path or a pattern cannot hold is escaped.
std::string HiveValue(std::string_view text) {
  std::string value;
  for (const char c : text) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                       std::string_view("-_.+ ").find(c) != std::string_view::npos ||
                       static_cast<unsigned char>(c) >= 0x80;
    if (plain) {
      value.push_back(c);
    } else {
      absl::StrAppendFormat(&value, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return value.empty() ? "__HIVE_DEFAULT_PARTITION__" : value;
}

}  // namespace

Partition::Partition(Table table, std::string_view node, size_t nodes)
    : directory_(absl::StrCat(table.name, "/node=", HiveValue(node))),
      empty_(std::move(table)),
      pieces_{empty_},
      batch_rows_(
          std::clamp(kRowsInMemory / std::max<size_t>(nodes, 1), kBatchRowsMin, kBatchRowsMax)) {}

size_t Partition::AddPiece() {
  pieces_.push_back(empty_);
  return pieces_.size() - 1;
}

void Partition::Added(TableWriter* writer, const std::vector<std::string>& texts, size_t piece) {
  const std::vector<Column>& columns = pieces_[piece].columns;
  const bool is_full =
      ++rows_ >= batch_rows_ || (columns.front().rows() % kRowsBetweenLooks == 0 &&
                                 std::any_of(columns.begin(), columns.end(), [](const Column& c) {
                                   return c.text_bytes() >= kBatchTextBytes;
                                 }));
  if (is_full) Write(writer, texts);
}

void Partition::Finish(TableWriter* writer, const std::vector<std::string>& texts) {
  const bool is_empty = std::all_of(pieces_.begin(), pieces_.end(),
                                    [](const Table& piece) { return piece.rows() == 0; });
  if (!is_empty || batches_ == 0) Write(writer, texts);
}

void Partition::Write(TableWriter* writer, const std::vector<std::string>& texts) {
  for (Table& piece : pieces_) {
    for (Column& column : piece.columns) column.NullUpTo(piece.rows());
  }
  writer->Write(absl::StrCat(directory_, "/part-", batches_++ % kParts, ".parquet"), texts,
                pieces_);
  rows_ = 0;
}

}  // namespace syncline::parquet
