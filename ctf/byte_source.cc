#include "ctf/byte_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

}  // namespace

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
  if (file.size_bytes < size_) {
    return absl::DataLossError(absl::StrCat(What("read", path_), " shrank while it was read"));
  }
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
    if (n == 0) {
      return absl::DataLossError(absl::StrCat(What("read", path_), " shrank while it was read"));
    }
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace syncline::ctf
