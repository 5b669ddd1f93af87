// SPDX-License-Identifier: Apache-2.0
// Rows on their way into a table of a columnar file.
//
// A column lies in memory as Arrow wants it from the first row on, so that nothing is copied before
// it is sent. One that has said the same thing in every row so far, be it null, holds that only
// once: most columns of most tables do.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_PARQUET_TABLE_H_
#define SYNCLINE_EXPORT_PARQUET_TABLE_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/sink.h"

namespace syncline::parquet {

enum class ColumnType : uint8_t {
  kInt64,  // near that of the row before, as times are
  kWord,   // int64 too, but of any kind: ids, sizes
  kInt32,
  kDouble,
  kBool,
  kName,  // an interned text; becomes a dictionary
  kText,  // free text
};

// What is appended to and keeps its room; not cleared, as std::string's would be.
class Bytes {
 public:
  template <class Value>
  void Push(Value value) {
    if (bytes_.size() - size_ < sizeof value) [[unlikely]]
      Grow(sizeof value);
    std::memcpy(bytes_.data() + size_, &value, sizeof value);
    size_ += sizeof value;
  }
  void Append(std::string_view text) {
    if (bytes_.size() - size_ < text.size()) [[unlikely]]
      Grow(text.size());
    if (!text.empty()) std::memcpy(bytes_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }
  void Clear() { size_ = 0; }
  char* data() { return bytes_.data(); }
  size_t size() const { return size_; }
  std::string_view text() const { return {bytes_.data(), size_}; }

 private:
  void Grow(size_t more);

  std::vector<char> bytes_;  // up to size_, and room
  size_t size_ = 0;
};

// The buffers of a batch, one behind the other, each at a multiple of 64 bytes. They stay where
// they are: this only lists them.
class BufferList {
 public:
  // Where the buffer will lie.
  size_t Add(std::string_view bytes);
  const std::vector<std::string_view>& pieces() const { return pieces_; }
  size_t bytes() const { return bytes_; }
  void Clear();

 private:
  std::vector<std::string_view> pieces_;
  size_t bytes_ = 0;
};

// Push one value per row into each column, of its type.
class Column {
 public:
  enum Nulls : bool { kNever, kSometimes };
  Column(std::string name, ColumnType type, Nulls nulls = kNever);

  void Int(int64_t value) { Put(value); }
  void Real(double value);
  void Bool(bool value) { Put(value ? 1 : 0); }
  void Name(timeline::TextId text) { Put(text); }
  void Text(std::string_view text);
  void Null();                 // of a column that has nulls sometimes
  void NullUpTo(size_t rows);  // as many as it takes to have that many rows, if any

  const std::string& name() const { return name_; }
  ColumnType type() const { return type_; }
  size_t rows() const { return rows_; }
  // What it takes, were it written out.
  size_t text_bytes() const { return filling_ == kSame ? rows_ * text_.size() : text_.size(); }
  void Clear();

  // Appends to `header` {"name":"begin_ns","type":"int64",...} with where its buffers will lie in
  // `buffers`: validity bitmap where there are some nulls, text offsets, values. They are valid
  // until the column is touched. With "same":true there is one row for all, with as many "nulls" as
  // rows none. `texts`: the interned texts; `scratch`: as many zeros, and zeros again afterwards.
  // Once, before Clear().
  void Encode(const std::vector<std::string>& texts, std::vector<uint32_t>* scratch,
              std::string* header, BufferList* buffers);

 private:
  enum Filling : uint8_t { kNothing, kNulls, kSame, kVaried };

  void Put(int64_t value) {
    if (filling_ == kVaried) [[likely]] {
      Store(value);
      ++rows_;
    } else if (filling_ == kSame && value == same_) {
      ++rows_;
    } else {
      PutFirst(value);
    }
  }
  void Store(int64_t value) {
    if (width_ == sizeof(int64_t)) {
      values_.Push(value);
    } else if (width_ == sizeof(int32_t)) {
      values_.Push(static_cast<int32_t>(value));
    } else {
      values_.Push(static_cast<char>(value));
    }
  }
  void PutFirst(int64_t value);
  void Spread();  // to kVaried
  void StoreText(std::string_view text);
  void EncodeNames(const std::vector<std::string>& texts, std::vector<uint32_t>* scratch,
                   std::string* header);

  std::string name_;
  ColumnType type_;
  bool may_be_null_;
  uint8_t width_;  // of a value, bytes
  Filling filling_ = kNothing;
  int64_t same_ = 0;  // kSame
  size_t rows_ = 0;
  size_t nulls_ = 0;
  Bytes values_;                // kText: offsets
  Bytes text_;                  // kSame: of one row
  std::vector<uint8_t> valid_;  // of the rows up to the last null
  std::vector<uint8_t> packed_validity_;
  std::vector<uint8_t> packed_bools_;
};

struct Table {
  std::string name;  // its directory
  std::vector<Column> columns;
  size_t rows() const { return columns.front().rows(); }
};

}  // namespace syncline::parquet

#endif  // SYNCLINE_EXPORT_PARQUET_TABLE_H_
