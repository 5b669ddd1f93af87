#include "export/parquet/table.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "export/text/json_text.h"

namespace syncline::parquet {
namespace {

constexpr size_t kAlignment = 64;

const char* TypeName(ColumnType type) {
  switch (type) {
    case ColumnType::kInt64:
      return "int64";
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

// Room for `bytes` at the next multiple of kAlignment.
char* Extend(size_t bytes, std::string* buffers) {
  buffers->resize((buffers->size() + kAlignment - 1) / kAlignment * kAlignment + bytes);
  return buffers->data() + buffers->size() - bytes;
}

template <class Value>
void Narrow(const std::vector<int64_t>& numbers, std::string* buffers) {
  char* out = Extend(numbers.size() * sizeof(Value), buffers);
  for (const int64_t number : numbers) {
    const auto value = static_cast<Value>(number);
    std::memcpy(out, &value, sizeof value);
    out += sizeof value;
  }
}

template <class Number>
void PackBits(const std::vector<Number>& numbers, size_t rows, Number missing,
              std::string* buffers) {
  char* const out = Extend((rows + 7) / 8, buffers);
  for (size_t i = 0; i < rows; ++i) {
    const bool set = (i < numbers.size() ? numbers[i] : missing) != 0;
    if (set) out[i / 8] = static_cast<char>(out[i / 8] | 1 << i % 8);
  }
}

}  // namespace

void Column::Real(double value) { numbers_.push_back(std::bit_cast<int64_t>(value)); }

void Column::Text(std::string_view text) {
  text_.append(text);
  numbers_.push_back(static_cast<int64_t>(text_.size()));
}

void Column::Null() {
  valid_.resize(numbers_.size() + 1, 1);
  valid_.back() = 0;
  ++nulls_;
  numbers_.push_back(type_ == ColumnType::kText ? static_cast<int64_t>(text_.size()) : 0);
}

void Column::Clear() {
  numbers_.clear();
  text_.clear();
  valid_.clear();
  nulls_ = 0;
}

// Codes in the order of first use: the dictionary holds what these rows use and nothing else.
void Column::EncodeNames(const std::vector<std::string>& texts, std::vector<uint32_t>* scratch,
                         std::string* header, std::string* buffers) const {
  std::vector<uint32_t> used;
  scratch->resize(texts.size());
  char* out = Extend(numbers_.size() * sizeof(uint32_t), buffers);
  for (const int64_t text : numbers_) {
    uint32_t& code = (*scratch)[static_cast<size_t>(text)];
    if (code == 0) {
      used.push_back(static_cast<uint32_t>(text));
      code = static_cast<uint32_t>(used.size());
    }
    const uint32_t index = code - 1;
    std::memcpy(out, &index, sizeof index);
    out += sizeof index;
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
                    std::string* header, std::string* buffers) const {
  absl::StrAppend(header, "{\"name\":\"", name_, "\",\"type\":\"", TypeName(type_),
                  "\",\"nullable\":", may_be_null_ ? "true" : "false");
  const auto place = [&](const char* key) {
    absl::StrAppend(header, ",\"", key,
                    "\":", (buffers->size() + kAlignment - 1) / kAlignment * kAlignment);
  };
  if (nulls_ > 0) {
    absl::StrAppend(header, ",\"nulls\":", nulls_);
    place("validity");
    PackBits<uint8_t>(valid_, rows(), 1, buffers);
  }
  if (type_ == ColumnType::kText) {
    place("offsets");
    Extend(sizeof(int32_t), buffers);  // a zero; what follows is aligned as the offsets want it
    buffers->resize(buffers->size() + numbers_.size() * sizeof(int32_t));
    char* out = buffers->data() + buffers->size() - numbers_.size() * sizeof(int32_t);
    for (const int64_t end : numbers_) {
      const auto value = static_cast<int32_t>(end);
      std::memcpy(out, &value, sizeof value);
      out += sizeof value;
    }
    place("values");
    std::memcpy(Extend(text_.size(), buffers), text_.data(), text_.size());
  } else {
    place("values");
  }
  switch (type_) {
    case ColumnType::kInt64:
    case ColumnType::kDouble:
      std::memcpy(Extend(numbers_.size() * sizeof(int64_t), buffers), numbers_.data(),
                  numbers_.size() * sizeof(int64_t));
      break;
    case ColumnType::kInt32:
      Narrow<int32_t>(numbers_, buffers);
      break;
    case ColumnType::kBool:
      PackBits<int64_t>(numbers_, rows(), 0, buffers);
      break;
    case ColumnType::kName:
      EncodeNames(texts, scratch, header, buffers);
      break;
    case ColumnType::kText:
      break;
  }
  header->push_back('}');
}

}  // namespace syncline::parquet
