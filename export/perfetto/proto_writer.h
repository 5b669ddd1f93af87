// SPDX-License-Identifier: Apache-2.0
// Protocol buffer wire format, written by hand: varints, fixed 64-bit numbers and length-delimited
// bytes. The Perfetto trace is a few messages repeated millions of times; a general library is
// slower here and would make the bytes depend on its version.
#ifndef SYNCLINE_EXPORT_PERFETTO_PROTO_WRITER_H_
#define SYNCLINE_EXPORT_PERFETTO_PROTO_WRITER_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace syncline::perfetto {

// Behind the number; four bytes may be written where it takes fewer.
inline char* PutVarint(uint64_t value, char* to) {
  if (value < uint64_t{1} << 28) [[likely]] {
    // Seven bits to a byte without a branch: how many bytes it takes is hardly predictable.
    const auto v = static_cast<uint32_t>(value);
    const int bytes = (std::bit_width(v | 1) + 6) / 7;
    const uint32_t spread =
        (v & 0x7f) | (v & 0x3f80) << 1 | (v & 0x1fc000) << 2 | (v & 0xfe00000) << 3;
    const uint32_t more = 0x80808080u & ((uint32_t{1} << 8 * (bytes - 1)) - 1);
    const uint32_t word = spread | more;
    for (int i = 0; i < 4; ++i) to[i] = static_cast<char>(word >> 8 * i);
    return to + bytes;
  }
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

class ProtoWriter {
 public:
  ProtoWriter() = default;
  ProtoWriter(const ProtoWriter&) = delete;
  ProtoWriter& operator=(const ProtoWriter&) = delete;

  void Varint(uint32_t field, uint64_t value) {
    char* at = Room(2 * kVarintMax);
    at = PutVarint(field << 3, at);
    end_ = PutVarint(value, at);
  }
  void Fixed64(uint32_t field, uint64_t value) {
    char* at = PutVarint(field << 3 | 1, Room(kVarintMax + 8));
    for (int shift = 0; shift < 64; shift += 8) *at++ = static_cast<char>(value >> shift);
    end_ = at;
  }
  void Double(uint32_t field, double value) { Fixed64(field, std::bit_cast<uint64_t>(value)); }
  void Bytes(uint32_t field, std::string_view value) {
    char* at = Room(2 * kVarintMax + value.size());
    at = PutVarint(field << 3 | 2, at);
    at = PutVarint(value.size(), at);
    end_ = std::copy(value.begin(), value.end(), at);
  }
  void Message(uint32_t field, const ProtoWriter& message) { Bytes(field, message.bytes()); }

  // Valid until something is added.
  std::string_view bytes() const { return {begin_, static_cast<size_t>(end_ - begin_)}; }
  bool empty() const { return begin_ == end_; }
  void Clear() { end_ = begin_; }

 private:
  static constexpr size_t kVarintMax = 10;

  // Where `bytes` more fit.
  char* Room(size_t bytes) {
    if (static_cast<size_t>(limit_ - end_) < bytes) [[unlikely]]
      Grow(bytes);
    return end_;
  }
  void Grow(size_t bytes) {
    const size_t size = this->bytes().size();
    const size_t room = 2 * size + bytes;
    auto more = std::make_unique_for_overwrite<char[]>(room);
    std::copy(begin_, end_, more.get());
    large_ = std::move(more);
    begin_ = large_.get();
    end_ = begin_ + size;
    limit_ = begin_ + room;
  }

  std::array<char, 128> small_;  // most messages fit
  std::unique_ptr<char[]> large_;
  char* begin_ = small_.data();
  char* end_ = begin_;
  char* limit_ = begin_ + small_.size();
};

}  // namespace syncline::perfetto

#endif  // SYNCLINE_EXPORT_PERFETTO_PROTO_WRITER_H_
