// SPDX-License-Identifier: Apache-2.0
#include "ctf/byte_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace syncline::ctf {
namespace {

constexpr uint64_t kPage = 4096;  // a multiple of it, where pages are larger, maps as well
// Packets share a mapping; what is not touched costs only addresses.
constexpr size_t kWindow = size_t{32} << 20;

std::string What(const char* verb, const std::filesystem::path& path) {
  return absl::StrCat("Cannot ", verb, " stream: path=\"", path.string(), "\"");
}

absl::Status Shrank(const std::filesystem::path& path) {
  return absl::DataLossError(absl::StrCat(What("read", path), " shrank while it was read"));
}

}  // namespace

absl::Status ByteSource::ReadPacketInto(uint64_t offset, std::span<uint8_t> out) {
  SYNCLINE_ASSIGN_OR_RETURN(const auto bytes, ReadPacket(offset, out.size()));
  if (bytes.size() < out.size()) return absl::DataLossError("a stream shrank while it was read");
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return absl::OkStatus();
}

absl::StatusOr<std::span<const uint8_t>> MemorySource::Read(uint64_t offset, size_t length) {
  if (offset >= bytes_.size()) return std::span<const uint8_t>();
  return bytes_.subspan(offset, std::min<size_t>(length, bytes_.size() - offset));
}

absl::StatusOr<std::unique_ptr<FileWindow>> FileWindow::Open(const std::filesystem::path& path) {
  SYNCLINE_ASSIGN_OR_RETURN(const OpenFile file, OpenRegular(path));
  return std::unique_ptr<FileWindow>(new FileWindow(path, file.size_bytes));
}

std::unique_ptr<FileWindow> FileWindow::OfSize(std::filesystem::path path, uint64_t size) {
  return std::unique_ptr<FileWindow>(new FileWindow(std::move(path), size));
}

FileWindow::~FileWindow() { Unmap(); }

void FileWindow::Unmap() {
  if (window_ != nullptr) ::munmap(window_, window_size_);
  window_ = nullptr;
  window_size_ = 0;
}

absl::Status FileWindow::Map(uint64_t offset, size_t length) {
  Unmap();
  SYNCLINE_ASSIGN_OR_RETURN(const OpenFile file, OpenRegular(path_));
  if (file.size_bytes < size_) return Shrank(path_);
  const uint64_t begin = offset / (16 * kPage) * (16 * kPage);
  const uint64_t wanted = std::max<uint64_t>(kWindow, offset - begin + length);
  const auto bytes = static_cast<size_t>(std::min<uint64_t>(wanted, size_ - begin));
  void* address =
      ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.fd.get(), static_cast<off_t>(begin));
  if (address == MAP_FAILED) return ErrnoStatus(errno, What("map", path_));
  window_ = static_cast<uint8_t*>(address);
  window_offset_ = begin;
  window_size_ = bytes;
  return absl::OkStatus();
}

absl::StatusOr<std::span<const uint8_t>> FileWindow::Read(uint64_t offset, size_t length) {
  if (offset >= size_) return std::span<const uint8_t>();
  length = static_cast<size_t>(std::min<uint64_t>(length, size_ - offset));
  if (window_ == nullptr || offset < window_offset_ ||
      offset + length > window_offset_ + window_size_) {
    SYNCLINE_RETURN_IF_ERROR(Map(offset, length));
  }
  return std::span<const uint8_t>(window_ + (offset - window_offset_), length);
}

absl::StatusOr<std::unique_ptr<FileReader>> FileReader::Open(const std::filesystem::path& path) {
  SYNCLINE_ASSIGN_OR_RETURN(OpenFile file, OpenRegular(path));
  return std::unique_ptr<FileReader>(new FileReader(path, std::move(file)));
}

