// SPDX-License-Identifier: Apache-2.0
#include "agent/service/fetch_stream.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/recording/names.h"
#include "agent/recording/trace_files.h"
#include "common/checksum.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

constexpr uint64_t kChunkBytes = 256
                                 << 10;  // well below the contract's 1 MiB: the stream stays lively

struct DigestDeleter {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

absl::Status ReadExactly(int fd, uint64_t offset, std::string* bytes) {
  size_t done = 0;
  while (done < bytes->size()) {
    const ssize_t n =
        ::pread(fd, bytes->data() + done, bytes->size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "Cannot read");
    if (n == 0) return absl::DataLossError("The file shrank while it was read");
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status StreamFile(const std::filesystem::path& recording, const v1::FileEntry& file,
                        uint64_t offset, const std::function<bool(const v1::FetchChunk&)>& write) {
  const Descriptor fd(::open((recording / file.path()).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd.get() < 0) return ErrnoStatus(errno, "Cannot open");
  const std::unique_ptr<EVP_MD_CTX, DigestDeleter> digest(EVP_MD_CTX_new());
  EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr);
  v1::FetchChunk chunk;
  for (uint64_t position = 0; position < file.size_bytes();) {
    // What the coordinator has already is hashed as well: the digest is the whole file's.
    const uint64_t end = position < offset ? offset : file.size_bytes();
    std::string bytes(std::min(kChunkBytes, end - position), '\0');
    SYNCLINE_RETURN_IF_ERROR(ReadExactly(fd.get(), position, &bytes));
    EVP_DigestUpdate(digest.get(), bytes.data(), bytes.size());
    const uint64_t begin = position;
    position += bytes.size();
    if (begin < offset) continue;
    v1::FileData& data = *chunk.mutable_data();
    data.set_path(file.path());
    data.set_offset_bytes(begin);
    data.set_crc32c(Crc32c(bytes));
    *data.mutable_data() = std::move(bytes);
    if (!write(chunk)) return absl::CancelledError("The coordinator closed the connection");
  }
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int hash_bytes = 0;
  EVP_DigestFinal_ex(digest.get(), hash, &hash_bytes);
  v1::FileEnd& end = *chunk.mutable_end();
  end.set_path(file.path());
  end.set_size_bytes(file.size_bytes());
  end.set_sha256(hash, hash_bytes);
  return write(chunk) ? absl::OkStatus()
                      : absl::CancelledError("The coordinator closed the connection");
}

}  // namespace

absl::Status StreamRecording(const std::filesystem::path& recording,
                             const v1::FetchRequest& request,
                             const std::function<bool(const v1::FetchChunk&)>& write) {
  v1::FetchChunk first;
  std::map<std::string, uint64_t> sizes;
  SYNCLINE_ASSIGN_OR_RETURN(auto files, ListFetchable(recording));
  for (v1::FileEntry& file : files) {
    sizes[file.path()] = file.size_bytes();
    first.mutable_list()->set_total_bytes(first.list().total_bytes() + file.size_bytes());
    *first.mutable_list()->add_files() = std::move(file);
  }
  first.mutable_list();
  std::map<std::string, uint64_t> offsets;
  for (const v1::FetchResume& resume : request.resume()) {
    const auto file = sizes.find(resume.path());
    if (file == sizes.end() || resume.offset_bytes() > file->second) {
      return absl::InvalidArgumentError(absl::StrCat("Cannot resume \"", ForLog(resume.path()),
                                                     "\" at ", resume.offset_bytes(),
                                                     ": no such offset; fetch it from the start"));
    }
    offsets[resume.path()] = resume.offset_bytes();
  }
  if (!write(first)) return absl::CancelledError("The coordinator closed the connection");
  for (const v1::FileEntry& file : first.list().files()) {
    const absl::Status streamed = StreamFile(recording, file, offsets[file.path()], write);
    if (!streamed.ok()) return WithContext(streamed, file.path());
  }
  return absl::OkStatus();
}

}  // namespace syncline::agent
