// SPDX-License-Identifier: Apache-2.0
// The program that the child of table_writer.h runs: write_tables.py as text.
#ifndef SYNCLINE_EXPORT_PARQUET_SCRIPT_H_
#define SYNCLINE_EXPORT_PARQUET_SCRIPT_H_

namespace syncline::parquet {

extern const char kWriteTablesScript[];

}  // namespace syncline::parquet

#endif  // SYNCLINE_EXPORT_PARQUET_SCRIPT_H_
