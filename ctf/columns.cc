// SPDX-License-Identifier: Apache-2.0
#include "ctf/columns.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/field_place.h"

namespace syncline::ctf {
namespace {

template <class T>
uint64_t LoadAs(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

// Calls `f` with the function that loads one number of `field` from its first byte.
template <class F>
void WithLoad(const FastField& field, bool real, F f) {
  const bool is_signed = field.is_signed && !real;
  if (field.big || std::endian::native != std::endian::little || (real && field.width == 4)) {
    const FieldPlace place{real        ? FieldPlace::Kind::kReal
                           : is_signed ? FieldPlace::Kind::kSigned
                                       : FieldPlace::Kind::kUnsigned,
                           field.width, field.big, 0};
    f([place](const uint8_t* bytes) { return LoadNumber(place, bytes); });
  } else if (field.width == 8) {
    f([](const uint8_t* bytes) { return LoadAs<uint64_t>(bytes); });
  } else if (field.width == 4) {
    is_signed ? f([](const uint8_t* bytes) { return LoadAs<int32_t>(bytes); })
              : f([](const uint8_t* bytes) { return LoadAs<uint32_t>(bytes); });
  } else if (field.width == 2) {
    is_signed ? f([](const uint8_t* bytes) { return LoadAs<int16_t>(bytes); })
              : f([](const uint8_t* bytes) { return LoadAs<uint16_t>(bytes); });
  } else {
    is_signed ? f([](const uint8_t* bytes) { return LoadAs<int8_t>(bytes); })
              : f([](const uint8_t* bytes) { return LoadAs<uint8_t>(bytes); });
  }
}

class ColumnWalk {
 public:
  ColumnWalk(std::span<const EventRecord> records, ColumnScratch& scratch, ColumnSink& sink)
      : records_(records), size_(records.size()), scratch_(scratch), sink_(sink) {
    scratch_.numbers.resize(std::max(scratch_.numbers.size(), size_));
  }

  void Walk(const FastField& field) {
    switch (field.op) {
      case FastOp::kInteger:
        return Numbers(field, false);
      case FastOp::kReal:
        return Numbers(field, true);
      case FastOp::kString:
        return Strings(field);
      case FastOp::kText:
      case FastOp::kTextSequence:
        return Characters(field);
      case FastOp::kArray:
      case FastOp::kSequence:
        return Elements(field);
      case FastOp::kStruct:
        return;
    }
  }

 private:
  // Fields of fixed size only move `offset_`; the first of another size gives every event a pointer
  // of its own, and each of them brings those up to date.
  void Settle() {
    if (at_ == nullptr) {
      scratch_.at.resize(std::max(scratch_.at.size(), size_));
      at_ = scratch_.at.data();
      for (size_t i = 0; i < size_; ++i) at_[i] = records_[i].bytes + offset_;
    } else if (offset_ != 0) {
      for (size_t i = 0; i < size_; ++i) at_[i] += offset_;
    }
    offset_ = 0;
  }

  uint64_t LengthOf(const FastField& field, bool fixed, size_t i) const {
    return fixed ? field.length : scratch_.slots[static_cast<size_t>(field.slot)][i];
  }

  void Numbers(const FastField& field, bool real) {
    uint64_t* numbers = scratch_.numbers.data();
    WithLoad(field, real, [&](auto load) {
      const uint8_t* const* at = at_;
      const EventRecord* records = records_.data();
      const uint64_t offset = offset_;
      const size_t size = size_;
      if (at == nullptr) {
#pragma GCC unroll 8
        for (size_t i = 0; i < size; ++i) numbers[i] = load(records[i].bytes + offset);
      } else {
#pragma GCC unroll 8
        for (size_t i = 0; i < size; ++i) numbers[i] = load(at[i] + offset);
      }
    });
    offset_ += field.width;
    if (field.store >= 0) {
      scratch_.slots[static_cast<size_t>(field.store)].assign(numbers, numbers + size_);
    }
    sink_.OnNumbers(*field.field, {numbers, size_});
  }

  void Strings(const FastField& field) {
    Settle();
    scratch_.texts.resize(size_);
    for (size_t i = 0; i < size_; ++i) {
      scratch_.texts[i] = reinterpret_cast<const char*>(at_[i]);
      at_[i] += scratch_.texts[i].size() + 1;
    }
    sink_.OnTexts(*field.field, scratch_.texts);
  }

  void Characters(const FastField& field) {
    Settle();
    scratch_.texts.resize(size_);
    for (size_t i = 0; i < size_; ++i) {
      const uint64_t length = LengthOf(field, field.op == FastOp::kText, i);
      const std::string_view text(reinterpret_cast<const char*>(at_[i]), length);
      scratch_.texts[i] = text.substr(0, text.find('\0'));
      at_[i] += length;
    }
    sink_.OnTexts(*field.field, scratch_.texts);
  }

  void Elements(const FastField& field) {
    Settle();
    scratch_.counts.resize(size_);
    uint64_t total = 0;
    for (size_t i = 0; i < size_; ++i) {
      const uint64_t length = LengthOf(field, field.op == FastOp::kArray, i);
      scratch_.counts[i] = static_cast<uint32_t>(length);
      total += length;
    }
    scratch_.numbers.resize(std::max<size_t>(scratch_.numbers.size(), total));
    uint64_t* out = scratch_.numbers.data();
    WithLoad(field, field.is_real, [&](auto load) {
      for (size_t i = 0; i < size_; ++i) {
        const uint8_t* at = at_[i];
        for (uint32_t n = scratch_.counts[i]; n > 0; --n, at += field.width) *out++ = load(at);
        at_[i] = at;
      }
    });
    sink_.OnArrays(*field.field, scratch_.counts, {scratch_.numbers.data(), total});
  }

  std::span<const EventRecord> records_;
  size_t size_;
  ColumnScratch& scratch_;
  ColumnSink& sink_;
  const uint8_t** at_ = nullptr;
  uint64_t offset_ = 0;  // of all events, from at_ or from where they begin
};

}  // namespace

void WalkColumns(std::span<const FastField> fields, std::span<const EventRecord> records,
                 ColumnScratch& scratch, ColumnSink& sink) {
  ColumnWalk walk(records, scratch, sink);
  for (const FastField& field : fields) walk.Walk(field);
}

}  // namespace syncline::ctf
