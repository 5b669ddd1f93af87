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

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_BYTE_SOURCE_H_
