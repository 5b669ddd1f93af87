// Characters gathered for writing, with as little work per character as can be: short pieces are
// copied 32 bytes at a time, whatever their length, and room is asked for once per piece.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_TEXT_TEXT_BUFFER_H_
#define SYNCLINE_EXPORT_TEXT_TEXT_BUFFER_H_

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace syncline::text {

// A text that is copied often. What lies behind it, up to a multiple of 32, may be copied too.
class Piece {
 public:
  Piece() : Piece(std::string()) {}
  explicit Piece(std::string text) : bytes_(std::move(text)), size_(bytes_.size()) {
    bytes_.resize((size_ + kChunk - 1) / kChunk * kChunk + kChunk);
  }
  std::string_view text() const { return std::string_view(bytes_).substr(0, size_); }

 private:
  friend class TextBuffer;
  static constexpr size_t kChunk = 32;
  std::string bytes_;
  size_t size_ = 0;
};

class TextBuffer {
 public:
  size_t size() const { return size_; }
  std::string_view text() const { return {bytes_.get(), size_}; }
  void Clear() { size_ = 0; }
  // Forgets what was written behind `size`.
  void CutTo(size_t size) { size_ = size; }

  void Put(char c) { *Room(1) = c, ++size_; }
  void Put(std::string_view text) {
    std::memcpy(Room(text.size()), text.data(), text.size());
    size_ += text.size();
  }
  void Put(const Piece& piece) {
    char* out = Room(piece.size_ + Piece::kChunk);
    const char* in = piece.bytes_.data();
    for (size_t done = 0; done < piece.size_; done += Piece::kChunk) {
      std::memcpy(out + done, in + done, Piece::kChunk);
    }
    size_ += piece.size_;
  }
  void PutNumber(uint64_t value) {
    const size_t length = DigitsOf(value);
    char* const out = Room(kNumberMax);
    char* end = out + length;
    for (; value >= 100'000'000; value /= 100'000'000) {
      PutEight(static_cast<uint32_t>(value % 100'000'000), end -= 8);
    }
    for (; value >= 100; value /= 100) std::memcpy(end -= 2, Pair(value % 100), 2);
    if (value >= 10) {
      std::memcpy(out, Pair(value), 2);
    } else {
      *out = static_cast<char>('0' + value);
    }
    size_ += length;
  }
  void PutNumber(int64_t value) {
    if (value < 0) Put('-');
    PutNumber(value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value));
  }
  void PutReal(double value) {  // finite
    constexpr size_t kRealMax = 32;
    char* const out = Room(kRealMax);
    size_ += static_cast<size_t>(std::to_chars(out, out + kRealMax, value).ptr - out);
  }
  // Exactly nine digits.
  void PutNine(uint32_t value) {
    char* const out = Room(9);
    out[0] = static_cast<char>('0' + value / 100'000'000);
    PutEight(value % 100'000'000, out + 1);
    size_ += 9;
  }
  // Room for `bytes` behind what was written; Add() what was used of it.
  char* Room(size_t bytes) {
    if (capacity_ - size_ < bytes) [[unlikely]]
      Grow(bytes);
    return bytes_.get() + size_;
  }
  void Add(size_t bytes) { size_ += bytes; }

 private:
  static constexpr size_t kNumberMax = 24;

  static size_t DigitsOf(uint64_t value) {
    static constexpr auto kPowers = [] {
      std::array<uint64_t, 20> powers{};
      uint64_t power = 1;
      for (uint64_t& one : powers) one = power, power *= 10;
      powers[0] = 0;
      return powers;
    }();
    // log10(2) = 1233 / 4096 and a little less: one too many at most, which the table tells.
    const auto digits = static_cast<size_t>(std::bit_width(value | 1) * 1233 >> 12);
    return digits + (value >= kPowers[digits] ? 1 : 0);
  }
  static const char* Pair(uint64_t value) {
    static constexpr char kPairs[] =
        "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243"
        "4445464748495051525354555657585960616263646566676869707172737475767778798081828384858687"
        "888990919293949596979899";
    return kPairs + 2 * value;
  }
  // Eight digits: the pairs do not wait for each other.
  static void PutEight(uint32_t value, char* out) {
    const uint32_t high = value / 10'000;
    const uint32_t low = value % 10'000;
    std::memcpy(out, Pair(high / 100), 2);
    std::memcpy(out + 2, Pair(high % 100), 2);
    std::memcpy(out + 4, Pair(low / 100), 2);
    std::memcpy(out + 6, Pair(low % 100), 2);
  }
  void Grow(size_t bytes) {
    capacity_ = std::max(2 * capacity_, size_ + bytes + 4096);
    std::unique_ptr<char[]> grown(new char[capacity_]);
    if (size_ > 0) std::memcpy(grown.get(), bytes_.get(), size_);
    bytes_ = std::move(grown);
  }

  std::unique_ptr<char[]> bytes_;
  size_t capacity_ = 0;
  size_t size_ = 0;
};

}  // namespace syncline::text

#endif  // SYNCLINE_EXPORT_TEXT_TEXT_BUFFER_H_
