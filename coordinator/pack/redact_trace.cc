// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/pack/redact_files.h"
#include "ctf/metadata.h"
#include "ctf/packet_walker.h"
#include "ctf/reader.h"

namespace syncline::pack {
namespace {

// Facts of the environment that are LTTng's own.
constexpr std::string_view kPlainFacts[] = {
    "domain",       "tracer_name",    "tracer_buffering_scheme",
    "trace_name",   "kernel_release", "trace_creation_datetime",
    "product_uuid", "sysname",        "kernel_version",
};

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string Fact(std::string_view block, std::string_view name, std::string_view value,
                 Pseudonyms* names) {
  if (block == "clock") return name == "uuid" ? names->BootId(value) : std::string(value);
  if (std::find(std::begin(kPlainFacts), std::end(kPlainFacts), name) != std::end(kPlainFacts)) {
    return std::string(value);
  }
  if (name == "hostname") return names->Host(value);
  if (name == "procname") return names->Name(value);
  return names->Text(value);
}

// Goes through TSDL word by word, and replaces texts in the blocks `env` and `clock`, which stand
// at the outermost level.
class Tsdl {
 public:
  Tsdl(std::string* text, Pseudonyms* names, std::set<std::string, std::less<>>* words)
      : text_(*text), names_(*names), words_(*words) {}

  void Run() {
    int depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        Quoted(depth);
      } else if (IsWord(c)) {
        const size_t begin = at_;
        while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
        word_ = text_.substr(begin, at_ - begin);
        if (depth == 0) block_ = word_;
        words_.insert(word_);
        // Fields bear a "_" in front.
        if (word_.starts_with('_')) words_.insert(word_.substr(1));
      } else {
        depth += c == '{' ? 1 : c == '}' ? -1 : 0;
        ++at_;
      }
    }
  }

 private:
  void Quoted(int depth) {
    const size_t begin = at_ + 1;
    size_t end = begin;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    end = std::min(end, text_.size());
    const std::string value = text_.substr(begin, end - begin);
    if (depth == 1 && (block_ == "env" || block_ == "clock")) {
      text_.replace(begin, value.size(), Fact(block_, word_, value, &names_));
    } else {
      words_.insert(value);  // an event, a trace's uuid
      for (const absl::string_view part : absl::StrSplit(value, ':')) words_.emplace(part);
    }
    at_ = end + 1;
  }

  std::string& text_;
  Pseudonyms& names_;
  std::set<std::string, std::less<>>& words_;
  size_t at_ = 0;
  std::string word_;   // the last one
  std::string block_;  // what the outermost block is called
};

// Whether an event's fields hold text. Text of a packet is shared by its events.
enum class Holds : uint8_t { kNothing, kText, kSharedText };
Holds Look(const std::vector<FieldClass>& fields) {
  Holds holds = Holds::kNothing;
  for (const FieldClass& field : fields) {
    Holds found = Look(field.children);
    if (field.type == FieldType::kString || field.type == FieldType::kBlob) {
      found = field.scope == FieldScope::kPacketContext ? Holds::kSharedText : Holds::kText;
    }
    holds = std::max(holds, found);
  }
  return holds;
}

std::string FieldText(const EventClass& event, const FieldValue& value, Pseudonyms* names) {
  if (event.name == "syncline_net:connection") return names->Address(value.text);
  if (event.name.starts_with("syncline")) return names->Name(value.text);
  return names->Text(value.text, "text of an event");
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

// Zeroes what follows the events in each packet; all of the file must be packets.
absl::Status ClearPadding(const ctf::TraceLayout& layout, std::span<uint8_t> bytes) {
  ctf::MemorySource source(bytes);
  ctf::PacketWalker walker(layout, source, "");
  uint64_t end = 0;
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const std::optional<ctf::Packet> packet, walker.Next());
    if (!packet) break;
    if (packet->offset != end || packet->open_ended || packet->cut) {
      return absl::DataLossError(
          "it has a packet that was never finished, and names may stand where nothing can be read");
    }
    const uint64_t content = (packet->content_bits + 7) / 8;
    end = packet->offset + packet->bytes;
    std::fill(bytes.begin() + static_cast<ptrdiff_t>(packet->offset + content),
              bytes.begin() + static_cast<ptrdiff_t>(end), uint8_t{0});
  }
  if (end != bytes.size()) return absl::DataLossError("it does not end with a packet");
  return RefuseDamage(walker.losses());
}

}  // namespace

std::string RedactTracePath(std::string_view path, Pseudonyms* names) {
  std::vector<std::string> parts = absl::StrSplit(AbslView(path), '/');
  // ust/pid/PROGRAM-PID-DATE-TIME/...
  if (parts.size() > 2 && parts[0] == "ust" && parts[1] == "pid") {
    size_t end = parts[2].size();
    for (int dashes = 0; dashes < 3 && end != std::string::npos && end > 0; ++dashes) {
      end = parts[2].rfind('-', end - 1);
    }
    if (end == std::string::npos) end = parts[2].size();
    parts[2] = names->Name(std::string_view(parts[2]).substr(0, end)) + parts[2].substr(end);
  }
  return absl::StrJoin(parts, "/");
}

absl::StatusOr<std::string> RedactMetadata(std::string_view file, Pseudonyms* names,
                                           std::set<std::string, std::less<>>* words) {
  SYNCLINE_ASSIGN_OR_RETURN(ctf::MetadataText metadata, ctf::UnpackMetadata(file));
  if (!metadata.cut.empty()) {
    return absl::DataLossError(absl::StrCat("it is damaged: ", metadata.cut));
  }
  if (!metadata.text.starts_with("/* CTF 1.8")) {
    return absl::UnimplementedError("it is not written in CTF 1.8's language");
  }
  Tsdl(&metadata.text, names, words).Run();
  return std::move(metadata.text);
}

absl::Status RedactStream(const std::shared_ptr<const ctf::TraceLayout>& layout,
                          std::span<uint8_t> bytes, Pseudonyms* names) {
  SYNCLINE_RETURN_IF_ERROR(ClearPadding(*layout, bytes));
  std::vector<Holds> holds;
  for (const ctf::EventLayout* event : layout->events) {
    holds.push_back(Look(event->event_class.fields));
  }
  const auto cursor = ctf::MakeCursor(layout, std::make_unique<ctf::MemorySource>(bytes), {});
  std::vector<FieldValue> values;
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const std::span<const EventRecord> batch, cursor->NextBatch());
    if (batch.empty()) break;
    for (const EventRecord& record : batch) {
      const Holds held = holds[record.event_class->index];
      if (held == Holds::kNothing) continue;
      if (held == Holds::kSharedText || !cursor->Decode(record, &values)) {
        return absl::UnimplementedError(
            absl::StrCat("its events \"", record.event_class->name, "\" cannot be redacted"));
      }
      for (const FieldValue& value : values) {
        if (value.type != FieldType::kString && value.type != FieldType::kBlob) continue;
        const std::string made = FieldText(*record.event_class, value, names);
        const auto* const at = reinterpret_cast<const uint8_t*>(value.text.data());
        if (value.text.empty()) continue;
        if (at < bytes.data() || at + made.size() > bytes.data() + bytes.size()) {
          return absl::InternalError("a text does not lie in the stream");
        }
        std::copy(made.begin(), made.end(), bytes.begin() + (at - bytes.data()));
      }
    }
  }
  return RefuseDamage(cursor->losses());
}

}  // namespace syncline::pack
