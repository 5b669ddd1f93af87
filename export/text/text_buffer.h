// SPDX-License-Identifier: Apache-2.0
// Characters gathered for writing, with as little work per character as can be: short pieces are
// copied 32 bytes at a time, whatever their length, and room is asked for once per piece.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_TEXT_TEXT_BUFFER_H_
#define SYNCLINE_EXPORT_TEXT_TEXT_BUFFER_H_

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "export/text/digits.h"

namespace syncline::text {

// A text that is copied often. What lies behind it, up to a multiple of 32, may be copied too.
class Piece {
 public:
  Piece() : Piece(std::string()) {}
  explicit Piece(std::string text) : bytes_(std::move(text)), size_(bytes_.size()) {
    bytes_.resize((size_ + kChunk - 1) / kChunk * kChunk + kChunk);
  }
  std::string_view text() const { return std::string_view(bytes_).substr(0, size_); }

  // Copies it to where there is room() for it; returns its end there.
  char* WriteTo(char* out) const {
    const char* in = bytes_.data();
    for (size_t done = 0; done < size_; done += kChunk) std::memcpy(out + done, in + done, kChunk);
    return out + size_;
  }
  size_t room() const { return size_ + kChunk; }

 private:
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
  void Put(const Piece& piece) { End(piece.WriteTo(Room(piece.room()))); }
  void PutNumber(uint64_t value) { End(WriteNumber(value, Room(kNumberMax))); }
  void PutNumber(int64_t value) { End(WriteNumber(value, Room(kNumberMax))); }
  void PutReal(double value) {  // finite
    char* const out = Room(kNumberMax);
    End(std::to_chars(out, out + kNumberMax, value).ptr);
  }
  // Room for `bytes` behind what was written; then Add() what was used of it, or say its End().
  char* Room(size_t bytes) {
    if (capacity_ - size_ < bytes) [[unlikely]]
      Grow(bytes);
    return bytes_.get() + size_;
  }
  void Add(size_t bytes) { size_ += bytes; }
  void End(const char* end) { size_ = static_cast<size_t>(end - bytes_.get()); }

 private:
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
