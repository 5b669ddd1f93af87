// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/trace_result.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/recording/trace_files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

void Incomplete(std::string what, std::string fix, v1::StopResponse* response) {
  response->set_complete(false);
  v1::Complaint& complaint = *response->add_complaints();
  complaint.set_severity(v1::Complaint::WARNING);
  complaint.set_what(std::move(what));
  complaint.set_fix(std::move(fix));
}

void CannotLook(const absl::Status& status, v1::StopResponse* response) {
  Incomplete(absl::StrCat("The agent cannot tell what it has recorded: ", status.message()),
             absl::IsResourceExhausted(status)
                 ? "start the agent with a higher limit of open files (ulimit -n, LimitNOFILE=)"
                 : "the files are kept as they are",
             response);
}

}  // namespace

absl::Status FindCanary(const std::filesystem::path& trace, uint64_t nonce) {
  SYNCLINE_ASSIGN_OR_RETURN(const auto directories, TraceDirectories(trace));
  for (const std::filesystem::path& directory : directories) {
    SYNCLINE_ASSIGN_OR_RETURN(const bool found, TraceContains(directory, nonce));
    if (!found) continue;
    const absl::Status readable = CheckMetadata(directory);
    if (!absl::IsDataLoss(readable)) return readable;
    return absl::FailedPreconditionError(
        absl::StrCat("LTTng reports that it records, but what it writes could never be read: ",
                     readable.message()));
  }
  return absl::FailedPreconditionError(
      "The canary's event did not come back: LTTng reports that it records, but no event reaches "
      "the files");
}

void AddTraceResult(const std::filesystem::path& directory, v1::StopResponse* response) {
  auto summary = SummarizeTrace(directory / "trace");
  if (!summary.ok()) {
    CannotLook(summary.status(), response);
  } else {
    uint64_t stream_bytes = 0;
    for (v1::StreamResult& stream : summary->streams) {
      stream_bytes += stream.bytes();
      *response->add_streams() = std::move(stream);
    }
    for (v1::Complaint& complaint : summary->complaints) {
      *response->add_complaints() = std::move(complaint);
    }
    if (!summary->readable) response->set_complete(false);
    uint64_t events = 0;
    for (const v1::ProcessCoverage& one : response->coverage()) events += one.events_count();
    if (events > 0 && stream_bytes == 0) {
      Incomplete(absl::StrCat("The processes counted ", events, events == 1 ? " event" : " events",
                              ", and none is in the trace"),
                 "was /dev/shm full, or the session daemon killed? Record again", response);
    }
  }
  const absl::StatusOr<uint64_t> bytes = DirectoryBytes(directory);
  if (bytes.ok()) {
    response->set_bytes(*bytes);
  } else if (summary.ok()) {  // else it is said already
    CannotLook(bytes.status(), response);
  }
}

}  // namespace syncline::agent
