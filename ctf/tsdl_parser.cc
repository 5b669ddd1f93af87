// SPDX-License-Identifier: Apache-2.0
#include "ctf/tsdl_parser.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "ctf/tsdl_lexer.h"
#include "ctf/tsdl_types.h"

namespace syncline::ctf {
namespace {

std::optional<Uuid> ParseUuid(std::string_view text) {
  Uuid uuid{};
  size_t digits = 0;
  for (const char c : text) {
    if (c == '-') continue;
    if (!std::isxdigit(static_cast<unsigned char>(c)) || digits >= 32) return std::nullopt;
    const int value = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    uuid[digits / 2] = static_cast<uint8_t>(uuid[digits / 2] << 4 | value);
    ++digits;
  }
  return digits == 32 ? std::optional<Uuid>(uuid) : std::nullopt;
}

bool IsTrue(const TsdlValue& value) {
  const std::string text = absl::AsciiStrToLower(value.AsText());
  return text == "true" || text == "1";
}

class TsdlParser {
 public:
  TsdlParser(std::vector<Token> tokens, const TsdlOptions& options)
      : tokens_(std::move(tokens)), types_(tokens_), is_tolerant_(options.tolerate_damage) {}

  absl::StatusOr<Metadata> Run() {
    absl::Status first_error;
    while (!tokens_.AtEnd()) {
      const Token where = tokens_.Peek();
      const size_t place = tokens_.place();
      const absl::Status status = Declaration();
      if (status.ok()) continue;
      const bool was_at_end = tokens_.AtEnd();
      // Without a clock, times would be others.
      const bool is_vital = where.text == "trace" || (where.text == "clock" && !was_at_end);
      if (!is_tolerant_ || is_vital) return status;
      is_cut_ = true;
      types_.LeaveScopes();
      if (tokens_.LeaveOut(place)) {
        metadata_.warnings.push_back(
            absl::StrCat(status.message(), ": what is declared there is unknown"));
        first_error.Update(status);
        continue;
      }
      if (!was_at_end) return status;
      metadata_.warnings.push_back(
          absl::StrCat("metadata ends inside the declaration that begins at line ", where.line,
                       "; events and streams that are described behind it are unknown"));
    }
    SYNCLINE_RETURN_IF_ERROR(Finish());
    if (metadata_.streams.empty() && !first_error.ok()) return first_error;
    for (const std::string& unknown : types_.unknown()) {
      metadata_.warnings.push_back(
          absl::StrCat(unknown, ", which CTF 1.8 does not know: what it says is not heeded"));
    }
    return std::move(metadata_);
  }

 private:
  using Assign = absl::Status (TsdlParser::*)(const std::string& key, const TsdlValue& value);
  using AssignType = absl::Status (TsdlParser::*)(const std::string& key, TypePtr type);

  absl::Status Declaration() {
    if (types_.AtTypeDeclaration()) return types_.ParseTypeDeclaration();
    if (tokens_.TrySymbol(";")) return absl::OkStatus();
    const Token where = tokens_.Peek();
    SYNCLINE_ASSIGN_OR_RETURN(const std::string word, tokens_.ExpectName());
    if (word == "trace") {
      if (has_trace_) return TsdlError(where.line, where.column, "a second trace block");
      has_trace_ = true;
      return Block(&TsdlParser::TraceValue, &TsdlParser::TraceType);
    }
    if (word == "env") return Block(&TsdlParser::EnvironmentValue, &TsdlParser::NoType);
    if (word == "callsite") return Block(&TsdlParser::IgnoredValue, &TsdlParser::NoType);
    if (word == "clock") return ClockBlock();
    if (word == "stream") return StreamBlock(where);
    if (word == "event") return EventBlock(where);
    return TsdlError(where.line, where.column,
                     absl::StrCat("unknown declaration \"", word,
                                  "\": expected trace, env, clock, stream, event or a type"));
  }

