// SPDX-License-Identifier: Apache-2.0
// Where a user's processes leave the profiles that they make of themselves: kineto/ below their
// runtime directory.
//
//   <process>.pieces             what there is, an xspace/profile_list.h; replaced in one piece
//   <process>-<n>.kineto.json    a profile
//
// What is not finished is there as <process>.pieces.new, <process>-<n>.kineto.json.part and
// <process>-<n>.kineto.json.part.tmp.
// <process> is the stem of the process's control block. Every byte, name and file there is the
// processes': the folder and the files must belong to the user alone, no link is followed, sizes
// are limited, and what is read at a time is one process's. Not thread-safe.
#ifndef SYNCLINE_AGENT_KINETO_PIECE_FOLDER_H_
#define SYNCLINE_AGENT_KINETO_PIECE_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files.h"
#include "control_block/block_file.h"
#include "xspace/profile_list.h"

namespace syncline::agent {

class PieceFolder {
 public:
  // NotFound: there is none. PermissionDenied: it, or the runtime directory, is a link, somebody
  // else's or open to others.
  static absl::StatusOr<PieceFolder> Open(const std::filesystem::path& runtime, uint32_t uid);

  // What the process lists of itself, with texts cut to 512 bytes. NotFound: it has no list.
  // InvalidArgument: the list is none, or larger than 256 KiB.
  absl::StatusOr<std::vector<xspace::ProfileRecord>> Records(
      const control_block::BlockId& process) const;
  // Moves a profile of at most `bytes_max` to `to`, which did not exist or is replaced; how many
  // bytes it has. What is refused, for its name, owner, kind or size, is removed as well.
  absl::StatusOr<uint64_t> Take(const std::string& name, const std::filesystem::path& to,
                                uint64_t bytes_max) const;
  // Removes a profile that is not wanted; a name that is no profile's is passed over.
  void Remove(const std::string& name) const;
  // Removes what processes, living and dead, have left there, also what they had not finished, and
  // nothing else. OutOfRange: there are more files than it looks at.
  absl::Status Clear(int entries_max) const;

 private:
  PieceFolder(Descriptor fd, uint32_t uid) : fd_(std::move(fd)), uid_(uid) {}
  absl::StatusOr<Descriptor> OpenFile(const std::string& name, uint64_t bytes_max) const;
  absl::StatusOr<std::string> ReadList(const std::string& name) const;
  absl::StatusOr<uint64_t> Copy(const std::string& name, const std::filesystem::path& to,
                                uint64_t bytes_max) const;

  Descriptor fd_;
  uint32_t uid_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_KINETO_PIECE_FOLDER_H_
