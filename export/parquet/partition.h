// One table's rows of one node on their way into files, partitioned as Hive does it.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_PARQUET_PARTITION_H_
#define SYNCLINE_EXPORT_PARQUET_PARTITION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "export/parquet/table.h"
#include "export/parquet/table_writer.h"

namespace syncline::parquet {

class Partition {
 public:
  Partition() = default;
  // A table that is not partitioned.
  explicit Partition(Table whole) : table_(std::move(whole)), directory_(table_.name) {}
  // The rows of one of `nodes` nodes.
  Partition(Table table, std::string_view node, size_t nodes);

  std::vector<Column>& row() { return table_.columns; }
  // After a row was added: writes the batch, a row group, when it is full.
  void Added(TableWriter* writer, const std::vector<std::string>& texts);
  // What is left. Every table is there, also without rows: a query need not ask first.
  void Finish(TableWriter* writer, const std::vector<std::string>& texts);

 private:
  void Write(TableWriter* writer, const std::vector<std::string>& texts);

  Table table_;
  std::string directory_;
  size_t batch_rows_ = kBatchRowsMax;
  uint64_t batches_ = 0;

  static constexpr size_t kBatchRowsMax = size_t{1} << 18;
};

}  // namespace syncline::parquet

#endif  // SYNCLINE_EXPORT_PARQUET_PARTITION_H_
