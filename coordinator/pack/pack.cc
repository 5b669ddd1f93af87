// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/pack.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "coordinator/pack/archive.h"

namespace syncline::pack {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = size_t{1} << 20;

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

}  // namespace

absl::StatusOr<PackResult> Pack(const PackOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(const recording::Recording recording,
                            recording::ReadRecording(options.run));
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
  for (const recording::NodeRecord& node : recording.nodes) {
    if (node.state == recording::NodeState::kLeft) result.still_on_nodes.push_back(node.name);
  }
  return result;
}

}  // namespace syncline::pack
