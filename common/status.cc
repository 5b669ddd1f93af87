// SPDX-License-Identifier: Apache-2.0
#include "common/status.h"

#include <cerrno>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/text.h"

namespace syncline {

absl::Status WithContext(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(AbslView(context), ": ", status.message()));
}

absl::Status ErrnoStatus(int error_number, std::string_view what) {
  // std::generic_category().message is the thread-safe strerror.
  const std::string message =
      absl::StrCat(AbslView(what), ": ", std::generic_category().message(error_number));
  switch (error_number) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    case EINVAL:
      return absl::InvalidArgumentError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace syncline
