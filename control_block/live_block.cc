// SPDX-License-Identifier: Apache-2.0
#include "control_block/live_block.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"
#include "common/trusted_file.h"
#include "instrumentation/abi/control_block.h"

namespace syncline::control_block {
namespace {

// In a runtime directory: two for each process of a recording, until the next one begins (guess).
constexpr size_t kEntriesMax = size_t{1} << 18;
constexpr uint64_t kNamesLimitBytes = uint64_t{64} << 20;
constexpr uint64_t kBlockBytes =
    sizeof(syncline_block) + SYNCLINE_BLOCK_THREADS * sizeof(syncline_thread_slot);
constexpr uint64_t kGateOffset = offsetof(syncline_block, generation);
constexpr uint64_t kStacksOffset = offsetof(syncline_block, stacks_asked);
// The kernel sets a futex word to a 12-bit signed operand.
constexpr uint32_t kLargestOperand = 2047;

std::string Quoted(const std::filesystem::path& path) {
  return absl::StrCat("\"", path.string(), "\"");
}

std::span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

std::filesystem::path RuntimeDirectory(uint32_t uid, std::string_view configured) {
  if (!configured.empty()) return std::filesystem::path(configured);
  return absl::StrCat("/dev/shm/syncline-", uid);
}

absl::StatusOr<Descriptor> OpenRuntimeDirectory(const std::filesystem::path& directory,
                                                uint32_t uid) {
  return OpenTrustedDirectory(AT_FDCWD, directory, {.owner = uid});
}

absl::StatusOr<std::vector<BlockId>> ListBlocks(const std::filesystem::path& directory,
                                                uint32_t uid) {
  std::vector<BlockId> ids;
  absl::StatusOr<Descriptor> opened = OpenRuntimeDirectory(directory, uid);
  if (absl::IsNotFound(opened.status())) return ids;
  if (!opened.ok()) return opened.status();
  const int fd = opened->Release();
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd), ::closedir);
  if (!stream) {
    const int error_number = errno;
    ::close(fd);
    return ErrnoStatus(error_number, absl::StrCat("Cannot list ", Quoted(directory)));
  }
  size_t entries = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    if (++entries > kEntriesMax) {
      return absl::OutOfRangeError(absl::StrCat(Quoted(directory), " has more than ", kEntriesMax,
                                                " files: remove what is not of Syncline there"));
    }
    if (const std::optional<BlockId> id = ParseBlockFileName(entry->d_name)) ids.push_back(*id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

absl::StatusOr<ProcessState> ReadStateIn(int directory, const BlockId& id, uint32_t uid) {
  const std::string name = BlockFileName(id);
  SYNCLINE_ASSIGN_OR_RETURN(
      const Descriptor file,
      OpenTrustedFile(directory, name, TrustOptions{.owner = uid, .flags = O_RDONLY}));
  struct {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint32_t state;
  } begin = {};
  static_assert(offsetof(syncline_block, state) == offsetof(decltype(begin), state));
  const ssize_t n = ::pread(file.get(), &begin, sizeof begin, 0);
  if (n != sizeof begin ||
      std::memcmp(begin.magic, SYNCLINE_BLOCK_MAGIC, sizeof begin.magic) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(name), " is not a control block"));
  }
  return static_cast<ProcessState>(begin.state);
}

absl::Status RemoveFrom(int directory, const BlockId& id) {
  absl::Status status;
  for (const std::string& name : {BlockFileName(id), NamesFileName(id)}) {
    if (::unlinkat(directory, name.c_str(), 0) != 0 && errno != ENOENT) {
      status.Update(ErrnoStatus(errno, absl::StrCat("Cannot remove ", Quoted(name))));
    }
  }
  return status;
}

absl::StatusOr<LiveBlock> LiveBlock::Open(const std::filesystem::path& directory, const BlockId& id,
                                          uint32_t uid) {
  SYNCLINE_ASSIGN_OR_RETURN(const Descriptor opened, OpenRuntimeDirectory(directory, uid));
  const TrustOptions trust = {.owner = uid, .flags = O_RDWR};
  SYNCLINE_ASSIGN_OR_RETURN(Descriptor block_fd,
                            OpenTrustedFile(opened.get(), directory / BlockFileName(id), trust));
  SYNCLINE_ASSIGN_OR_RETURN(Descriptor names_fd,
                            OpenTrustedFile(opened.get(), directory / NamesFileName(id), trust));
  LiveBlock block(directory, id, uid, block_fd.Release(), names_fd.Release());
  SYNCLINE_RETURN_IF_ERROR(block.Read());
  return block;
}

LiveBlock::LiveBlock(LiveBlock&& other) noexcept
    : directory_(std::move(other.directory_)),
      id_(other.id_),
      uid_(other.uid_),
      block_fd_(std::exchange(other.block_fd_, -1)),
      names_fd_(std::exchange(other.names_fd_, -1)),
      gate_page_(std::exchange(other.gate_page_, nullptr)) {}

LiveBlock& LiveBlock::operator=(LiveBlock&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(id_, other.id_);
  std::swap(uid_, other.uid_);
  std::swap(block_fd_, other.block_fd_);
  std::swap(names_fd_, other.names_fd_);
  std::swap(gate_page_, other.gate_page_);
  return *this;
}

LiveBlock::~LiveBlock() {
  if (block_fd_ >= 0) ::close(block_fd_);
  if (names_fd_ >= 0) ::close(names_fd_);
  if (gate_page_ != nullptr) ::munmap(gate_page_, sizeof(syncline_block));
}

