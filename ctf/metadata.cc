// SPDX-License-Identifier: Apache-2.0
#include "ctf/metadata.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "ctf/bits.h"
#include "ctf/ctf2_parser.h"
#include "ctf/tsdl_parser.h"

namespace syncline::ctf {
namespace {

constexpr uint32_t kPacketMagic = 0x75d11d57;
constexpr size_t kPacketHeaderBytes = 37;
constexpr uint64_t kMetadataBytesMax = uint64_t{256} << 20;  // far above any real one

constexpr const char* kCutShort = "the metadata file is cut short";

struct PacketHeader {
  uint32_t content_bits = 0;
  uint32_t packet_bits = 0;
};

std::optional<bool> IsBigEndian(std::string_view file) {
  if (file.size() < 4) return std::nullopt;
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
  if (LoadBytes(bytes, 4, false) == kPacketMagic) return false;
  if (LoadBytes(bytes, 4, true) == kPacketMagic) return true;
  return std::nullopt;
}

// Of a packet with at least kPacketHeaderBytes.
absl::StatusOr<PacketHeader> HeaderOf(std::string_view packet, bool big) {
  if (IsBigEndian(packet) != big) {
    return absl::InvalidArgumentError("no packet where one must begin,");
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(packet.data());
  PacketHeader header;
  header.content_bits = static_cast<uint32_t>(LoadBytes(bytes + 24, 4, big));
  header.packet_bits = static_cast<uint32_t>(LoadBytes(bytes + 28, 4, big));
  if (bytes[32] != 0 || bytes[33] != 0) {
    return absl::UnimplementedError("a compressed or encrypted packet, which is not supported,");
  }
  if (header.content_bits / 8 < kPacketHeaderBytes || header.packet_bits < header.content_bits) {
    return absl::InvalidArgumentError("impossible packet sizes");
  }
  return header;
}

}  // namespace

uint32_t DepthOf(const Type& type) {
  uint32_t depth = type.element == nullptr ? 0 : type.element->depth;
  for (const Member& member : type.members) depth = std::max(depth, member.type->depth);
  return depth + 1;
}

const ClockClass* Metadata::FindClock(std::string_view name) const {
  for (const ClockClass& clock : clocks) {
    if (clock.name == name) return &clock;
  }
  return nullptr;
}

const StreamType* Metadata::FindStream(uint64_t id) const {
  for (const StreamType& stream : streams) {
    if (stream.id == id) return &stream;
  }
  return nullptr;
}

absl::StatusOr<MetadataText> UnpackMetadata(std::string_view file) {
  MetadataText result;
  const std::optional<bool> first = IsBigEndian(file);
  if (!first) {
    result.text = std::string(file);
    return result;
  }
  for (size_t offset = 0; offset < file.size();) {
    const std::string_view rest = file.substr(offset);
    if (rest.size() < kPacketHeaderBytes) {
      result.cut = kCutShort;
      break;
    }
    const absl::StatusOr<PacketHeader> header = HeaderOf(rest, *first);
    if (!header.ok()) {
      const std::string why =
          absl::StrCat("metadata: ", header.status().message(), " at byte ", offset);
      if (offset == 0) return absl::Status(header.status().code(), why);
      result.cut = absl::StrCat(why, ": what follows there cannot be read");
      break;
    }
    const size_t content = header->content_bits / 8;
    const size_t packet = header->packet_bits / 8;
    const size_t end = std::min(content, rest.size());
    result.text.append(rest.substr(kPacketHeaderBytes, end - kPacketHeaderBytes));
    if (content > rest.size()) result.cut = kCutShort;
    offset += std::min(packet, rest.size());
  }
  return result;
}

absl::StatusOr<std::shared_ptr<const Metadata>> ParseMetadata(std::string_view file) {
  SYNCLINE_ASSIGN_OR_RETURN(const MetadataText unpacked, UnpackMetadata(file));
  SYNCLINE_ASSIGN_OR_RETURN(Metadata metadata,
                            IsCtf2(unpacked.text)
                                ? ParseCtf2(unpacked.text)
                                : ParseTsdl(unpacked.text, {.tolerate_damage = true}));
  if (!unpacked.cut.empty()) metadata.warnings.push_back(unpacked.cut);
  return std::make_shared<const Metadata>(std::move(metadata));
}

absl::StatusOr<std::shared_ptr<const Metadata>> LoadMetadata(const std::filesystem::path& trace) {
  const std::filesystem::path path = trace / "metadata";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return absl::NotFoundError(
        absl::StrCat("\"", trace.string(), "\" is not a CTF trace: no metadata file"));
  }
  SYNCLINE_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, kMetadataBytesMax));
  auto metadata = ParseMetadata(file);
  if (!metadata.ok()) {
    return WithContext(metadata.status(), absl::StrCat("\"", trace.string(), "\""));
  }
  return metadata;
}

}  // namespace syncline::ctf
