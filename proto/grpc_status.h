// SPDX-License-Identifier: Apache-2.0
// The one adapter between absl::Status and grpc::Status: gRPC 1.51 has none. Templates, so that
// this header needs no grpcpp; the numeric codes are equal by specification (canonical codes).
#ifndef SYNCLINE_PROTO_GRPC_STATUS_H_
#define SYNCLINE_PROTO_GRPC_STATUS_H_

#include <string>

#include "absl/status/status.h"

namespace syncline {

template <class GrpcStatus>
absl::Status FromGrpcStatus(const GrpcStatus& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

// GrpcStatus is grpc::Status and StatusCode its code enum.
template <class GrpcStatus, class StatusCode>
GrpcStatus ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return GrpcStatus();
  return GrpcStatus(static_cast<StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace syncline

#endif  // SYNCLINE_PROTO_GRPC_STATUS_H_
