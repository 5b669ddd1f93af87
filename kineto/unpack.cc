// SPDX-License-Identifier: Apache-2.0
#include "kineto/unpack.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>

#include "absl/strings/str_cat.h"

namespace syncline::kineto {
namespace {

constexpr std::string_view kGzip = "\x1f\x8b";
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd";
constexpr size_t kPieceBytes = size_t{1} << 20;

}  // namespace

bool IsPacked(std::string_view bytes) {
  return bytes.starts_with(kGzip) || bytes.starts_with(kZstd);
}

absl::StatusOr<Unpacked> Unpack(std::string_view bytes, uint64_t bytes_max) {
  const std::unique_ptr<::archive, decltype(&::archive_read_free)> reader(::archive_read_new(),
                                                                          ::archive_read_free);
  ::archive_entry* entry = nullptr;
  Unpacked unpacked;
  const auto damaged = [&] {
    const char* const reason = ::archive_error_string(reader.get());
    unpacked.damage = reason != nullptr ? reason : "it is damaged";
    return unpacked;
  };
  if (reader == nullptr || ::archive_read_support_filter_gzip(reader.get()) < ARCHIVE_WARN ||
      ::archive_read_support_filter_zstd(reader.get()) < ARCHIVE_WARN ||
      ::archive_read_support_format_raw(reader.get()) != ARCHIVE_OK ||
      ::archive_read_support_format_empty(reader.get()) != ARCHIVE_OK ||
      ::archive_read_open_memory(reader.get(), bytes.data(), bytes.size()) != ARCHIVE_OK) {
    return damaged();
  }
  const int header = ::archive_read_next_header(reader.get(), &entry);
  if (header == ARCHIVE_EOF) return unpacked;
  if (header < ARCHIVE_WARN) return damaged();
  for (;;) {
    const size_t had = unpacked.text.size();
    if (had > bytes_max) {
      return absl::ResourceExhaustedError(
          absl::StrCat("it unpacks to more than ", bytes_max >> 20, " MiB"));
    }
    unpacked.text.resize(had + kPieceBytes);
    const la_ssize_t read =
        ::archive_read_data(reader.get(), unpacked.text.data() + had, kPieceBytes);
    unpacked.text.resize(had + (read > 0 ? static_cast<size_t>(read) : 0));
    if (read < 0) return damaged();
    if (read == 0) return unpacked;
  }
}

}  // namespace syncline::kineto