bool LiveBlock::IsReplaced() const {
  struct stat ours = {};
  return ::fstat(block_fd_, &ours) == 0 && ours.st_nlink == 0;
}

absl::StatusOr<std::string> LiveBlock::ReadBlockBytes() const {
  return ReadUpTo(block_fd_, kBlockBytes,
                  absl::StrCat("Cannot read ", Quoted(directory_ / BlockFileName(id_))));
}

absl::StatusOr<Block> LiveBlock::Read() const {
  SYNCLINE_ASSIGN_OR_RETURN(const std::string bytes, ReadBlockBytes());
  absl::StatusOr<Block> block = ParseBlock(AsBytes(bytes));
  if (!block.ok()) {
    return WithContext(block.status(),
                       absl::StrCat("Cannot read ", Quoted(directory_ / BlockFileName(id_))));
  }
  if (block->facts.id != id_) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(directory_ / BlockFileName(id_)),
                     " describes another process: ", BlockFileName(block->facts.id)));
  }
  return block;
}

absl::StatusOr<ProcessState> LiveBlock::ReadState() const {
  uint32_t state = 0;
  const ssize_t n = ::pread(block_fd_, &state, sizeof state, offsetof(syncline_block, state));
  if (n != sizeof state) {
    return ErrnoStatus(n < 0 ? errno : EIO,
                       absl::StrCat("Cannot read ", Quoted(directory_ / BlockFileName(id_))));
  }
  return static_cast<ProcessState>(state);
}

absl::StatusOr<std::string> LiveBlock::ReadNamesBytes() const {
  SYNCLINE_ASSIGN_OR_RETURN(const Block block, Read());
  // The library writes all of it: what lies behind a hole is none of its names.
  const uint64_t bytes = BytesBeforeHole(names_fd_, std::min(block.names_bytes, kNamesLimitBytes));
  return ReadUpTo(names_fd_, bytes,
                  absl::StrCat("Cannot read ", Quoted(directory_ / NamesFileName(id_))));
}

absl::StatusOr<uint8_t*> LiveBlock::GatePage(const std::string& what) {
  if (gate_page_ == nullptr) {
    void* page =
        ::mmap(nullptr, sizeof(syncline_block), PROT_READ | PROT_WRITE, MAP_SHARED, block_fd_, 0);
    if (page == MAP_FAILED) return ErrnoStatus(errno, what);
    gate_page_ = page;
  }
  return static_cast<uint8_t*>(gate_page_);
}

absl::Status LiveBlock::AskForStacks(uint32_t number) {
  const std::string what = absl::StrCat("Cannot ask process ", id_.pid);
  if (number == 0 || number > kLargestOperand) return absl::InvalidArgumentError(what);
  SYNCLINE_ASSIGN_OR_RETURN(uint8_t* const page, GatePage(what));
  // As below: the kernel writes.
  const uint32_t set = FUTEX_OP(FUTEX_OP_SET, number, FUTEX_OP_CMP_GE, 0);
  if (::syscall(SYS_futex, page + kGateOffset, FUTEX_WAKE_OP, INT_MAX, INT_MAX,
                page + kStacksOffset, set) < 0) {
    return ErrnoStatus(errno, what);
  }
  return absl::OkStatus();
}

absl::Status LiveBlock::SetGeneration(uint32_t generation) {
  const std::string what = absl::StrCat("Cannot switch process ", id_.pid);
  SYNCLINE_ASSIGN_OR_RETURN(uint8_t* const page, GatePage(what));
  uint8_t* const word = page + kGateOffset;
  if (generation <= kLargestOperand) {
    // The kernel writes the word, in one piece, and wakes: where the page is gone this is an error
    // (EFAULT), where a store of our own would be SIGBUS.
    const uint32_t set = FUTEX_OP(FUTEX_OP_SET, generation, FUTEX_OP_CMP_GE, 0);
    if (::syscall(SYS_futex, word, FUTEX_WAKE_OP, INT_MAX, INT_MAX, word, set) < 0) {
      return ErrnoStatus(errno, what);
    }
    return absl::OkStatus();
  }
  // Larger numbers in two steps; a process that sees a torn word looks again before it acts.
  const ssize_t n = ::pwrite(block_fd_, &generation, sizeof generation, kGateOffset);
  if (n != sizeof generation) return ErrnoStatus(n < 0 ? errno : EIO, what);
  ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return absl::OkStatus();
}

absl::Status LiveBlock::SetLeftOut(uint32_t operators_least_us, uint32_t left_out) {
  static_assert(offsetof(syncline_block, left_out) ==
                offsetof(syncline_block, operators_least_us) + sizeof operators_least_us);
  const std::array<uint32_t, 2> words = {operators_least_us, left_out};
  const ssize_t n =
      ::pwrite(block_fd_, words.data(), sizeof words, offsetof(syncline_block, operators_least_us));
  if (n == sizeof words) return absl::OkStatus();
  return ErrnoStatus(n < 0 ? errno : EIO,
                     absl::StrCat("Cannot tell process ", id_.pid, " what is left out"));
}

absl::Status LiveBlock::Remove() {
  // The user may have put another directory, or a link to one, where his was.
  const auto directory = OpenRuntimeDirectory(directory_, uid_);
  if (absl::IsNotFound(directory.status())) return absl::OkStatus();
  SYNCLINE_RETURN_IF_ERROR(directory);
  return WithContext(RemoveFrom(directory->get(), id_), directory_.string());
}

}  // namespace syncline::control_block
