// SPDX-License-Identifier: Apache-2.0
// Opening what another user may have planted: the one place where owner, mode and kind are checked.
//
// An agent that runs as root works in directories that its users own. Whoever owns a directory can
// put a link, a pipe, a device or a second name of somebody's file under any name in it, and can
// exchange them at any moment. So nothing is checked by path and opened afterwards: it is opened,
// relative to a directory that is open and checked already, without following a link and without
// waiting, and what the descriptor says is believed. Thread-safe: no state.
#ifndef SYNCLINE_COMMON_TRUSTED_FILE_H_
#define SYNCLINE_COMMON_TRUSTED_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files.h"

namespace syncline {

struct TrustOptions {
  uint32_t owner = 0;       // the user that it must belong to
  bool others_none = true;  // nor may others read it: no permission of group and others is set
  int flags = 0;            // of a file: O_RDONLY, O_RDWR; never O_CREAT
};

// The directory `path`, seen from the open directory `at` (AT_FDCWD: the current one) without
// following a link at its end. NotFound, or PermissionDenied, which says who owns it and what it
// is.
absl::StatusOr<Descriptor> OpenTrustedDirectory(int at, const std::filesystem::path& path,
                                                const TrustOptions& options);

// The regular file of the last part of `path` in the open directory `at`; the rest of `path` is for
// the message. It has no second name. Errors as above.
absl::StatusOr<Descriptor> OpenTrustedFile(int at, const std::filesystem::path& path,
                                           const TrustOptions& options);

// The same, made if it is not there, with mode 0600; it then belongs to the owner.
absl::StatusOr<Descriptor> OpenOrMakeTrustedFile(int at, const std::filesystem::path& path,
                                                 const TrustOptions& options);

// Nobody but `user` and root can exchange anything on the way to `path`, which is absolute: each
// directory and link on it belongs to one of the two, and others may write into a directory only
// where they cannot touch what is not theirs (mode 1777). What is not there yet counts as good: the
// one who makes it will own it. PermissionDenied names the part that is not.
absl::Status CheckWay(const std::filesystem::path& path, uint32_t user);

}  // namespace syncline

#endif  // SYNCLINE_COMMON_TRUSTED_FILE_H_
