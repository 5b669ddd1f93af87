// SPDX-License-Identifier: Apache-2.0
// The agent's side of the control block of a running process: find it, read it, open and close its
// gate.
//
// Files are opened as common/trusted_file.h does it: regular, of the expected owner and closed to
// others, in a directory of which the same is true. They are read with pread and the gate is
// written by the kernel (futex), so that a process that truncates its file under us cannot kill us
// with SIGBUS. Not thread-safe per object; different objects are independent.
#ifndef SYNCLINE_CONTROL_BLOCK_LIVE_BLOCK_H_
#define SYNCLINE_CONTROL_BLOCK_LIVE_BLOCK_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files.h"
#include "control_block/block_file.h"

namespace syncline::control_block {

// Where the libraries of user `uid` put their blocks: `configured` ($SYNCLINE_RUNTIME_DIR) when it
// is not empty, else /dev/shm/syncline-UID.
std::filesystem::path RuntimeDirectory(uint32_t uid, std::string_view configured = {});

// A runtime directory of `uid`'s, open. NotFound; PermissionDenied when it is a link, belongs to
// somebody other than `uid`, or is open to others.
absl::StatusOr<Descriptor> OpenRuntimeDirectory(const std::filesystem::path& directory,
                                                uint32_t uid);

// The blocks in `directory`, sorted. An absent directory has none. Errors as above, or OutOfRange
// where there are more files than any job makes.
absl::StatusOr<std::vector<BlockId>> ListBlocks(const std::filesystem::path& directory,
                                                uint32_t uid);

// Of many blocks that are not opened, in their user's open runtime directory. What the process says
// of itself; errors as LiveBlock::Open.
absl::StatusOr<ProcessState> ReadStateIn(int directory, const BlockId& id, uint32_t uid);
// Unlinks both files of a process that is gone and whose names were kept.
absl::Status RemoveFrom(int directory, const BlockId& id);

// A control block, open. The file stays readable after the process has died or unlinked it.
class LiveBlock {
 public:
  // `uid` owns directory and files. NotFound, PermissionDenied, or what ParseBlock says.
  static absl::StatusOr<LiveBlock> Open(const std::filesystem::path& directory, const BlockId& id,
                                        uint32_t uid);
  LiveBlock(LiveBlock&& other) noexcept;
  LiveBlock& operator=(LiveBlock&& other) noexcept;
  ~LiveBlock();

  const BlockId& id() const { return id_; }

  // The block as it is now: facts, answer, thread slots.
  absl::StatusOr<Block> Read() const;
  // Of that only the state: four bytes instead of all slots.
  absl::StatusOr<ProcessState> ReadState() const;
  // The bytes themselves, to be kept in a recording.
  absl::StatusOr<std::string> ReadBlockBytes() const;
  // The valid part of the names file, up to its first hole. Bytes, so that they can be kept;
  // ParseNames reads them.
  absl::StatusOr<std::string> ReadNamesBytes() const;

  // Writes the gate and wakes its waiters: 0 closes it, another number opens it for that recording.
  // The number must not have been used before in the life of the process (1, 2, 3 ... will do).
  absl::Status SetGeneration(uint32_t generation);

  // What the process is not to record: operators inside of others that mostly take less than so
  // many microseconds (0: none), and SYNCLINE_LEFT_OUT_... Before the generation that it is
  // for.
  absl::Status SetLeftOut(uint32_t operators_least_us, uint32_t left_out);

  // Asks the process for its stacks, for the time that `number` says (1 to 2047, not that of the
  // last request), and wakes it. To be repeated until it has answered: it may not have slept yet.
  absl::Status AskForStacks(uint32_t number);

  // Whether its file is no longer there under its name: the process became another program (exec),
  // under the same pid, which made a block of its own, and may have removed it at its end. A
  // process that ends without ever having been recorded removes its own. False when there is no
  // telling.
  bool IsReplaced() const;

  // RemoveFrom.
  absl::Status Remove();

 private:
  LiveBlock(std::filesystem::path directory, const BlockId& id, uint32_t uid, int block_fd,
            int names_fd)
      : directory_(std::move(directory)),
        id_(id),
        uid_(uid),
        block_fd_(block_fd),
        names_fd_(names_fd) {}
  // The page with the words that the agent writes.
  absl::StatusOr<uint8_t*> GatePage(const std::string& what);
  std::filesystem::path directory_;
  BlockId id_;
  uint32_t uid_ = 0;
  int block_fd_ = -1;
  int names_fd_ = -1;
  void* gate_page_ = nullptr;
};

}  // namespace syncline::control_block

#endif  // SYNCLINE_CONTROL_BLOCK_LIVE_BLOCK_H_
