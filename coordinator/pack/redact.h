// SPDX-License-Identifier: Apache-2.0
// A recording with other names: of hosts, users, paths, commands, jobs, tasks, tensors and
// addresses.
//
// Two rounds over the files. Collect() redacts each once and keeps nothing but the names; then all
// of them are known. Redact() gives a file's bytes, after looking for each of the names in every
// one of them: a name that is left is an error, and nothing is sent.
//
// Thread-safety: none.
#ifndef SYNCLINE_COORDINATOR_PACK_REDACT_H_
#define SYNCLINE_COORDINATOR_PACK_REDACT_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/pack/leftovers.h"
#include "coordinator/pack/members.h"
#include "coordinator/pack/private_file.h"
#include "coordinator/pack/pseudonyms.h"
#include "coordinator/recording/recording.h"
#include "ctf/layout.h"

namespace syncline::pack {

// A file's bytes with other names in them.
class Redacted {
 public:
  explicit Redacted(std::string text) : text_(std::move(text)), in_text_(true) {}
  explicit Redacted(PrivateFile file) : file_(std::move(file)) {}
  std::span<const uint8_t> bytes() const {
    if (!in_text_) return file_.bytes();
    return {reinterpret_cast<const uint8_t*>(text_.data()), text_.size()};
  }

 private:
  std::string text_;
  PrivateFile file_;
  bool in_text_ = false;
};

class Redactor {
 public:
  // Takes those out of `members` that are for people only (agents' logs). Unimplemented, in one
  // line, where the recording has others that cannot be redacted.
  static absl::StatusOr<Redactor> Create(const std::filesystem::path& run,
                                         const recording::Recording& recording, Members* members);

  // Of each member, before the first Redact().
  absl::Status Collect(const Member& member);
  // What the member is called in the pack. Internal where a name is left in it.
  absl::StatusOr<std::string> PathOf(const Member& member);
  // Its bytes. Internal, naming the file and what is left, where a name is.
  absl::StatusOr<Redacted> Redact(const Member& member);
  const Leftovers& leftovers();

 private:
  Redactor(std::filesystem::path run, const std::set<std::string>& hosts);
  absl::StatusOr<Redacted> Replace(const Member& member);
  absl::StatusOr<Redacted> ReplaceStream(const Member& member);
  std::string NewPath(const Member& member);

  std::filesystem::path run_;
  Pseudonyms names_;
  std::set<std::string, std::less<>> words_;  // of the formats
  std::optional<Leftovers> leftovers_;
  std::string layout_of_;  // the directory whose layout it is
  std::shared_ptr<const ctf::TraceLayout> layout_;
};

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_REDACT_H_
