// SPDX-License-Identifier: Apache-2.0
#include "export/parquet/table.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/text.h"
#include "export/text/json_text.h"

namespace syncline::parquet {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kRoomMin = 4096;

const char* TypeName(ColumnType type) {
  switch (type) {
    case ColumnType::kInt64:
      return "int64";
    case ColumnType::kWord:
      return "word";
    case ColumnType::kInt32:
      return "int32";
    case ColumnType::kDouble:
      return "double";
    case ColumnType::kBool:
      return "bool";
    case ColumnType::kName:
      return "name";
    case ColumnType::kText:
      return "text";
  }
  return "";
}

uint8_t WidthOf(ColumnType type) {
  switch (type) {
    case ColumnType::kInt64:
    case ColumnType::kWord:
    case ColumnType::kDouble:
      return sizeof(int64_t);
    case ColumnType::kInt32:
    case ColumnType::kName:
    case ColumnType::kText:
      return sizeof(int32_t);
    case ColumnType::kBool:
      return 1;
  }
  return 0;
}

std::string_view TextOf(const std::vector<uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Bit i of the result is set where `bytes[i]` is not 0, and from `size` on up to `rows`.
void PackBits(const uint8_t* bytes, size_t size, size_t rows, std::vector<uint8_t>* bits) {
  bits->assign((rows + 7) / 8, 0);
  for (size_t i = 0; i < rows; ++i) {
    const int bit = i >= size || bytes[i] != 0 ? 1 : 0;
    (*bits)[i / 8] = static_cast<uint8_t>((*bits)[i / 8] | bit << i % 8);
  }
}

}  // namespace

void Bytes::Grow(size_t more) {
  bytes_.resize(std::max({kRoomMin, 2 * bytes_.size(), size_ + more}));
}

size_t BufferList::Add(std::string_view bytes) {
  static constexpr char kZeros[kAlignment] = {};
  const size_t padding = (kAlignment - bytes_ % kAlignment) % kAlignment;
  if (padding > 0) pieces_.emplace_back(kZeros, padding);
  const size_t at = bytes_ + padding;
  if (!bytes.empty()) pieces_.push_back(bytes);
  bytes_ = at + bytes.size();
  return at;
}

void BufferList::Clear() {
  pieces_.clear();
  bytes_ = 0;
}

Column::Column(std::string name, ColumnType type, Nulls nulls)
    : name_(std::move(name)),
      type_(type),
      may_be_null_(nulls == kSometimes),
      width_(WidthOf(type)) {}

void Column::Real(double value) { Put(std::bit_cast<int64_t>(value)); }

void Column::PutFirst(int64_t value) {
  if (filling_ == kNothing) {
    filling_ = kSame;
    same_ = value;
  } else {
    Spread();
    Store(value);
  }
  ++rows_;
}

void Column::StoreText(std::string_view text) {
  text_.Append(text);
  values_.Push(static_cast<int32_t>(text_.size()));
}

void Column::Text(std::string_view text) {
  if (filling_ == kNothing) {
    filling_ = kSame;
    text_.Append(text);
  } else if (filling_ != kSame || text != text_.text()) {
    if (filling_ != kVaried) Spread();
    StoreText(text);
  }
  ++rows_;
}

void Column::Null() {
  if (filling_ == kNothing) filling_ = kNulls;
  if (filling_ == kSame) Spread();
  if (filling_ == kVaried) {
    valid_.resize(rows_ + 1, 1);
    valid_.back() = 0;
    type_ == ColumnType::kText ? StoreText({}) : Store(0);
  }
  ++nulls_;
  ++rows_;
}

void Column::NullUpTo(size_t rows) {
  if (rows_ >= rows) return;
  if (filling_ == kNothing) filling_ = kNulls;
  if (filling_ == kNulls) {
    nulls_ += rows - rows_;
    rows_ = rows;
  }
  while (rows_ < rows) Null();
}

void Column::Spread() {
  const bool nulls = filling_ == kNulls;
  filling_ = kVaried;
  if (nulls) valid_.assign(rows_, 0);
  if (type_ != ColumnType::kText) {
    for (size_t i = 0; i < rows_; ++i) Store(nulls ? 0 : same_);
    return;
  }
  const std::string same(text_.text());
  text_.Clear();
  values_.Push(int32_t{0});
  for (size_t i = 0; i < rows_; ++i) StoreText(same);
}

void Column::Clear() {
  filling_ = kNothing;
  rows_ = 0;
  nulls_ = 0;
  values_.Clear();
  text_.Clear();
  valid_.clear();
}

// Codes in the order of first use: the dictionary holds what these rows use and nothing else.
void Column::EncodeNames(const std::vector<std::string>& texts, std::vector<uint32_t>* scratch,
                         std::string* header) {
  std::vector<uint32_t> used;
  scratch->resize(texts.size());
  for (char* at = values_.data(); at != values_.data() + values_.size(); at += sizeof(uint32_t)) {
    uint32_t text = 0;
    std::memcpy(&text, at, sizeof text);
    uint32_t& code = (*scratch)[text];
    if (code == 0) {
      used.push_back(text);
      code = static_cast<uint32_t>(used.size());
    }
    const uint32_t index = code - 1;
    std::memcpy(at, &index, sizeof index);
  }
  header->append(",\"dictionary\":[");
  for (size_t i = 0; i < used.size(); ++i) {
    if (i > 0) header->push_back(',');
    text::AppendJsonString(texts[used[i]], header);
    (*scratch)[used[i]] = 0;
  }
  header->push_back(']');
}

void Column::Encode(const std::vector<std::string>& texts, std::vector<uint32_t>* scratch,
                    std::string* header, BufferList* buffers) {
  absl::StrAppend(header, "{\"name\":\"", name_, "\",\"type\":\"", TypeName(type_),
                  "\",\"nullable\":", may_be_null_ ? "true" : "false");
  if (nulls_ > 0) absl::StrAppend(header, ",\"nulls\":", nulls_);
  const auto place = [&](const char* key, std::string_view bytes) {
    absl::StrAppend(header, ",\"", key, "\":", buffers->Add(bytes));
  };
  if (nulls_ > 0 && filling_ == kVaried) {
    PackBits(valid_.data(), valid_.size(), rows_, &packed_validity_);
    place("validity", TextOf(packed_validity_));
  }
  if (filling_ == kSame) {
    header->append(",\"same\":true");
    if (type_ != ColumnType::kText) {
      Store(same_);
    } else {
      values_.Push(int32_t{0});
      values_.Push(static_cast<int32_t>(text_.size()));
    }
  }
  if (filling_ == kSame || filling_ == kVaried) {
    if (type_ == ColumnType::kName) EncodeNames(texts, scratch, header);
    if (type_ == ColumnType::kText) {
      place("offsets", values_.text());
      place("values", text_.text());
    } else if (type_ == ColumnType::kBool) {
      PackBits(reinterpret_cast<const uint8_t*>(values_.data()), values_.size(), values_.size(),
               &packed_bools_);
      place("values", TextOf(packed_bools_));
    } else {
      place("values", values_.text());
    }
  }
  header->push_back('}');
}

}  // namespace syncline::parquet
