// SPDX-License-Identifier: Apache-2.0
// Gives tables to a child process that writes them as Parquet: Python with pyarrow.
//
// Why a child and not a library: docs/decisions/0006-parquet-through-pyarrow.md. What is sent lies
// in memory as Arrow wants it, so that nothing is converted on the other side (write_tables.py, of
// which this program carries a copy).
//
// Thread-safety: Write() may be called from several threads, for different files.
#ifndef SYNCLINE_EXPORT_PARQUET_TABLE_WRITER_H_
#define SYNCLINE_EXPORT_PARQUET_TABLE_WRITER_H_

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files.h"
#include "export/parquet/table.h"

namespace syncline::parquet {

struct WriterOptions {
  std::filesystem::path directory;
  std::vector<std::string> pythons;  // the first that has pyarrow is taken; looked up in PATH
  int threads = 2;                   // that write; the bytes do not depend on it
};

class TableWriter {
 public:
  // FailedPrecondition, with what to install, where no interpreter has pyarrow.
  static absl::StatusOr<std::unique_ptr<TableWriter>> Start(const WriterOptions& options);
  ~TableWriter();  // ends the child
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  // Appends the rows of `pieces`, which have the same columns, to the file `path`, relative to the
  // directory, as one row group, and clears them. Errors are kept for Finish().
  void Write(const std::string& path, const std::vector<std::string>& texts,
             std::span<Table> pieces);
  // ResourceExhausted where the disk is full.
  absl::Status Finish();

 private:
  TableWriter(pid_t child, Descriptor data, Descriptor replies);

  // The next line from the child; "" when there is none.
  std::string ReadReply();
  bool Send(std::string_view bytes);
  bool Send(const std::vector<std::string_view>& pieces);
  void End();

  pid_t child_;
  Descriptor data_;
  Descriptor replies_;
  bool broken_ = false;
  std::mutex mutex_;  // of what is sent, too
  std::vector<uint32_t> scratch_ ABSL_GUARDED_BY(mutex_);
  std::string header_ ABSL_GUARDED_BY(mutex_);
  BufferList buffers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncline::parquet

#endif  // SYNCLINE_EXPORT_PARQUET_TABLE_WRITER_H_
