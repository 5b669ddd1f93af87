#include "coordinator/clocks/sample_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "clocksync/sample_file.h"
#include "clocksync/thinning.h"
#include "common/status.h"

namespace syncline::clocks {
namespace {

using clocksync::ProbeSample;

// Thinned are so many cells, once so many have come after them.
constexpr int64_t kCellsAtOnce = 8;
constexpr int64_t kCellsWhole = 8;

int64_t CellOf(const ProbeSample& sample) { return clocksync::ThinningCell(sample.t1_local_ns); }

absl::Status WriteAt(int fd, int64_t offset, std::string_view bytes,
                     const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, absl::StrCat("Cannot write to ", path.string()));
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadAt(int fd, int64_t offset, int64_t size_bytes,
                                   const std::filesystem::path& path) {
  std::string bytes(static_cast<size_t>(size_bytes), '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got =
        ::pread(fd, bytes.data() + have, bytes.size() - have, offset + static_cast<int64_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, absl::StrCat("Cannot read ", path.string()));
    if (got == 0) return absl::DataLossError(absl::StrCat(path.string(), " was cut"));
    have += static_cast<size_t>(got);
  }
  return bytes;
}

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
  const bool first = size_bytes_ == 0;
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | (first ? O_TRUNC : 0);
  const int fd = ::open(path_.c_str(), flags, 0644);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("Cannot open ", path_.string()));
  const absl::Cleanup close = [fd] { ::close(fd); };
  // What a failed write left of itself is overwritten by the next.
  const std::string bytes = first ? header_ + Encoded(samples) : Encoded(samples);
  SYNCLINE_RETURN_IF_ERROR(WriteAt(fd, size_bytes_, bytes, path_));
  if (first) whole_from_bytes_ = static_cast<int64_t>(header_.size());
  const int64_t begin_bytes = first ? whole_from_bytes_ : size_bytes_;
  size_bytes_ += static_cast<int64_t>(bytes.size());
  if (samples.empty()) return absl::OkStatus();
  // The first there are, or a clock that went back: cells begin anew.
  if (begin_bytes == whole_from_bytes_ || CellOf(samples.front()) < whole_from_cell_) {
    whole_from_bytes_ = begin_bytes;
    whole_from_cell_ = CellOf(samples.front());
  }
  if (CellOf(samples.back()) < whole_from_cell_ + kCellsAtOnce + kCellsWhole) {
    return absl::OkStatus();
  }
  return Thin(fd);
}

absl::Status SampleLog::Thin(int fd) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::string bytes,
                            ReadAt(fd, whole_from_bytes_, size_bytes_ - whole_from_bytes_, path_));
  SYNCLINE_ASSIGN_OR_RETURN(const clocksync::Edge edge, clocksync::DecodeSamples(header_ + bytes));
  const std::span<const ProbeSample> all = edge.samples;
  const auto rest = std::find_if(all.begin(), all.end(), [&](const ProbeSample& sample) {
    return CellOf(sample) >= whole_from_cell_ + kCellsAtOnce;
  });
  const auto old = static_cast<size_t>(rest - all.begin());
  const std::string thin = Encoded(clocksync::Thinned(all.first(old)));
  const std::string whole = Encoded(all.subspan(old));
  // Killed before the cut, it leaves newer samples twice: that is noticed as a clock that went
  // back.
  SYNCLINE_RETURN_IF_ERROR(WriteAt(fd, whole_from_bytes_, thin + whole, path_));
  whole_from_bytes_ += static_cast<int64_t>(thin.size());
  size_bytes_ = whole_from_bytes_ + static_cast<int64_t>(whole.size());
  if (rest != all.end()) whole_from_cell_ = CellOf(*rest);
  if (::ftruncate(fd, size_bytes_) != 0) {
    return ErrnoStatus(errno, absl::StrCat("Cannot cut ", path_.string()));
  }
  return absl::OkStatus();
}

}  // namespace syncline::clocks