  // "{ key = value; key := type; type declarations }" with a scope of its own, then ";".
  absl::Status Block(Assign assign, AssignType assign_type) {
    SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol("{"));
    types_.PushScope();
    while (!tokens_.TrySymbol("}")) {
      if (types_.AtTypeDeclaration()) {
        SYNCLINE_RETURN_IF_ERROR(types_.ParseTypeDeclaration());
        continue;
      }
      where_ = tokens_.Peek();
      SYNCLINE_ASSIGN_OR_RETURN(const std::string key, tokens_.ExpectPath());
      if (tokens_.TrySymbol(":=")) {
        SYNCLINE_ASSIGN_OR_RETURN(TypePtr type, types_.ParseSpecifier());
        SYNCLINE_RETURN_IF_ERROR((this->*assign_type)(key, std::move(type)));
      } else {
        SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol("="));
        SYNCLINE_ASSIGN_OR_RETURN(const TsdlValue value, types_.ParseValue());
        SYNCLINE_RETURN_IF_ERROR((this->*assign)(key, value));
      }
      SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol(";"));
    }
    types_.PopScope();
    return tokens_.ExpectSymbol(";");
  }

  absl::Status Error(std::string_view message) const {
    return TsdlError(where_.line, where_.column, message);
  }

  absl::Status NoType(const std::string& key, TypePtr) {
    return Error(absl::StrCat("\"", key, "\" takes a value, not a type"));
  }
  absl::Status UnknownType(std::string_view what, const std::string& key) {
    types_.NoteUnknown(what, key);
    return absl::OkStatus();
  }
  absl::Status IgnoredValue(const std::string&, const TsdlValue&) { return absl::OkStatus(); }

  absl::Status ExpectUnsigned(const std::string& key, const TsdlValue& value) const {
    if (value.kind == TsdlValue::Kind::kInteger && !value.negative) return absl::OkStatus();
    return Error(absl::StrCat("\"", key, "\" must be a number"));
  }

  absl::Status SetType(const std::string& key, TypePtr type, TypePtr& slot) const {
    if (type->kind != TypeKind::kStruct)
      return Error(absl::StrCat("\"", key, "\" must be a struct"));
    if (slot != nullptr) return Error(absl::StrCat("\"", key, "\" is declared twice"));
    slot = std::move(type);
    return absl::OkStatus();
  }

  absl::Status TraceValue(const std::string& key, const TsdlValue& value) {
    if (key == "major" || key == "minor") {
      SYNCLINE_RETURN_IF_ERROR(ExpectUnsigned(key, value));
      (key == "major" ? metadata_.major : metadata_.minor) = static_cast<uint32_t>(value.magnitude);
      if (key == "major" && value.magnitude != 1) return Error("only CTF 1 is written in TSDL");
    } else if (key == "uuid") {
      metadata_.uuid = ParseUuid(value.text);
      if (!metadata_.uuid) return Error("this uuid is malformed");
    } else if (key == "byte_order") {
      if (value.text == "le") {
        metadata_.byte_order = ByteOrder::kLittle;
      } else if (value.text == "be" || value.text == "network") {
        metadata_.byte_order = ByteOrder::kBig;
      } else {
        return Error("a trace's byte_order must be le or be");
      }
      has_byte_order_ = true;
    }
    return absl::OkStatus();
  }
  absl::Status TraceType(const std::string& key, TypePtr type) {
    if (key != "packet.header") return UnknownType("the trace", key);
    return SetType(key, std::move(type), metadata_.packet_header);
  }

  absl::Status EnvironmentValue(const std::string& key, const TsdlValue& value) {
    metadata_.environment[key] = value.AsText();
    return absl::OkStatus();
  }

  absl::Status ClockBlock() {
    clock_ = ClockClass{};
    const Token where = tokens_.Peek();
    SYNCLINE_RETURN_IF_ERROR(Block(&TsdlParser::ClockValue, &TsdlParser::NoType));
    if (clock_.name.empty()) return TsdlError(where.line, where.column, "a clock needs a name");
    if (metadata_.FindClock(clock_.name) != nullptr) {
      const absl::Status error = TsdlError(
          where.line, where.column, absl::StrCat("clock \"", clock_.name, "\" is declared twice"));
      if (!is_tolerant_) return error;
      metadata_.warnings.push_back(absl::StrCat(error.message(), ": the first counts"));
      return absl::OkStatus();
    }
    metadata_.clocks.push_back(std::move(clock_));
    return absl::OkStatus();
  }
  absl::Status ClockValue(const std::string& key, const TsdlValue& value) {
    if (key == "name") {
      clock_.name = value.text;
    } else if (key == "description") {
      clock_.description = value.text;
    } else if (key == "uuid") {
      clock_.uuid = value.text;
    } else if (key == "freq") {
      SYNCLINE_RETURN_IF_ERROR(ExpectUnsigned(key, value));
      if (value.magnitude == 0) return Error("a clock's frequency must not be zero");
      clock_.frequency = value.magnitude;
    } else if (key == "offset_s") {
      clock_.offset_seconds = value.AsSigned();
    } else if (key == "offset") {
      clock_.offset_cycles = value.AsSigned();
    } else if (key == "absolute") {
      clock_.absolute = IsTrue(value);
    } else if (key != "precision") {
      types_.NoteUnknown("a clock", key);
    }
    return absl::OkStatus();
  }

  absl::Status StreamBlock(const Token& where) {
    stream_ = StreamType{};
    SYNCLINE_RETURN_IF_ERROR(Block(&TsdlParser::StreamValue, &TsdlParser::StreamBlockType));
    if (metadata_.FindStream(stream_.id) != nullptr) {
      return TsdlError(where.line, where.column,
                       absl::StrCat("stream ", stream_.id, " is declared twice"));
    }
    metadata_.streams.push_back(std::move(stream_));
    return absl::OkStatus();
  }
  absl::Status StreamValue(const std::string& key, const TsdlValue& value) {
    if (key != "id") {
      types_.NoteUnknown("a stream", key);
      return absl::OkStatus();
    }
    SYNCLINE_RETURN_IF_ERROR(ExpectUnsigned(key, value));
    stream_.id = value.magnitude;
    return absl::OkStatus();
  }
  absl::Status StreamBlockType(const std::string& key, TypePtr type) {
    if (key == "event.header") return SetType(key, std::move(type), stream_.event_header);
    if (key == "packet.context") return SetType(key, std::move(type), stream_.packet_context);
    if (key == "event.context") return SetType(key, std::move(type), stream_.event_context);
    return UnknownType("a stream", key);
  }

  absl::Status EventBlock(const Token& where) {
    event_ = EventType{};
    event_has_stream_ = false;
    SYNCLINE_RETURN_IF_ERROR(Block(&TsdlParser::EventValue, &TsdlParser::EventBlockType));
    if (event_.name.empty()) event_.name = absl::StrCat("event-", event_.id.value_or(0));
    events_.push_back({std::move(event_), event_has_stream_, where});
    return absl::OkStatus();
  }
  absl::Status EventValue(const std::string& key, const TsdlValue& value) {
    if (key == "name") {
      event_.name = value.text;
    } else if (key == "id") {
      SYNCLINE_RETURN_IF_ERROR(ExpectUnsigned(key, value));
      event_.id = value.magnitude;
    } else if (key == "stream_id") {
      SYNCLINE_RETURN_IF_ERROR(ExpectUnsigned(key, value));
      event_.stream_id = value.magnitude;
      event_has_stream_ = true;
    } else {
      event_.attributes[key] = value.AsText();
    }
    return absl::OkStatus();
  }
  absl::Status EventBlockType(const std::string& key, TypePtr type) {
    if (key == "context") return SetType(key, std::move(type), event_.context);
    if (key == "fields") return SetType(key, std::move(type), event_.payload);
    return UnknownType("an event", key);
  }

  // Events go to their streams. A trace without stream blocks has one stream that nobody wrote
  // down, with one kind of event, since nothing in it would tell several apart. LTTng declares
  // streams behind their first events: where the metadata is cut they may be missing, and then
  // nothing is known of how these events lie in a packet.
  absl::Status Finish() {
    if (!has_byte_order_) {
      return absl::InvalidArgumentError("metadata: no trace block with a byte_order");
    }
    const bool names_streams = std::any_of(
        events_.begin(), events_.end(), [](const PendingEvent& event) { return event.has_stream; });
    if (metadata_.streams.empty() && !is_cut_ && !names_streams && events_.size() <= 1) {
      metadata_.streams.emplace_back();
    }
    std::map<uint64_t, size_t> index;
    for (size_t i = 0; i < metadata_.streams.size(); ++i) index[metadata_.streams[i].id] = i;
    std::set<std::pair<uint64_t, uint64_t>> seen;
    for (PendingEvent& pending : events_) {
      EventType& event = pending.event;
      const auto fail = [this, &pending](std::string_view message) {
        const absl::Status error = TsdlError(pending.where.line, pending.where.column, message);
        if (!is_tolerant_ || metadata_.streams.empty()) return error;
        metadata_.warnings.push_back(absl::StrCat(error.message(), ": it is unknown"));
        return absl::OkStatus();
      };
      if (!pending.has_stream) {
        if (metadata_.streams.size() != 1) {
          if (is_cut_) continue;
          SYNCLINE_RETURN_IF_ERROR(fail("this event must name its stream_id"));
          continue;
        }
        event.stream_id = metadata_.streams[0].id;
      }
      const auto stream = index.find(event.stream_id);
      if (stream == index.end()) {
        if (is_cut_) continue;
        SYNCLINE_RETURN_IF_ERROR(
            fail(absl::StrCat("this event's stream ", event.stream_id, " is not declared")));
        continue;
      }
      std::vector<EventType>& events = metadata_.streams[stream->second].events;
      if (!seen.emplace(event.stream_id, event.id.value_or(0)).second) {
        SYNCLINE_RETURN_IF_ERROR(fail(absl::StrCat("event id ", event.id.value_or(0), " of stream ",
                                                   event.stream_id, " is declared twice")));
        // Which of the two wrote the bytes nobody knows.
        std::erase_if(events, [&event](const EventType& other) {
          return other.id.value_or(0) == event.id.value_or(0);
        });
        continue;
      }
      events.push_back(std::move(event));
    }
    return absl::OkStatus();
  }

  struct PendingEvent {
    EventType event;
    bool has_stream = false;
    Token where;
  };

  TokenCursor tokens_;
  TypeParser types_;
  bool is_tolerant_;
  Metadata metadata_;
  Token where_;  // of the statement being read
  bool has_trace_ = false;
  bool has_byte_order_ = false;
  ClockClass clock_;  // of the block being read, as the three below
  StreamType stream_;
  EventType event_;
  bool event_has_stream_ = false;
  std::vector<PendingEvent> events_;
  bool is_cut_ = false;  // the metadata ends in the middle of something, or lacks a part
};

}  // namespace

absl::StatusOr<Metadata> ParseTsdl(std::string_view text, TsdlOptions options) {
  SYNCLINE_ASSIGN_OR_RETURN(auto tokens, TokenizeTsdl(text, options.tolerate_damage));
  return TsdlParser(std::move(tokens), options).Run();
}

}  // namespace syncline::ctf
