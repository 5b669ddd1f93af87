// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/pack.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "coordinator/pack/archive.h"
#include "coordinator/pack/leftovers.h"
#include "coordinator/pack/pseudonyms.h"
#include "coordinator/pack/search_archive.h"

namespace syncline::pack {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = size_t{1} << 20;
// Of each file in a redacted pack: when the recording was fetched is nobody's business. 2000-01-01,
// because tar warns of 0.
constexpr int64_t kRedactedUnixS = 946'684'800;

// What the directory is called, also where it was named "." or by a link.
absl::StatusOr<std::string> NameOf(const fs::path& run) {
  std::error_code error;
  const fs::path whole = fs::canonical(run, error);
  if (error) {
    return absl::NotFoundError(
        absl::StrCat("cannot open \"", run.string(), "\": ", error.message()));
  }
  const std::string name = whole.filename().string();
  return name.empty() ? std::string("recording") : name;
}

int64_t ModifiedUnixS(const fs::path& file) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(file, error);
  if (error) return 0;
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::file_clock::to_sys(time).time_since_epoch())
      .count();
}

class Packer {
 public:
  Packer(const PackOptions& options, uint64_t total_bytes)
      : options_(options), progress_{0, total_bytes} {}

  absl::Status Put(const std::string& name, std::span<const uint8_t> bytes, int64_t modified_unix_s,
                   Archive* archive) {
    SYNCLINE_RETURN_IF_ERROR(archive->Add(name, bytes.size(), modified_unix_s));
    return Write(bytes, archive);
  }

  absl::Status Write(std::span<const uint8_t> bytes, Archive* archive) {
    while (!bytes.empty()) {
      if (options_.interrupt.stop_requested()) return absl::CancelledError("interrupted");
      const std::span<const uint8_t> piece = bytes.first(std::min(bytes.size(), kPieceBytes));
      SYNCLINE_RETURN_IF_ERROR(archive->Write(piece));
      bytes = bytes.subspan(piece.size());
      progress_.done_bytes += piece.size();
      if (options_.progress) options_.progress(progress_);
    }
    return absl::OkStatus();
  }

 private:
  const PackOptions& options_;
  Progress progress_;
};

absl::StatusOr<PackResult> PackAsItIs(const PackOptions& options,
                                      const recording::Recording& recording) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::string name, NameOf(options.run));
  PackResult result;
  result.file = options.output.empty() ? fs::path(name + ".tar.gz") : options.output;
  // First, so that what cannot be written is said before anything is read.
  SYNCLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Archive> archive, Archive::Create(result.file));
  SYNCLINE_ASSIGN_OR_RETURN(Members found, FindMembers(options.run, recording));
  for (const Member& member : found.members) result.unpacked_bytes += member.bytes;
  Packer packer(options, result.unpacked_bytes);
  for (const Member& member : found.members) {
    const fs::path file = options.run / member.path;
    SYNCLINE_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(file));
    SYNCLINE_RETURN_IF_ERROR(packer.Put(absl::StrCat(name, "/", member.path), mapped.bytes(),
                                        ModifiedUnixS(file), archive.get()));
  }
  SYNCLINE_ASSIGN_OR_RETURN(result.bytes, archive->Finish());
  result.files = found.members.size();
  result.left_out = std::move(found.left_out);
  return result;
}

// Every name that was replaced, but the id by which the pack itself is called.
Leftovers WhatToSeek(const Pseudonyms& names, const std::string& id) {
  std::set<std::string, std::less<>> originals = names.originals();
  originals.erase(id);
  return Leftovers(originals);
}

// Aborted: by chance a pseudonym is a name of the recording.
absl::StatusOr<PackResult> PackRedacted(const PackOptions& options,
                                        const recording::Recording& recording) {
  Pseudonyms names(RanksOf(recording), options.random);
  const std::string id = RedactRecording(recording, &names).recording_id;
  const std::string directory = absl::StrCat("redacted-", id);
  PackResult result;
  result.file = options.output.empty() ? fs::path(directory + ".tar.gz") : options.output;
  SYNCLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Archive> archive, Archive::Create(result.file));
  SYNCLINE_ASSIGN_OR_RETURN(Members found, FindMembers(options.run, recording));
  RedactPlan plan = PlanRedaction(recording, found, &names);
  result.left_out = std::move(found.left_out);
  result.left_out.insert(result.left_out.end(), plan.left_out.begin(), plan.left_out.end());
  result.kinds_left_out = std::move(plan.kinds);
  uint64_t total_bytes = 0;
  for (const Member& member : found.members) {
    if (IsRedacted(member.kind)) total_bytes += member.bytes;
  }
  Packer packer(options, total_bytes);
  RunRedactor redactor(options.run, &recording, &names);
  const auto begin = [&](const std::string& path, uint64_t bytes) {
    ++result.files;
    result.unpacked_bytes += bytes;
    return archive->Add(absl::StrCat(directory, "/", path), bytes, kRedactedUnixS);
  };
  const auto sink = [&](std::span<const uint8_t> bytes) {
    return packer.Write(bytes, archive.get());
  };
  for (const RedactedFile& file : plan.files) {
    SYNCLINE_ASSIGN_OR_RETURN(std::optional<std::string> left_out,
                              redactor.Write(file, begin, sink));
    if (left_out.has_value()) result.left_out.push_back({file.from, *std::move(left_out)});
  }
  SYNCLINE_RETURN_IF_ERROR(names.status());
  SYNCLINE_RETURN_IF_ERROR(archive->Close());
  const Leftovers leftovers = WhatToSeek(names, id);
  SYNCLINE_ASSIGN_OR_RETURN(const std::optional<Leftover> left,
                            SearchArchive(archive->part_file(), leftovers, options.interrupt));
  if (left.has_value() && names.IsInPseudonym(left->name)) {
    return absl::AbortedError(absl::StrCat("a pseudonym in \"", left->member, "\" spells \"",
                                           left->name, "\" by chance; try again"));
  }
  if (left.has_value()) {
    return absl::InternalError(absl::StrCat("\"", left->name, "\" was still in \"", left->member,
                                            "\" of the redacted pack, which was deleted"));
  }
  result.replaced = names.originals().size();
  result.sought = leftovers.sought();
  SYNCLINE_ASSIGN_OR_RETURN(result.bytes, archive->Finish());
  return result;
}

}  // namespace

absl::StatusOr<PackResult> Pack(const PackOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(const recording::Recording recording,
                            recording::ReadRecording(options.run));
  absl::StatusOr<PackResult> result = absl::AbortedError("");
  constexpr int kTries = 8;
  for (int i = 0; i < kTries && absl::IsAborted(result.status()); ++i) {
    result = options.redact ? PackRedacted(options, recording) : PackAsItIs(options, recording);
  }
  if (!result.ok()) return result;
  for (const recording::NodeRecord& node : recording.nodes) {
    if (node.state == recording::NodeState::kLeft) result->still_on_nodes.push_back(node.name);
  }
  return result;
}

}  // namespace syncline::pack
