// SPDX-License-Identifier: Apache-2.0
#include "export/parquet/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

namespace syncline::parquet {
namespace {

using Cells = std::vector<std::optional<std::string>>;

// What a reader of the batch finds: each row's value as a text, nullopt for null.
class Reader {
 public:
  Reader(Column* column, const std::vector<std::string>& texts) : rows_(column->rows()) {
    std::string header;
    BufferList buffers;
    std::vector<uint32_t> scratch;
    column->Encode(texts, &scratch, &header, &buffers);
    EXPECT_TRUE(std::all_of(scratch.begin(), scratch.end(), [](uint32_t one) { return one == 0; }));
    header_ = nlohmann::json::parse(header);
    for (const std::string_view piece : buffers.pieces()) bytes_ += piece;
    EXPECT_EQ(bytes_.size(), buffers.bytes());
  }

  Cells Read() const {
    Cells cells;
    const bool same = header_.value("same", false);
    if (header_.value("nulls", size_t{0}) == rows_) return Cells(rows_);
    for (size_t row = 0; row < rows_; ++row) cells.push_back(Cell(same ? 0 : row));
    return cells;
  }
  const nlohmann::json& header() const { return header_; }
  size_t bytes() const { return bytes_.size(); }

 private:
  template <class Value>
  Value At(const char* key, size_t index) const {
    const size_t begin = header_.at(key);
    EXPECT_EQ(begin % 64, 0u);
    Value value{};
    std::memcpy(&value, bytes_.data() + begin + index * sizeof(Value), sizeof value);
    return value;
  }
  bool Bit(const char* key, size_t row) const { return At<uint8_t>(key, row / 8) >> row % 8 & 1; }
  std::optional<std::string> Cell(size_t row) const {
    if (header_.contains("validity") && !Bit("validity", row)) return std::nullopt;
    const std::string type = header_.at("type");
    if (type == "int64" || type == "word") return std::to_string(At<int64_t>("values", row));
    if (type == "int32") return std::to_string(At<int32_t>("values", row));
    if (type == "double") return std::to_string(At<uint64_t>("values", row));
    if (type == "bool") return Bit("values", row) ? "true" : "false";
    if (type == "name") return header_.at("dictionary").at(At<uint32_t>("values", row));
    const auto begin = At<int32_t>("offsets", row), end = At<int32_t>("offsets", row + 1);
    return bytes_.substr(header_.at("values").get<size_t>() + static_cast<size_t>(begin),
                         static_cast<size_t>(end - begin));
  }

  size_t rows_;
  nlohmann::json header_;
  std::string bytes_;
};

const std::vector<std::string>& Texts() {
  static const std::vector<std::string> texts = {"", "conv", "matmul \"a\"", "unused"};
  return texts;
}

// Puts the value number `value` of the column's type; what is expected of it.
std::optional<std::string> Put(int value, Column* column) {
  switch (column->type()) {
    case ColumnType::kInt64:
    case ColumnType::kWord:
      column->Int(value * 5'000'000'000);
      return std::to_string(value * 5'000'000'000);
    case ColumnType::kInt32:
      column->Int(-value);
      return std::to_string(-value);
    case ColumnType::kDouble: {
      const double number = value == 0 ? -0.0 : value == 1 ? 0.0 : 0.1;
      column->Real(number);
      return std::to_string(std::bit_cast<uint64_t>(number));
    }
    case ColumnType::kBool:
      column->Bool(value > 0);
      return value > 0 ? "true" : "false";
    case ColumnType::kName:
      column->Name(static_cast<timeline::TextId>(value));
      return Texts()[static_cast<size_t>(value)];
    case ColumnType::kText:
      column->Text(std::string(static_cast<size_t>(value) * 7, 'x'));
      return std::string(static_cast<size_t>(value) * 7, 'x');
  }
  return std::nullopt;
}

// One more, in either way.
void PutNull(bool alone, Column* column) {
  alone ? column->Null() : column->NullUpTo(column->rows() + 1);
}

constexpr ColumnType kTypes[] = {ColumnType::kInt64,  ColumnType::kWord, ColumnType::kInt32,
                                 ColumnType::kDouble, ColumnType::kBool, ColumnType::kName,
                                 ColumnType::kText};

// Runs of values and nulls of all lengths, so that columns begin, stay and end in every way; one
// column for all, as batches have it.
TEST(TableTest, HoldsWhatWasPut) {
  std::mt19937_64 random(3);
  int nulls_only = 0, same = 0, varied = 0;
  for (const ColumnType type : kTypes) {
    Column column("c", type, Column::kSometimes);
    for (int batch = 0; batch < 300; ++batch) {
      Cells expected;
      const size_t runs = 1 + random() % 4;
      for (size_t run = 0; run < runs; ++run) {
        const auto value = static_cast<int>(random() % 3);
        const bool null = random() % 3 == 0;
        for (size_t i = random() % 40; i-- > 0;) {
          if (null) PutNull(random() % 2 == 0, &column);
          expected.push_back(null ? std::nullopt : Put(value, &column));
        }
      }
      if (expected.empty()) continue;
      ASSERT_EQ(column.rows(), expected.size());
      const Reader reader(&column, Texts());
      ASSERT_EQ(reader.Read(), expected) << reader.header();
      nulls_only += reader.header().value("nulls", size_t{0}) == expected.size() ? 1 : 0;
      same += reader.header().contains("same") ? 1 : 0;
      varied += reader.header().contains("validity") ? 1 : 0;
      column.Clear();
      ASSERT_EQ(column.rows(), 0u);
    }
  }
  EXPECT_GT(nulls_only, 20);
  EXPECT_GT(same, 20);
  EXPECT_GT(varied, 100);
}

TEST(TableTest, WhatIsTheSameInAllRowsIsThereOnce) {
  for (const ColumnType type : kTypes) {
    Column column("c", type);
    for (int row = 0; row < 100'000; ++row) Put(2, &column);
    EXPECT_LE(Reader(&column, Texts()).bytes(), 128u);
  }
}

TEST(TableTest, RowsThatAreLeftOutAreNull) {
  for (const ColumnType type : kTypes) {
    Column column("c", type, Column::kSometimes);
    column.NullUpTo(3);
    column.NullUpTo(2);
    const auto value = Put(1, &column);
    column.NullUpTo(5);
    const Cells expected = {std::nullopt, std::nullopt, std::nullopt, value, std::nullopt};
    EXPECT_EQ(Reader(&column, Texts()).Read(), expected);
  }
}

// Batches are cut by it: Arrow's offsets have 31 bits.
TEST(TableTest, CountsTextThatItDoesNotHold) {
  Column column("c", ColumnType::kText);
  for (int row = 0; row < 1000; ++row) column.Text("0123456789");
  EXPECT_EQ(column.text_bytes(), 10'000u);
  column.Text("other");
  EXPECT_EQ(column.text_bytes(), 10'005u);
}

}  // namespace
}  // namespace syncline::parquet
