// SPDX-License-Identifier: Apache-2.0
// Which files of a recording a pack without names holds, what they are called there, and their
// contents. Only kinds that Syncline writes and that redact_files.h makes anew, field by field, are
// taken; all else is left out.
//
// Thread-safety: none.
#ifndef SYNCLINE_COORDINATOR_PACK_REDACT_RUN_H_
#define SYNCLINE_COORDINATOR_PACK_REDACT_RUN_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/pack/members.h"
#include "coordinator/pack/pseudonyms.h"
#include "coordinator/pack/redact_files.h"
#include "coordinator/recording/recording.h"
#include "ctf/layout.h"

namespace syncline::pack {

// Files of a kind that is left out, all of them.
struct KindLeftOut {
  std::string what;  // "profiles of PyTorch (kineto/)"
  size_t files = 0;
};

// Whether files of this kind are made anew; all others are left out.
bool IsRedacted(MemberKind kind);

struct RedactedFile {
  MemberKind kind = MemberKind::kStream;
  std::string from;  // below the recording
  std::string to;    // below the pack
};

struct RedactPlan {
  std::vector<RedactedFile> files;  // by `to`, so that their order says nothing of names
  std::vector<KindLeftOut> kinds;
  std::vector<LeftOut> left_out;  // of the kinds that are taken
};

// How many ranks the recording's job has, or more: lists of smaller numbers name nobody.
uint32_t RanksOf(const recording::Recording& recording);

// `members.left_out` is not looked at.
RedactPlan PlanRedaction(const recording::Recording& recording, const Members& members,
                         Pseudonyms* names);

class RunRedactor {
 public:
  // Announces a file of so many bytes; what follows goes to the sink.
  using Begin = std::function<absl::Status(const std::string& path, uint64_t bytes)>;

  RunRedactor(std::filesystem::path run, const recording::Recording* recording, Pseudonyms* names)
      : run_(std::move(run)), recording_(*recording), names_(*names) {}

  // nullopt: it was written. A reason: it is left out, and nothing was written. An error refuses
  // the pack: a trace that is damaged, or that others wrote events to.
  absl::StatusOr<std::optional<std::string>> Write(const RedactedFile& file, const Begin& begin,
                                                   const Sink& sink);

 private:
  struct Trace {
    std::filesystem::path directory;
    std::shared_ptr<const ctf::TraceLayout> layout;
  };

  absl::StatusOr<std::string> Contents(const RedactedFile& file, std::string_view bytes);
  absl::Status LoadTrace(const std::filesystem::path& directory);
  absl::Status WriteStream(const RedactedFile& file, const Begin& begin, const Sink& sink);

  std::filesystem::path run_;
  const recording::Recording& recording_;
  Pseudonyms& names_;
  Trace trace_;  // the last one: files of one trace follow each other
};

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_REDACT_RUN_H_
