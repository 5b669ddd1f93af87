// SPDX-License-Identifier: Apache-2.0
#include "kineto/unpack.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"

namespace syncline::kineto {
namespace {

constexpr std::string_view kGzip = "\x1f\x8b";
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd";
constexpr size_t kPieceBytes = size_t{1} << 20;

using Reader = std::unique_ptr<::archive, decltype(&::archive_read_free)>;

int Open(std::string_view bytes, const Reader& reader) {
  ::archive_entry* entry = nullptr;
  if (reader == nullptr || ::archive_read_support_filter_gzip(reader.get()) < ARCHIVE_WARN ||
      ::archive_read_support_filter_zstd(reader.get()) < ARCHIVE_WARN ||
      ::archive_read_support_format_raw(reader.get()) != ARCHIVE_OK ||
      ::archive_read_support_format_empty(reader.get()) != ARCHIVE_OK ||
      ::archive_read_open_memory(reader.get(), bytes.data(), bytes.size()) != ARCHIVE_OK) {
    return ARCHIVE_FATAL;
  }
  return ::archive_read_next_header(reader.get(), &entry);
}

}  // namespace

bool IsPacked(std::string_view bytes) {
  return bytes.starts_with(kGzip) || bytes.starts_with(kZstd);
}

absl::StatusOr<Unpacked> Unpack(std::string_view bytes, uint64_t bytes_max) {
  const Reader reader(::archive_read_new(), ::archive_read_free);
  Unpacked unpacked;
  const auto damaged = [&] {
    const char* const reason = ::archive_error_string(reader.get());
    unpacked.damage = reason != nullptr ? reason : "it is damaged";
    return unpacked;
  };
  const int header = Open(bytes, reader);
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

std::string UnpackHead(std::string_view bytes) {
  const Reader reader(::archive_read_new(), ::archive_read_free);
  if (Open(bytes, reader) < ARCHIVE_WARN) return "";
  std::string head(kHeadBytes, '\0');
  size_t size = 0;
  // Of a piece that cannot be read to its end nothing is given.
  constexpr size_t kSmallPiece = 512;
  for (la_ssize_t read = 1; read > 0 && size < head.size();) {
    const size_t wanted = std::min(kSmallPiece, head.size() - size);
    read = ::archive_read_data(reader.get(), head.data() + size, wanted);
    if (read > 0) size += static_cast<size_t>(read);
  }
  head.resize(size);
  return head;
}

}  // namespace syncline::kineto
