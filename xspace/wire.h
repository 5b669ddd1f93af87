// SPDX-License-Identifier: Apache-2.0
// The protocol buffer wire format, read in place: no copies, no allocation, never past the end.
//
//   Fields fields(bytes);
//   while (fields.Next()) { switch (fields.number()) ... }
//   if (fields.damage() != Fields::Damage::kNone) ...
//
// Damage ends a message, not its neighbours: whoever holds the parent goes on behind it, because a
// message's length stands in front of it. A field whose length points past the end is given once
// more, with what there is of it, and clipped() is true: of a plane or a line that is worth having.
//
// Thread-safety: one thread per object.
#ifndef SYNCLINE_XSPACE_WIRE_H_
#define SYNCLINE_XSPACE_WIRE_H_

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace syncline::xspace {

class Fields {
 public:
  enum class Damage : uint8_t {
    kNone,
    kTruncated,  // the bytes end inside a field
    kGarbled,    // no wire format: a tag or a number that cannot be
  };

  explicit Fields(std::span<const uint8_t> bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // False at the end and at damage.
  [[gnu::always_inline]] bool Next() {
    if (at_ == end_) return false;
    uint64_t tag = 0;
    if (!ReadVarint(&tag)) return false;
    number_ = static_cast<uint32_t>(tag >> 3);
    if (number_ == 0 || tag > 0xffffffff) return Fail(Damage::kGarbled);
    switch (tag & 7) {
      case 0:
        bytes_ = {};
        return ReadVarint(&value_);
      case 1:
        return ReadFixed(8);
      case 2:
        return ReadBytes();
      case 5:
        return ReadFixed(4);
      default:  // groups, which these messages never had, and what does not exist
        return Fail(Damage::kGarbled);
    }
  }

  uint32_t number() const { return number_; }
  uint64_t value() const { return value_; }  // of a number; 0 for bytes
  int64_t signed_value() const { return static_cast<int64_t>(value_); }
  std::span<const uint8_t> bytes() const { return bytes_; }  // empty for numbers
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  bool clipped() const { return damage_ == Damage::kTruncated; }
  Damage damage() const { return damage_; }

 private:
  static constexpr int kVarintBytesMax = 10;

  [[gnu::always_inline]] bool Fail(Damage damage) {
    damage_ = damage;
    at_ = end_;
    return false;
  }
  [[gnu::always_inline]] bool ReadVarint(uint64_t* value) {
    if (at_ != end_ && *at_ < 0x80) [[likely]] {
      *value = *at_++;
      return true;
    }
    const Long number = ReadLong(at_, end_);
    if (number.next == nullptr) {
      return Fail(end_ - at_ >= kVarintBytesMax ? Damage::kGarbled : Damage::kTruncated);
    }
    at_ = number.next;
    *value = number.value;
    return true;
  }

  // A static function of values: the reader itself then stays in registers.
  struct Long {
    uint64_t value = 0;
    const uint8_t* next = nullptr;  // nullptr: it does not end
  };
  static Long ReadLong(const uint8_t* at, const uint8_t* end) {
    const uint8_t* stop = end - at >= kVarintBytesMax ? at + kVarintBytesMax : end;
    uint64_t sum = 0;
    for (int shift = 0; at != stop; shift += 7) {
      const uint8_t byte = *at++;
      sum |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return {sum, at};
    }
    return {};
  }
  [[gnu::always_inline]] bool ReadFixed(size_t width) {
    if (static_cast<size_t>(end_ - at_) < width) return Fail(Damage::kTruncated);
    value_ = 0;
    for (size_t i = 0; i < width; ++i) value_ |= uint64_t{at_[i]} << (8 * i);
    bytes_ = {};
    at_ += width;
    return true;
  }
  [[gnu::always_inline]] bool ReadBytes() {
    uint64_t length = 0;
    if (!ReadVarint(&length)) return false;
    const auto left = static_cast<uint64_t>(end_ - at_);
    value_ = 0;
    if (length > left) {
      bytes_ = {at_, static_cast<size_t>(left)};
      damage_ = Damage::kTruncated;
      at_ = end_;
      return true;
    }
    bytes_ = {at_, static_cast<size_t>(length)};
    at_ += length;
    return true;
  }

  const uint8_t* at_;
  const uint8_t* end_;
  uint32_t number_ = 0;
  uint64_t value_ = 0;
  std::span<const uint8_t> bytes_;
  Damage damage_ = Damage::kNone;
};

}  // namespace syncline::xspace

#endif  // SYNCLINE_XSPACE_WIRE_H_
