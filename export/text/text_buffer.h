// Characters gathered for writing, with as little work per character as can be: short pieces are
// copied 32 bytes at a time, whatever their length, and room is asked for once per piece.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_TEXT_TEXT_BUFFER_H_
#define SYNCLINE_EXPORT_TEXT_TEXT_BUFFER_H_

#include <algorithm>
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
  template <class Integer>
  void PutNumber(Integer value) {
    char* const out = Room(kNumberMax);
    size_ += static_cast<size_t>(std::to_chars(out, out + kNumberMax, value).ptr - out);
  }
  // Exactly nine digits.
  void PutNine(uint32_t value) {
    char* const out = Room(9);
    for (int i = 8; i >= 0; --i, value /= 10) out[i] = static_cast<char>('0' + value % 10);
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
