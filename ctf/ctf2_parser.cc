// SPDX-License-Identifier: Apache-2.0
#include "ctf/ctf2_parser.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "ctf/ctf2_types.h"

namespace syncline::ctf {
namespace {

constexpr char kSeparator = '\x1e';
constexpr int64_t kSecondsMax = 9'000'000'000;  // as much as ns in 64 bits reach

// Numbers and strings, as CTF 1.8 has them in its metadata.
std::string PlainText(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

class Parser {
 public:
  absl::Status Fragment(const Json& json) {
    const std::optional<std::string> kind = FindText(json, "type");
    if (!kind) return absl::InvalidArgumentError("a fragment must be an object with a type");
    if (FindMember(json, "extensions") != nullptr) {
      return absl::UnimplementedError("it needs an extension that is not known");
    }
    if (!has_preamble_ && *kind != "preamble") {
      return absl::InvalidArgumentError("the first fragment must be the preamble");
    }
    if (*kind == "preamble") return Preamble(json);
    if (*kind == "field-class-alias") return Alias(json);
    if (*kind == "trace-class") return TraceClass(json);
    if (*kind == "clock-class") return Clock(json);
    if (*kind == "data-stream-class") return Stream(json);
    if (*kind == "event-record-class") return Event(json);
    metadata_.warnings.push_back(absl::StrCat("a fragment of type \"", *kind, "\" was ignored"));
    return absl::OkStatus();
  }

  absl::StatusOr<Metadata> Finish() {
    if (!has_preamble_) return absl::InvalidArgumentError("metadata: no preamble");
    for (const StreamType& stream : metadata_.streams) {
      if (!stream.clock.empty() && metadata_.FindClock(stream.clock) == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("metadata: clock class \"", stream.clock, "\" is not declared"));
      }
    }
    return std::move(metadata_);
  }

  void Warn(std::string warning) { metadata_.warnings.push_back(std::move(warning)); }

 private:
  absl::Status Preamble(const Json& json) {
    if (has_preamble_) return absl::InvalidArgumentError("a second preamble");
    has_preamble_ = true;
    if (FindUnsigned(json, "version") != uint64_t{2}) {
      return absl::UnimplementedError("a version other than 2");
    }
    metadata_.major = 2;
    metadata_.minor = 0;
    metadata_.roles_by_name = false;
    const Json* const uuid = FindMember(json, "uuid");
    if (uuid == nullptr) return absl::OkStatus();
    Uuid bytes{};
    bool sound = uuid->is_array() && uuid->size() == bytes.size();
    for (size_t i = 0; sound && i < bytes.size(); ++i) {
      sound = (*uuid)[i].is_number_unsigned() && (*uuid)[i].get<uint64_t>() < 256;
      if (sound) bytes[i] = (*uuid)[i].get<uint8_t>();
    }
    if (!sound) return absl::InvalidArgumentError("its uuid must be 16 bytes");
    metadata_.uuid = bytes;
    return absl::OkStatus();
  }

  absl::Status Alias(const Json& json) {
    const std::optional<std::string> name = FindText(json, "name");
    const Json* const field_class = FindMember(json, "field-class");
    if (!name || field_class == nullptr) {
      return absl::InvalidArgumentError("it must have a name and a field-class");
    }
    return types_.AddAlias(*name, *field_class);
  }

  // The structure of one scope; none when it is absent.
  absl::Status Scope(const Json& json, const char* name, TypePtr* out) {
    const Json* const field_class = FindMember(json, name);
    if (field_class == nullptr) return absl::OkStatus();
    auto type = types_.Parse(*field_class);
    if (!type.ok()) return WithContext(type.status(), name);
    if ((*type)->kind != TypeKind::kStruct) {
      return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" must be a structure"));
    }
    *out = *std::move(type);
    return absl::OkStatus();
  }

  absl::Status TraceClass(const Json& json) {
    if (has_trace_) return absl::InvalidArgumentError("a second trace class");
    has_trace_ = true;
    if (const Json* const environment = FindMember(json, "environment")) {
      for (const auto& [key, value] : environment->items()) {
        if (!value.is_structured()) metadata_.environment[key] = PlainText(value);
      }
    }
    return Scope(json, "packet-header-field-class", &metadata_.packet_header);
  }

