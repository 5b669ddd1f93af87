// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/search_archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace syncline::pack {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
// Of *.samples and *.tuples: magic, version, and two names of up to 255 bytes. Behind them are
// clock readings alone.
constexpr uint64_t kClockHeaderBytes = 8 + 2 + 2 * (2 + 255);

// From which byte on a member is a file of numbers.
uint64_t NumbersFrom(std::string_view member) {
  const bool clocks = member.ends_with(".samples") || member.ends_with(".tuples");
  if (clocks) return kClockHeaderBytes;
  const bool text = member.ends_with(".json") || member.ends_with(".txt") ||
                    member.ends_with("/metadata") || member.ends_with(".names") ||
                    member.ends_with(".block");
  return text ? std::numeric_limits<uint64_t>::max() : 0;
}

absl::Status Unreadable(::archive* reader) {
  const char* const reason = ::archive_error_string(reader);
  return absl::DataLossError(absl::StrCat("the finished pack cannot be read: ",
                                          reason != nullptr ? reason : "no reason is known"));
}

absl::StatusOr<std::optional<std::string>> SearchMember(::archive* reader, std::string_view member,
                                                        const Leftovers& leftovers,
                                                        const std::stop_token& interrupt) {
  if (auto found = leftovers.Find(member, false)) return found;
  LeftoverScan scan(&leftovers, NumbersFrom(member));
  std::vector<char> piece(kPieceBytes);
  for (;;) {
    if (interrupt.stop_requested()) return absl::CancelledError("interrupted");
    const la_ssize_t bytes = ::archive_read_data(reader, piece.data(), piece.size());
    if (bytes < 0) return Unreadable(reader);
    if (bytes == 0) return scan.Finish();
    if (auto found = scan.Feed({piece.data(), static_cast<size_t>(bytes)})) return found;
  }
}

}  // namespace

absl::StatusOr<std::optional<Leftover>> SearchArchive(const std::filesystem::path& file,
                                                      const Leftovers& leftovers,
                                                      const std::stop_token& interrupt) {
  const std::unique_ptr<::archive, decltype(&::archive_read_free)> reader(::archive_read_new(),
                                                                          ::archive_read_free);
  if (reader == nullptr || ::archive_read_support_filter_all(reader.get()) < ARCHIVE_WARN ||
      ::archive_read_support_format_tar(reader.get()) != ARCHIVE_OK ||
      ::archive_read_open_filename(reader.get(), file.c_str(), kPieceBytes) != ARCHIVE_OK) {
    return absl::DataLossError("the finished pack cannot be read");
  }
  for (;;) {
    ::archive_entry* entry = nullptr;
    const int status = ::archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) return std::nullopt;
    if (status != ARCHIVE_OK) return Unreadable(reader.get());
    const char* const path = ::archive_entry_pathname(entry);
    const std::string member = path != nullptr ? path : "";
    SYNCLINE_ASSIGN_OR_RETURN(std::optional<std::string> found,
                              SearchMember(reader.get(), member, leftovers, interrupt));
    if (found.has_value()) return Leftover{*std::move(found), member};
  }
}

}  // namespace syncline::pack
