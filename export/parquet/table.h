// Rows gathered column by column, for a table of a columnar file.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_PARQUET_TABLE_H_
#define SYNCLINE_EXPORT_PARQUET_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/sink.h"

namespace syncline::parquet {

enum class ColumnType : uint8_t {
  kInt64,
  kInt32,
  kDouble,
  kBool,
  kName,  // an interned text; becomes a dictionary
  kText,  // free text
};

// Push one value per row into each column, of its type.
class Column {
 public:
  enum Nulls : bool { kNever, kSometimes };
  Column(std::string name, ColumnType type, Nulls nulls = kNever)
      : name_(std::move(name)), type_(type), may_be_null_(nulls == kSometimes) {}

  void Int(int64_t value) { numbers_.push_back(value); }
  void Real(double value);
  void Bool(bool value) { numbers_.push_back(value ? 1 : 0); }
  void Name(timeline::TextId text) { numbers_.push_back(text); }
  void Text(std::string_view text);
  void Null();  // of a column that has nulls sometimes

  const std::string& name() const { return name_; }
  ColumnType type() const { return type_; }
  size_t rows() const { return numbers_.size(); }
  size_t text_bytes() const { return text_.size(); }
  void Clear();

  // {"name":"begin_ns","type":"int64",...} and, behind it, the buffers as Arrow lays them out:
  // validity bitmap when there are nulls, text offsets, values; each begins at a multiple of 64.
  // `texts`: the interned texts; `scratch`: as many zeros, and zeros again afterwards.
  void Encode(const std::vector<std::string>& texts, std::vector<uint32_t>* scratch,
              std::string* header, std::string* buffers) const;

 private:
  void EncodeNames(const std::vector<std::string>& texts, std::vector<uint32_t>* scratch,
                   std::string* header, std::string* buffers) const;

  std::string name_;
  ColumnType type_;
  bool may_be_null_;
  std::vector<int64_t> numbers_;  // kText: where each text ends in text_
  std::string text_;
  std::vector<uint8_t> valid_;  // of the rows up to the last null
  size_t nulls_ = 0;
};

struct Table {
  std::string name;  // its directory
  std::vector<Column> columns;
  size_t rows() const { return columns.front().rows(); }
};

}  // namespace syncline::parquet

#endif  // SYNCLINE_EXPORT_PARQUET_TABLE_H_
