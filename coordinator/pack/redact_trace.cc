// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/pack/public_names.h"
#include "coordinator/pack/redact_files.h"
#include "ctf/metadata.h"
#include "ctf/packet_walker.h"
#include "ctf/reader.h"
#include "ctf/tsdl_writer.h"

namespace syncline::pack {
namespace {

constexpr size_t kUuidAt = 4;  // in a packet: behind the magic number

bool IsWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

absl::Status NotOurs(std::string_view what) {
  return absl::UnimplementedError(
      absl::StrCat("\"", AbslView(what),
                   "\" is not of Syncline's own events: what others write "
                   "cannot be redacted"));
}

// Every word and every text of `tsdl`, which no value of the recording is in.
absl::Status CheckWords(std::string_view tsdl) {
  for (size_t at = 0; at < tsdl.size();) {
    const size_t begin = at;
    if (tsdl[at] == '"') {
      const size_t end = tsdl.find('"', at + 1);
      if (end == std::string_view::npos) return NotOurs(tsdl.substr(at));
      const std::string_view text = tsdl.substr(at + 1, end - at - 1);
      if (!IsOurEvent(text) && !IsTraceWord(text) && text != "Monotonic Clock")
        return NotOurs(text);
      at = end + 1;
      continue;
    }
    while (at < tsdl.size() && IsWord(tsdl[at])) ++at;
    if (at == begin) {
      ++at;
      continue;
    }
    const std::string_view word = tsdl.substr(begin, at - begin);
    const bool number = std::all_of(word.begin(), word.end(), [](char c) { return c <= '9'; });
    if (!number && !IsTraceWord(word)) return NotOurs(word);
  }
  return absl::OkStatus();
}

absl::Status NotAsOurs() {
  return absl::UnimplementedError("its fields do not lie as Syncline's own events do");
}

// Between fields that begin at whole bytes there is nothing that is not one of them; and no text.
absl::Status CheckNumbers(const ctf::Type* type) {
  if (type == nullptr) return absl::OkStatus();
  constexpr uint32_t kByte = 8;
  if (type->alignment > kByte || type->unit_bytes != 1 || type->is_text ||
      type->kind == ctf::TypeKind::kString || type->kind == ctf::TypeKind::kBlob ||
      type->kind == ctf::TypeKind::kSequenceBlob) {
    return NotAsOurs();
  }
  for (const ctf::Member& member : type->members) {
    SYNCLINE_RETURN_IF_ERROR(CheckNumbers(member.type.get()));
  }
  return CheckNumbers(type->element.get());
}

// A text of ours is a field of its event, in no array and in nothing else of which a reader may
// leave out a part; and none is spelled in small numbers.
absl::Status CheckPayload(const ctf::Type* payload) {
  if (payload == nullptr) return absl::OkStatus();
  constexpr uint32_t kByte = 8;
  constexpr uint32_t kValueBits = 64;
  if (payload->kind != ctf::TypeKind::kStruct || payload->alignment > kByte) return NotAsOurs();
  for (const ctf::Member& member : payload->members) {
    const ctf::Type& type = *member.type;
    if (type.kind == ctf::TypeKind::kString && type.unit_bytes == 1) continue;
    SYNCLINE_RETURN_IF_ERROR(CheckNumbers(&type));
    if (type.element != nullptr && type.element->size_bits != kValueBits) return NotAsOurs();
  }
  return absl::OkStatus();
}

absl::Status CheckTypes(const ctf::Metadata& metadata) {
  SYNCLINE_RETURN_IF_ERROR(CheckNumbers(metadata.packet_header.get()));
  const ctf::Type* const header = metadata.packet_header.get();
  if (header == nullptr || header->members.size() < 2 || header->members[0].name != "magic" ||
      header->members[1].name != "uuid" || !metadata.uuid.has_value()) {
    return absl::UnimplementedError("its packets do not begin as LTTng's do");
  }
  for (const ctf::StreamType& stream : metadata.streams) {
    for (const ctf::TypePtr& type :
         {stream.packet_context, stream.event_header, stream.event_context}) {
      SYNCLINE_RETURN_IF_ERROR(CheckNumbers(type.get()));
    }
    for (const ctf::EventType& event : stream.events) {
      SYNCLINE_RETURN_IF_ERROR(CheckNumbers(event.context.get()));
      SYNCLINE_RETURN_IF_ERROR(CheckPayload(event.payload.get()));
    }
  }
  return absl::OkStatus();
}

bool IsNumber(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// What a merge asks a trace about itself; all else is left out: the program's name, the machine's
// product_uuid, paths, the session's name, the date.
std::map<std::string, std::string> Environment(const std::map<std::string, std::string>& from,
                                               Pseudonyms* names) {
  std::map<std::string, std::string> to;
  for (const auto& [key, value] : from) {
    const bool number = key == "tracer_major" || key == "tracer_minor" ||
                        key == "tracer_patchlevel" || key == "architecture_bit_width" ||
                        key == "vpid";
    uint32_t uid = 0;
    if (key == "domain" || key == "tracer_name" || key == "tracer_buffering_scheme") {
      to[key] = names->Word(value);
    } else if (number && IsNumber(value)) {
      to[key] = value;
    } else if (key == "tracer_buffering_id" && absl::SimpleAtoi(value, &uid)) {
      to[key] = absl::StrCat(names->Uid(uid));
    } else if (key == "hostname" || key == "vpid_datetime") {
      to[key] = names->Plain(value);
    } else {
      names->LeaveOut(value);
    }
  }
  return to;
}

ctf::Uuid OtherUuid(const ctf::Uuid& uuid, Pseudonyms* names) {
  const std::string text = names->Uuid(ctf::UuidText(uuid));
  ctf::Uuid other{};
  size_t nibble = 0;
  for (const char c : text) {
    if (c == '-') continue;
    const int value = c <= '9' ? c - '0' : c - 'a' + 10;
    other[nibble / 2] = static_cast<uint8_t>(other[nibble / 2] * 16 + value);
    ++nibble;
  }
  return other;
}

bool IsDamage(LossReason reason) {
  return reason == LossReason::kCorruptPacket || reason == LossReason::kTruncated ||
         reason == LossReason::kUnreadable || reason == LossReason::kUnknownEvent;
}

absl::Status RefuseDamage(std::span<const Loss> losses) {
  for (const Loss& loss : losses) {
    if (IsDamage(loss.reason)) {
      return absl::DataLossError(
          absl::StrCat("it is damaged, and names may stand where nothing can be read: ",
                       LossReasonName(loss.reason)));
    }
  }
  return absl::OkStatus();
}

// The texts of one packet's events, where they stand.
absl::Status RedactEvents(const std::shared_ptr<const ctf::TraceLayout>& layout,
                          std::span<uint8_t> packet, Pseudonyms* names) {
  const auto cursor = ctf::MakeCursor(layout, std::make_unique<ctf::MemorySource>(packet), {});
  std::vector<FieldValue> values;
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const std::span<const EventRecord> batch, cursor->NextBatch());
    if (batch.empty()) break;
    for (const EventRecord& record : batch) {
      if (!cursor->Decode(record, &values)) return absl::DataLossError("an event is damaged");
      for (const FieldValue& value : values) {
        if (value.type == FieldType::kBlob) return NotOurs(record.event_class->name);
        if (value.type != FieldType::kString || value.text.empty()) continue;
        const bool address = record.event_class->name == "syncline_net:connection";
        const std::string made = address ? names->Ip(value.text) : names->Name(value.text);
        const auto* const at = reinterpret_cast<const uint8_t*>(value.text.data());
        if (made.size() != value.text.size() || at < packet.data() ||
            at + made.size() > packet.data() + packet.size()) {
          return absl::InternalError("a text does not lie in its packet");
        }
        std::copy(made.begin(), made.end(), packet.begin() + (at - packet.data()));
      }
    }
  }
  return RefuseDamage(cursor->losses());
}

}  // namespace

