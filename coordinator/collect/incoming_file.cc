// SPDX-License-Identifier: Apache-2.0
#include "coordinator/collect/incoming_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::collect {
namespace {

std::filesystem::path PartPath(std::filesystem::path path) { return path += ".part"; }

}  // namespace

struct IncomingFile::Hash {
  Hash() : context(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context, EVP_sha256(), nullptr); }
  ~Hash() { EVP_MD_CTX_free(context); }
  void Add(std::string_view bytes) { EVP_DigestUpdate(context, bytes.data(), bytes.size()); }
  std::string Value() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(context, digest, &size);
    return std::string(reinterpret_cast<const char*>(digest), size);
  }
  EVP_MD_CTX* const context;
};

IncomingFile::IncomingFile(std::filesystem::path path, int fd)
    : path_(std::move(path)),
      part_path_(PartPath(path_)),
      fd_(fd),
      hash_(std::make_unique<Hash>()) {}

IncomingFile::~IncomingFile() {
  if (fd_ >= 0) ::close(fd_);
}

uint64_t IncomingFile::PrefixBytes(const std::filesystem::path& path) {
  std::error_code error;
  for (const std::filesystem::path& candidate : {path, PartPath(path)}) {
    const auto size = std::filesystem::file_size(candidate, error);
    if (!error) return size;
  }
  return 0;
}

void IncomingFile::Remove(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  std::filesystem::remove(PartPath(path), ignored);
}

absl::StatusOr<std::unique_ptr<IncomingFile>> IncomingFile::Open(const std::filesystem::path& path,
                                                                 bool from_scratch) {
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(path.parent_path()));
  const std::filesystem::path part = PartPath(path);
  // A finished file becomes a part again until its end is confirmed once more.
  std::error_code ignored;
  std::filesystem::rename(path, part, ignored);
  const int fd = ::open(
      part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (from_scratch ? O_TRUNC : 0), 0644);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("Cannot create \"", part.string(), "\""));
  std::unique_ptr<IncomingFile> file(new IncomingFile(path, fd));
  SYNCLINE_RETURN_IF_ERROR(file->HashWhatIsThere());
  return file;
}

absl::Status IncomingFile::HashWhatIsThere() {
  std::vector<char> chunk(1 << 20);
  for (;;) {
    const ssize_t n = ::read(fd_, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return ErrnoStatus(errno, absl::StrCat("Cannot read \"", part_path_.string(), "\""));
    }
    if (n == 0) return absl::OkStatus();
    hash_->Add({chunk.data(), static_cast<size_t>(n)});
    size_bytes_ += static_cast<uint64_t>(n);
  }
}

absl::Status IncomingFile::Append(std::string_view bytes) {
  hash_->Add(bytes);
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return ErrnoStatus(errno, absl::StrCat("Cannot write \"", part_path_.string(), "\""));
    }
    bytes.remove_prefix(static_cast<size_t>(n));
    size_bytes_ += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::Status IncomingFile::Finish(uint64_t size_bytes, std::string_view sha256) {
  const std::string own = hash_->Value();
  if (size_bytes_ != size_bytes || own != sha256) {
    ::unlink(part_path_.c_str());
    return absl::DataLossError(absl::StrCat("\"", path_.string(), "\" arrived damaged (",
                                            size_bytes_, " of ", size_bytes, " bytes",
                                            own == sha256 ? "" : ", wrong hash", ")"));
  }
  if (::rename(part_path_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("Cannot rename to \"", path_.string(), "\""));
  }
  return absl::OkStatus();
}

}  // namespace syncline::collect
