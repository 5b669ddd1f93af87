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
    : table_(std::move(table)),
      directory_(absl::StrCat(table_.name, "/node=", HiveValue(node))),
      batch_rows_(
          std::clamp(kRowsInMemory / std::max<size_t>(nodes, 1), kBatchRowsMin, kBatchRowsMax)) {}

void Partition::Added(TableWriter* writer, const std::vector<std::string>& texts) {
  const size_t rows = table_.rows();
  const bool is_full =
      rows >= batch_rows_ ||
      (rows % kRowsBetweenLooks == 0 &&
       std::any_of(table_.columns.begin(), table_.columns.end(),
                   [](const Column& c) { return c.text_bytes() >= kBatchTextBytes; }));
  if (is_full) Write(writer, texts);
}

void Partition::Finish(TableWriter* writer, const std::vector<std::string>& texts) {
  if (table_.rows() > 0 || batches_ == 0) Write(writer, texts);
}

void Partition::Write(TableWriter* writer, const std::vector<std::string>& texts) {
  writer->Write(absl::StrCat(directory_, "/part-", batches_++ % kParts, ".parquet"), texts,
                &table_);
}

}  // namespace syncline::parquet
