// SPDX-License-Identifier: Apache-2.0
// Small helpers around absl::Status that the installed Abseil does not have.
#ifndef SYNCLINE_COMMON_STATUS_H_
#define SYNCLINE_COMMON_STATUS_H_

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncline {

// The same code with "context: " before the message; OK stays OK.
absl::Status WithContext(const absl::Status& status, std::string_view context);

// From errno: NotFound, PermissionDenied, ResourceExhausted (disk full, descriptors),
// AlreadyExists, else Internal. The message is "what: strerror".
absl::Status ErrnoStatus(int error_number, std::string_view what);

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace syncline

// Returns the status of `expr` from the enclosing function unless it is OK.
#define SYNCLINE_RETURN_IF_ERROR(expr)                                         \
  do {                                                                         \
    const auto& syncline_status_ = (expr);                                     \
    if (!syncline_status_.ok()) return ::syncline::StatusOf(syncline_status_); \
  } while (0)

#define SYNCLINE_CONCAT_INNER_(a, b) a##b
#define SYNCLINE_CONCAT_(a, b) SYNCLINE_CONCAT_INNER_(a, b)

// SYNCLINE_ASSIGN_OR_RETURN(auto x, F()): x = the value of F(), or returns its status.
#define SYNCLINE_ASSIGN_OR_RETURN(lhs, expr) \
  SYNCLINE_ASSIGN_OR_RETURN_IMPL_(SYNCLINE_CONCAT_(syncline_result_, __LINE__), lhs, expr)
#define SYNCLINE_ASSIGN_OR_RETURN_IMPL_(result, lhs, expr) \
  auto result = (expr);                                    \
  if (!result.ok()) return result.status();                \
  lhs = std::move(result).value()

#endif  // SYNCLINE_COMMON_STATUS_H_
