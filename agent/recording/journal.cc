// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/journal.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "common/utf8.h"
#include "proto/texts.h"

namespace syncline::agent {
namespace {

constexpr uint64_t kJournalBytesMax = 64 << 20;

// Where the last whole line ends. A kill or a full disk may have left a torn one behind it; a line
// written after that would be part of it, and damage in the middle.
off_t EndOfWholeLines(int fd, off_t size) {
  char last = '\n';
  if (size > 0 && ::pread(fd, &last, 1, size - 1) != 1) return size;
  while (size > 0 && last != '\n') {
    --size;
    if (size > 0 && ::pread(fd, &last, 1, size - 1) != 1) return size;
  }
  return size;
}

}  // namespace

void AddToJournal(const journal::Entry& change, journal::Entry* sum) {
  if (change.has_prepared()) sum->clear_prepared();
  if (change.has_started()) sum->clear_started();
  if (change.has_stopped()) sum->clear_stopped();
  sum->MergeFrom(change);
}

absl::StatusOr<std::string> EncodeJournalEntry(const journal::Entry& entry) {
  std::string line;
  journal::Entry repaired = entry;  // one bad byte would make the whole line unreadable
  RewriteTexts(&repaired, &RepairedUtf8);
  const auto status = google::protobuf::util::MessageToJsonString(repaired, &line);
  if (!status.ok()) {
    return absl::InternalError(absl::StrCat("Cannot write a journal entry: ", status.ToString()));
  }
  line.push_back('\n');
  return line;
}

absl::StatusOr<journal::Entry> DecodeJournal(std::string_view bytes) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  journal::Entry sum;
  for (int line_number = 1; !bytes.empty(); ++line_number) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) break;  // torn by a kill: it was never acted upon
    journal::Entry entry;
    const auto status = google::protobuf::util::JsonStringToMessage(
        google::protobuf::StringPiece(bytes.data(), end), &entry, options);
    if (!status.ok()) {
      return absl::DataLossError(absl::StrCat("Journal line ", line_number, " does not parse"));
    }
    AddToJournal(entry, &sum);
    bytes.remove_prefix(end + 1);
  }
  return sum;
}

absl::Status Journal::Append(const journal::Entry& entry) const {
  SYNCLINE_ASSIGN_OR_RETURN(const std::string line, EncodeJournalEntry(entry));
  const int fd = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return ErrnoStatus(errno, absl::StrCat("Cannot open journal \"", path_.string(), "\""));
  const off_t size = ::lseek(fd, 0, SEEK_END);
  const off_t whole = EndOfWholeLines(fd, size);
  if (whole != size && ::ftruncate(fd, whole) != 0) {
    const int error_number = errno;
    ::close(fd);
    return ErrnoStatus(error_number,
                       absl::StrCat("Cannot repair journal \"", path_.string(), "\""));
  }
  const ssize_t written = ::write(fd, line.data(), line.size());
  const bool synced = written == static_cast<ssize_t>(line.size()) && ::fdatasync(fd) == 0;
  const int error_number =
      written >= 0 && written < static_cast<ssize_t>(line.size()) ? ENOSPC : errno;
  ::close(fd);
  if (synced) return absl::OkStatus();
  return ErrnoStatus(error_number, absl::StrCat("Cannot write journal \"", path_.string(), "\""));
}

absl::StatusOr<journal::Entry> Journal::Read() const {
  SYNCLINE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path_, kJournalBytesMax));
  auto entry = DecodeJournal(bytes);
  if (!entry.ok()) return WithContext(entry.status(), path_.string());
  return entry;
}

}  // namespace syncline::agent