absl::StatusOr<std::span<const uint8_t>> FileReader::Read(uint64_t offset, size_t length) {
  if (offset >= size()) return std::span<const uint8_t>();
  length = static_cast<size_t>(std::min<uint64_t>(length, size() - offset));
  if (buffer_.size() < length) buffer_.resize(length);
  SYNCLINE_RETURN_IF_ERROR(ReadInto(offset, std::span(buffer_).first(length)));
  return std::span<const uint8_t>(buffer_.data(), length);
}

absl::Status FileReader::ReadInto(uint64_t offset, std::span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(file_.fd.get(), out.data() + done, out.size() - done,
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, What("read", path_));
    if (n == 0) return Shrank(path_);
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<AheadReader>> AheadReader::Open(const std::filesystem::path& path,
                                                               Room* room) {
  SYNCLINE_ASSIGN_OR_RETURN(auto file, FileReader::Open(path));
  const uint64_t size = file->size();
  return std::unique_ptr<AheadReader>(new AheadReader(path, size, std::move(file), room));
}

absl::StatusOr<std::unique_ptr<AheadReader>> AheadReader::OfSize(const std::filesystem::path& path,
                                                                 uint64_t size, Room* room) {
  SYNCLINE_ASSIGN_OR_RETURN(auto file, FileReader::Open(path));
  if (file->size() < size) return Shrank(path);
  return std::unique_ptr<AheadReader>(new AheadReader(path, size, std::move(file), room));
}

AheadReader::AheadReader(const std::filesystem::path& path, uint64_t size,
                         std::unique_ptr<FileReader> file, Room* room)
    : size_(size), file_(std::move(file)), large_(FileWindow::OfSize(path, size)), room_(*room) {}

size_t AheadReader::Known(uint64_t offset) const {
  if (offset < begin_ || offset - begin_ >= filled_) return 0;
  return filled_ - static_cast<size_t>(offset - begin_);
}

absl::StatusOr<std::span<const uint8_t>> AheadReader::Read(uint64_t offset, size_t length) {
  if (offset >= size_) return std::span<const uint8_t>();
  length = static_cast<size_t>(std::min<uint64_t>(length, size_ - offset));
  if (length <= Known(offset)) return std::span(room_.ahead).subspan(offset - begin_, length);
  if (length > kLargest) return large_->Read(offset, length);
  if (room_.piece.size() < length) room_.piece.resize(length);
  const std::span<uint8_t> piece = std::span(room_.piece).first(length);
  SYNCLINE_RETURN_IF_ERROR(file_->ReadInto(offset, piece));
  return piece;
}

absl::StatusOr<std::span<const uint8_t>> AheadReader::ReadPacket(uint64_t offset, size_t length) {
  if (offset < size_ && length <= kLargest) SYNCLINE_RETURN_IF_ERROR(Fill(offset, length));
  return Read(offset, length);
}

// A large packet takes no detour through the room.
absl::Status AheadReader::ReadPacketInto(uint64_t offset, std::span<uint8_t> out) {
  if (out.size() < kAhead || Known(offset) > 0) return ByteSource::ReadPacketInto(offset, out);
  return file_->ReadInto(offset, out);
}

// What is known already is not read again.
absl::Status AheadReader::Fill(uint64_t offset, size_t length) {
  const size_t known = Known(offset);
  length = static_cast<size_t>(std::min<uint64_t>(length, size_ - offset));
  if (length <= known) return absl::OkStatus();
  const auto wanted =
      static_cast<size_t>(std::min<uint64_t>(std::max(length, kAhead), size_ - offset));
  std::vector<uint8_t>& ahead = room_.ahead;
  if (known > 0) std::memmove(ahead.data(), &ahead[offset - begin_], known);
  begin_ = offset;
  filled_ = known;
  if (ahead.size() < wanted) ahead.resize(wanted);
  SYNCLINE_RETURN_IF_ERROR(
      file_->ReadInto(offset + known, std::span(ahead).subspan(known, wanted - known)));
  filled_ = wanted;
  return absl::OkStatus();
}

}  // namespace syncline::ctf