absl::StatusOr<std::string> RedactMetadata(const ctf::Metadata& metadata, Pseudonyms* names) {
  if (!metadata.warnings.empty()) return absl::DataLossError("it is damaged");
  SYNCLINE_RETURN_IF_ERROR(CheckTypes(metadata));
  ctf::Metadata made = metadata;
  made.environment.clear();
  made.uuid.reset();
  for (ctf::ClockClass& clock : made.clocks) {
    clock.uuid.clear();
    if (clock.description != "Monotonic Clock") clock.description.clear();
  }
  for (ctf::StreamType& stream : made.streams) {
    for (ctf::EventType& event : stream.events) {
      std::erase_if(event.attributes, [](const auto& entry) {
        return entry.first != "loglevel" || !IsNumber(entry.second);
      });
    }
  }
  SYNCLINE_ASSIGN_OR_RETURN(const std::string words, ctf::WriteTsdl(made));
  SYNCLINE_RETURN_IF_ERROR(CheckWords(words));
  made.environment = Environment(metadata.environment, names);
  made.uuid = OtherUuid(*metadata.uuid, names);
  for (size_t i = 0; i < made.clocks.size(); ++i) {
    const std::string& uuid = metadata.clocks[i].uuid;
    if (!uuid.empty()) made.clocks[i].uuid = names->Uuid(uuid);
  }
  return ctf::WriteTsdl(made);
}

absl::Status RedactStream(const std::shared_ptr<const ctf::TraceLayout>& layout,
                          ctf::ByteSource* source, Pseudonyms* names, const Sink& sink) {
  SYNCLINE_RETURN_IF_ERROR(CheckTypes(*layout->metadata));
  const ctf::Uuid uuid = OtherUuid(*layout->metadata->uuid, names);
  ctf::PacketWalker walker(*layout, *source, "");
  std::vector<uint8_t> packet;
  uint64_t end = 0;
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const std::optional<ctf::Packet> found, walker.Next());
    SYNCLINE_RETURN_IF_ERROR(RefuseDamage(walker.losses()));
    if (!found) break;
    if (found->offset != end || found->open_ended || found->cut) {
      return absl::DataLossError(
          "it has a packet that was never finished, and names may stand where nothing can be read");
    }
    SYNCLINE_ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes,
                              source->Read(found->offset, found->bytes));
    const uint64_t content = (found->content_bits + 7) / 8;
    if (bytes.size() != found->bytes || content > bytes.size() || content < kUuidAt + uuid.size()) {
      return absl::DataLossError("a packet is cut");
    }
    packet.assign(bytes.begin(), bytes.end());
    SYNCLINE_RETURN_IF_ERROR(RedactEvents(layout, packet, names));
    std::fill(packet.begin() + static_cast<ptrdiff_t>(content), packet.end(), uint8_t{0});
    std::copy(uuid.begin(), uuid.end(), packet.begin() + kUuidAt);
    SYNCLINE_RETURN_IF_ERROR(sink(packet));
    end = found->offset + found->bytes;
  }
  if (end != source->size()) return absl::DataLossError("it does not end with a packet");
  return absl::OkStatus();
}

}  // namespace syncline::pack
