// SPDX-License-Identifier: Apache-2.0
// One table's rows of one node on their way into files, partitioned as Hive does it.
//
// A row group's rows may come in pieces: rows that are like each other stand together in it, where
// they take the least room and time, whatever the order in which they were added.
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
  explicit Partition(Table whole) : directory_(whole.name), empty_(whole), pieces_{whole} {}
  // The rows of a node; of `nodes` nodes there are some in memory at once.
  Partition(Table table, std::string_view node, size_t nodes);

  std::vector<Column>& row(size_t piece = 0) { return pieces_[piece].columns; }
  // Another piece, behind those that there are; which one. What row() gave is no longer valid.
  size_t AddPiece();
  // After a row was added to a piece: writes the batch, a row group, when it is full. Columns
  // behind the first which the row has left out are null in it.
  void Added(TableWriter* writer, const std::vector<std::string>& texts, size_t piece = 0);
  // What is left. Every table is there, also without rows: a query need not ask first.
  void Finish(TableWriter* writer, const std::vector<std::string>& texts);

 private:
  void Write(TableWriter* writer, const std::vector<std::string>& texts);

  std::string directory_;
  Table empty_;
  std::vector<Table> pieces_;
  size_t rows_ = 0;  // of them together
  size_t batch_rows_ = kBatchRowsMax;
  uint64_t batches_ = 0;

  static constexpr size_t kBatchRowsMax = size_t{1} << 18;
};

}  // namespace syncline::parquet

#endif  // SYNCLINE_EXPORT_PARQUET_PARTITION_H_
