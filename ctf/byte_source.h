// SPDX-License-Identifier: Apache-2.0
// Bytes of a stream, by offset: a file read piecewise, or memory (tests, fuzzing).
#ifndef SYNCLINE_CTF_BYTE_SOURCE_H_
#define SYNCLINE_CTF_BYTE_SOURCE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files.h"

namespace syncline::ctf {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // Up to `length` bytes at `offset`; fewer only at the end. Valid until the next call.
  virtual absl::StatusOr<std::span<const uint8_t>> Read(uint64_t offset, size_t length) = 0;
  // The same of a packet: what follows it is read next.
  virtual absl::StatusOr<std::span<const uint8_t>> ReadPacket(uint64_t offset, size_t length) {
    return Read(offset, length);
  }
  // The same into memory of the caller's; DataLoss when the stream ends before `out` is full.
  virtual absl::Status ReadPacketInto(uint64_t offset, std::span<uint8_t> out);
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  absl::StatusOr<std::span<const uint8_t>> Read(uint64_t offset, size_t length) override;

 private:
  std::span<const uint8_t> bytes_;
};

// Maps a window of the file at a time, so that memory stays bounded and no descriptor is held
// between reads: hundreds of thousands of streams may be open at once. The size is taken when it is
// opened. Trap: a file that somebody cuts while its window is mapped raises SIGBUS; read finished
// traces only.
class FileWindow : public ByteSource {
 public:
  static absl::StatusOr<std::unique_ptr<FileWindow>> Open(const std::filesystem::path& path);
  // The same of a file that had `size` bytes a moment ago: it is opened when it is first read.
  static std::unique_ptr<FileWindow> OfSize(std::filesystem::path path, uint64_t size);
  ~FileWindow() override;
  FileWindow(const FileWindow&) = delete;
  FileWindow& operator=(const FileWindow&) = delete;

  uint64_t size() const override { return size_; }
  absl::StatusOr<std::span<const uint8_t>> Read(uint64_t offset, size_t length) override;

 private:
  FileWindow(std::filesystem::path path, uint64_t size) : path_(std::move(path)), size_(size) {}
  absl::Status Map(uint64_t offset, size_t length);
  void Unmap();

  std::filesystem::path path_;
  uint64_t size_ = 0;
  uint8_t* window_ = nullptr;
  uint64_t window_offset_ = 0;
  size_t window_size_ = 0;
};

// Reads pieces into a buffer: for visiting headers that lie far apart. Holds one descriptor.
class FileReader : public ByteSource {
 public:
  static absl::StatusOr<std::unique_ptr<FileReader>> Open(const std::filesystem::path& path);

  uint64_t size() const override { return file_.size_bytes; }
  absl::StatusOr<std::span<const uint8_t>> Read(uint64_t offset, size_t length) override;
  // The same into memory of the caller's; DataLoss when the file ends before `out` is full.
  absl::Status ReadInto(uint64_t offset, std::span<uint8_t> out);

 private:
  FileReader(std::filesystem::path path, OpenFile file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  OpenFile file_;
  std::vector<uint8_t> buffer_;
};

// Copies packets that are read in order into memory that is used again and again: half of what the
// kernel takes to map the same pages and let them go (docs/decisions/0013). For one stream at a
// time; holds a descriptor. What is larger than kLargest is mapped instead.
class AheadReader : public ByteSource {
 public:
  static constexpr size_t kAhead = size_t{128} << 10;
  static constexpr size_t kLargest = size_t{512} << 10;
  // At most kLargest bytes each; their contents are a reader's own.
  struct Room {
    std::vector<uint8_t> ahead;
    std::vector<uint8_t> piece;
  };

  // `room` outlives it, and may be given to the next one.
  static absl::StatusOr<std::unique_ptr<AheadReader>> Open(const std::filesystem::path& path,
                                                           Room* room);
  // The same of a file that had `size` bytes a moment ago; DataLoss when it has fewer now.
  static absl::StatusOr<std::unique_ptr<AheadReader>> OfSize(const std::filesystem::path& path,
                                                             uint64_t size, Room* room);

  uint64_t size() const override { return size_; }
  absl::StatusOr<std::span<const uint8_t>> Read(uint64_t offset, size_t length) override;
  absl::StatusOr<std::span<const uint8_t>> ReadPacket(uint64_t offset, size_t length) override;
  absl::Status ReadPacketInto(uint64_t offset, std::span<uint8_t> out) override;

 private:
  AheadReader(const std::filesystem::path& path, uint64_t size, std::unique_ptr<FileReader> file,
              Room* room);
  // How many of the bytes at `offset` are in the room.
  size_t Known(uint64_t offset) const;
  absl::Status Fill(uint64_t offset, size_t length);

  uint64_t size_;
  std::unique_ptr<FileReader> file_;
  std::unique_ptr<FileWindow> large_;
  Room& room_;
  uint64_t begin_ = 0;  // of the bytes in room_.ahead
  size_t filled_ = 0;
};

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_BYTE_SOURCE_H_
