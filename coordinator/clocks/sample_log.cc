// SPDX-License-Identifier: Apache-2.0
#include "coordinator/clocks/sample_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "clocksync/sample_file.h"
#include "clocksync/thinning.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::clocks {
namespace {

using clocksync::ProbeSample;

// The newest are kept whole.
constexpr int64_t kCellsWhole = 8;
constexpr int64_t kCellsToThinMin = 8;

std::string Encoded(std::span<const ProbeSample> samples) {
  std::string bytes;
  for (const ProbeSample& sample : samples) clocksync::AppendSample(sample, &bytes);
  return bytes;
}

}  // namespace

SampleLog::SampleLog(std::filesystem::path path, std::string_view local, std::string_view remote)
    : path_(std::move(path)), header_(clocksync::EncodeSamplesHeader(local, remote)) {}

absl::Status SampleLog::Append(std::span<const ProbeSample> samples) {
  if (path_.empty()) return absl::OkStatus();
  absl::Status status = Write(samples);
  if (!status.ok() || samples.empty() || !IsRipe(samples.back())) return status;
  status = Thin(clocksync::ThinningCell(samples.back()));
  // What could not be thinned stays whole: the samples are all there.
  if (!status.ok()) whole_from_bytes_ = size_bytes_;
  return status;
}

absl::Status SampleLog::Write(std::span<const ProbeSample> samples) {
  const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("Cannot open ", path_.string()));
  const absl::Cleanup close = [fd] { ::close(fd); };
  struct stat file {};
  const bool lost = ::fstat(fd, &file) != 0 || file.st_size < size_bytes_;
  if (lost) size_bytes_ = 0;
  const bool first = size_bytes_ == 0;
  // Also what a failed write may have left of itself.
  if (file.st_size != size_bytes_ && ::ftruncate(fd, size_bytes_) != 0) {
    return ErrnoStatus(errno, absl::StrCat("Cannot cut ", path_.string()));
  }
  const std::string bytes = first ? header_ + Encoded(samples) : Encoded(samples);
  SYNCLINE_RETURN_IF_ERROR(AppendWhole(fd, bytes, path_));
  const int64_t begin_bytes = first ? static_cast<int64_t>(header_.size()) : size_bytes_;
  size_bytes_ += static_cast<int64_t>(bytes.size());
  if (first) whole_from_bytes_ = begin_bytes;
  // The first there are, or a clock that went back: cells begin anew.
  if (!samples.empty() && (begin_bytes == whole_from_bytes_ ||
                           clocksync::ThinningCell(samples.front()) < whole_from_cell_)) {
    whole_from_bytes_ = begin_bytes;
    whole_from_cell_ = clocksync::ThinningCell(samples.front());
  }
  if (!lost) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path_.string(), " was removed or cut while samples were written to it"));
}

bool SampleLog::IsRipe(const ProbeSample& newest) const {
  return clocksync::ThinningCell(newest) >= whole_from_cell_ + kCellsToThinMin + kCellsWhole &&
         2 * (size_bytes_ - whole_from_bytes_) >= whole_from_bytes_;
}

absl::Status SampleLog::Thin(int64_t newest_cell) {
  SYNCLINE_ASSIGN_OR_RETURN(std::string file, ReadFile(path_));
  file.resize(std::min(file.size(), static_cast<size_t>(size_bytes_)));
  const auto thinned_bytes = static_cast<size_t>(whole_from_bytes_);
  if (file.size() < thinned_bytes) return absl::DataLossError(path_.string() + " was cut");
  SYNCLINE_ASSIGN_OR_RETURN(const clocksync::Edge edge,
                            clocksync::DecodeSamples(header_ + file.substr(thinned_bytes)));
  if (edge.damage.records > 0) return absl::DataLossError(path_.string() + " was damaged");
  const std::span<const ProbeSample> all = edge.samples;
  const auto rest = std::find_if(all.begin(), all.end(), [&](const ProbeSample& sample) {
    return clocksync::ThinningCell(sample) > newest_cell - kCellsWhole;
  });
  const auto old = static_cast<size_t>(rest - all.begin());
  file.resize(thinned_bytes);
  file += Encoded(clocksync::Thinned(all.first(old)));
  const auto whole_from = static_cast<int64_t>(file.size());
  file += Encoded(all.subspan(old));
  SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(path_, file));
  whole_from_bytes_ = whole_from;
  size_bytes_ = static_cast<int64_t>(file.size());
  if (rest != all.end()) whole_from_cell_ = clocksync::ThinningCell(*rest);
  return absl::OkStatus();
}

}  // namespace syncline::clocks
