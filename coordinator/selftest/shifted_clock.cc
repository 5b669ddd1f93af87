// SPDX-License-Identifier: Apache-2.0
#include "coordinator/selftest/shifted_clock.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocksync/sample_file.h"
#include "common/files.h"
#include "common/status.h"
#include "coordinator/clocks/models.h"
#include "coordinator/recording/recording.h"

namespace syncline::selftest {
namespace {

constexpr const char* kSamples = ".samples";

void Shift(int64_t by_ns, int64_t* stamp_ns) {
  if (*stamp_ns != 0) *stamp_ns += by_ns;  // 0: there is none
}

absl::Status Cannot(const std::string& what, const std::filesystem::path& path,
                    const std::error_code& error) {
  return absl::FailedPreconditionError(
      absl::StrCat("Cannot ", what, " \"", path.string(), "\": ", error.message()));
}

}  // namespace

absl::StatusOr<ScratchDirectory> ScratchDirectory::Make() {
  std::error_code error;
  std::filesystem::path base = std::filesystem::temp_directory_path(error);
  if (error) base = "/tmp";
  std::string name = (base / "syncline-selftest-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("Cannot make a directory in \"", base.string(), "\": ", std::strerror(errno)));
  }
  return ScratchDirectory(name);
}

ScratchDirectory::ScratchDirectory(ScratchDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

absl::StatusOr<std::string> ShiftSamples(std::string_view bytes, const std::string& node,
                                         int64_t shift_ns) {
  SYNCLINE_ASSIGN_OR_RETURN(const clocksync::Edge edge, clocksync::DecodeSamples(bytes));
  std::string shifted = clocksync::EncodeSamplesHeader(edge.local, edge.remote);
  for (clocksync::ProbeSample sample : edge.samples) {
    if (edge.local == node) {
      Shift(shift_ns, &sample.t1_local_ns);
      Shift(shift_ns, &sample.t4_local_ns);
    }
    if (edge.remote == node) {
      Shift(shift_ns, &sample.t2_remote_ns);
      Shift(shift_ns, &sample.t3_remote_ns);
    }
    clocksync::AppendSample(sample, &shifted);
  }
  return shifted;
}

absl::Status CopyWithShiftedClock(const std::filesystem::path& run, const std::string& node,
                                  int64_t shift_ns, const std::filesystem::path& copy) {
  const recording::Layout from(std::filesystem::absolute(run));
  const recording::Layout to(copy);
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(to.Clocks()));
  std::error_code error;
  std::filesystem::copy_file(from.RecordingJson(), to.RecordingJson(), error);
  if (error) return Cannot("copy", from.RecordingJson(), error);
  std::filesystem::create_directory_symlink(from.Nodes(), to.Nodes(), error);
  if (error) return Cannot("link", from.Nodes(), error);
  size_t shifted_files = 0;
  for (std::filesystem::directory_iterator file(from.Clocks(), error), end; !error && file != end;
       file.increment(error)) {
    const std::filesystem::path& path = file->path();
    if (path == from.Models()) continue;
    SYNCLINE_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
    if (path.extension() == kSamples) {
      SYNCLINE_ASSIGN_OR_RETURN(std::string shifted, ShiftSamples(bytes, node, shift_ns));
      shifted_files += shifted != bytes ? 1 : 0;
      bytes = std::move(shifted);
    }
    SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(to.Clocks() / path.filename(), bytes));
  }
  if (error) return Cannot("read", from.Clocks(), error);
  if (shifted_files == 0) {
    return absl::NotFoundError(
        absl::StrCat("\"", run.string(), "\" has no clock samples of ", node));
  }
  SYNCLINE_ASSIGN_OR_RETURN(const recording::Recording recording, recording::ReadRecording(copy));
  return clocks::WriteModels(to, recording).status();
}

}  // namespace syncline::selftest