  absl::Status Clock(const Json& json) {
    ClockClass clock;
    const std::optional<std::string> id = FindText(json, "id");
    if (!id) return absl::InvalidArgumentError("it must have an id");
    clock.name = *id;
    if (metadata_.FindClock(clock.name) != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("clock \"", *id, "\" is declared twice"));
    }
    clock.description = FindText(json, "description").value_or("");
    clock.uuid = FindText(json, "uid").value_or("");
    clock.frequency = FindUnsigned(json, "frequency").value_or(0);
    if (clock.frequency == 0) return absl::InvalidArgumentError("its frequency must not be zero");
    clock.absolute = FindText(json, "origin") == "unix-epoch";
    if (const Json* const origin = FindMember(json, "origin");
        origin != nullptr && !clock.absolute) {
      clock.origin = origin->dump();
    }
    if (const Json* const offset = FindMember(json, "offset-from-origin")) {
      const Json* const seconds = FindMember(*offset, "seconds");
      if (seconds != nullptr && seconds->is_number_integer()) {
        clock.offset_seconds = seconds->get<int64_t>();
      }
      const uint64_t cycles = FindUnsigned(*offset, "cycles").value_or(0);
      const bool far = clock.offset_seconds > kSecondsMax || clock.offset_seconds < -kSecondsMax;
      if (far || cycles >= clock.frequency) {
        return absl::InvalidArgumentError("its offset-from-origin cannot be");
      }
      clock.offset_cycles = static_cast<int64_t>(cycles);
    }
    metadata_.clocks.push_back(std::move(clock));
    return absl::OkStatus();
  }

  absl::Status Stream(const Json& json) {
    StreamType stream;
    stream.id = FindUnsigned(json, "id").value_or(0);
    if (!streams_.emplace(stream.id, metadata_.streams.size()).second) {
      return absl::InvalidArgumentError(absl::StrCat("id ", stream.id, " is declared twice"));
    }
    stream.clock = FindText(json, "default-clock-class-id").value_or("");
    SYNCLINE_RETURN_IF_ERROR(Scope(json, "packet-context-field-class", &stream.packet_context));
    SYNCLINE_RETURN_IF_ERROR(Scope(json, "event-record-header-field-class", &stream.event_header));
    SYNCLINE_RETURN_IF_ERROR(
        Scope(json, "event-record-common-context-field-class", &stream.event_context));
    metadata_.streams.push_back(std::move(stream));
    return absl::OkStatus();
  }

  absl::Status Event(const Json& json) {
    EventType event;
    event.id = FindUnsigned(json, "id").value_or(0);
    event.stream_id = FindUnsigned(json, "data-stream-class-id").value_or(0);
    event.name = FindText(json, "name").value_or(absl::StrCat("event-", *event.id));
    const auto stream = streams_.find(event.stream_id);
    if (stream == streams_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("its data stream class ", event.stream_id, " is not declared"));
    }
    if (!events_.emplace(event.stream_id, *event.id).second) {
      return absl::InvalidArgumentError(absl::StrCat("id ", *event.id, " is declared twice"));
    }
    Attributes(json, event);
    const absl::Status context = Scope(json, "specific-context-field-class", &event.context);
    if (!context.ok()) return WithContext(context, absl::StrCat("event \"", event.name, "\""));
    const absl::Status payload = Scope(json, "payload-field-class", &event.payload);
    if (!payload.ok()) return WithContext(payload, absl::StrCat("event \"", event.name, "\""));
    metadata_.streams[stream->second].events.push_back(std::move(event));
    return absl::OkStatus();
  }

  // LTTng's own facts, under the names that they have in CTF 1.8.
  static void Attributes(const Json& json, EventType& event) {
    const Json* const attributes = FindMember(json, "attributes");
    const Json* const lttng =
        attributes == nullptr ? nullptr : FindMember(*attributes, "lttng.org,2009");
    if (lttng == nullptr || !lttng->is_object()) return;
    for (const auto& [key, value] : lttng->items()) {
      if (value.is_structured()) continue;
      const std::string name = key == "log-level" ? "loglevel"
                               : key == "emf-uri" ? "model.emf.uri"
                                                  : key;
      event.attributes[name] = PlainText(value);
    }
  }

  Metadata metadata_;
  FieldClassParser types_;
  std::map<uint64_t, size_t> streams_;              // by id: place in metadata_.streams
  std::set<std::pair<uint64_t, uint64_t>> events_;  // stream id, id
  bool has_preamble_ = false;
  bool has_trace_ = false;
};

}  // namespace

bool IsCtf2(std::string_view text) { return !text.empty() && text[0] == kSeparator; }

absl::StatusOr<Metadata> ParseCtf2(std::string_view text) {
  Parser parser;
  size_t number = 0;
  for (size_t at = text.find(kSeparator); at != text.npos;) {
    const size_t next = text.find(kSeparator, at + 1);
    const std::string_view fragment = text.substr(at + 1, next - at - 1);
    at = next;
    if (fragment.find_first_not_of(" \t\r\n") == fragment.npos) continue;
    ++number;
    const Json json = Json::parse(fragment, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) {
      if (next == text.npos && number > 1) {
        parser.Warn(absl::StrCat("metadata ends inside fragment ", number,
                                 "; events it describes are unknown"));
        break;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("metadata: fragment ", number, " is not JSON"));
    }
    const absl::Status status = parser.Fragment(json);
    if (!status.ok()) {
      return WithContext(status, absl::StrCat("metadata: fragment ", number, " (",
                                              FindText(json, "type").value_or("no type"), ")"));
    }
  }
  return parser.Finish();
}

}  // namespace syncline::ctf
