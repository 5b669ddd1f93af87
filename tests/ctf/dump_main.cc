// SPDX-License-Identifier: Apache-2.0
// ctf_dump TRACE...: every event of the traces as babeltrace2's text sink prints it with
// `--clock-cycles --no-delta -f loglevel`, less the log level; streams one after the other,
// unordered. Losses go to stderr. Exit code 3 when there were any. For differential tests only.
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "ctf/reader.h"

namespace {

using syncline::FieldClass;
using syncline::FieldScope;
using syncline::FieldType;
using syncline::FieldValue;

void AppendFormat(std::string& out, const char* format, auto... arguments) {
  char text[64];
  std::snprintf(text, sizeof text, format, arguments...);
  out += text;
}

void AppendText(std::string& out, std::string_view text) {
  static constexpr std::string_view kNames = "abefnrtv";
  static constexpr std::string_view kValues = "\a\b\033\f\n\r\t\v";
  out += '"';
  for (const char c : text) {
    if (c == '\\' || c == '\'' || c == '"' || c == '?') {
      out += '\\';
      out += c;
    } else if (const size_t i = kValues.find(c); i != std::string_view::npos) {
      out += '\\';
      out += kNames[i];
    } else if (static_cast<unsigned char>(c) < 32 || c == 127) {
      AppendFormat(out, "\\x%02x", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendInteger(std::string& out, const FieldValue& value) {
  const FieldClass& field = *value.field;
  uint64_t bits = value.u;
  // Octal and hexadecimal digits are whole ones: 9 bits for an octal number of 8.
  const uint32_t digit = field.display_base == 8 ? 3 : field.display_base == 16 ? 4 : 1;
  const uint32_t size = (field.size_bits + digit - 1) / digit * digit;
  if (field.display_base != 10 && size < 64) bits &= (uint64_t{1} << size) - 1;
  switch (field.display_base) {
    case 2:
      out += "0b";
      for (uint32_t i = field.size_bits; i-- > 0;) out += bits >> i & 1 ? '1' : '0';
      break;
    case 8:
      AppendFormat(out, "0%" PRIo64, bits);
      break;
    case 16:
      AppendFormat(out, "0x%" PRIX64, bits);
      break;
    default:
      field.is_signed ? AppendFormat(out, "%" PRId64, value.s)
                      : AppendFormat(out, "%" PRIu64, value.u);
  }
}

void AppendEnum(std::string& out, const FieldValue& value) {
  out += "( ";
  if (value.text.empty()) {
    out += "<unknown>";
  } else {
    out += '"';
    for (size_t i = 0; i < value.text.size(); ++i) {
      if (value.text.substr(i, 2) == ", ") {
        out += "\", \"";
        ++i;
      } else {
        out += value.text[i];
      }
    }
    out += '"';
  }
  out += " : container = ";
  AppendInteger(out, value);
  out += " )";
}

class Printer {
 public:
  Printer(const std::vector<FieldValue>& values, std::string& out) : values_(values), out_(out) {}

  void Run() {
    while (next_ < values_.size()) {
      const FieldScope scope = values_[next_].field->scope;
      if (next_ > 0) out_ += ", ";
      out_ += "{ ";
      for (bool first = true; next_ < values_.size() && values_[next_].field->scope == scope;
           first = false) {
        if (!first) out_ += ", ";
        Named();
      }
      out_ += " }";
    }
  }

 private:
  void Named() {
    out_ += values_[next_].field->name;
    out_ += " = ";
    Value();
  }

  void Value() {
    const FieldValue& value = values_[next_++];
    switch (value.type) {
      case FieldType::kUnsigned:
      case FieldType::kSigned:
        return AppendInteger(out_, value);
      case FieldType::kReal:
        return AppendFormat(out_, "%g", value.d);
      case FieldType::kString:
      case FieldType::kBlob:
        return AppendText(out_, value.text);
      case FieldType::kEnum:
        return AppendEnum(out_, value);
      case FieldType::kArray:
        out_ += "[";
        for (uint32_t i = 0; i < value.count; ++i) {
          AppendFormat(out_, "%s [%u] = ", i == 0 ? "" : ",", i);
          Value();
        }
        out_ += " ]";
        return;
      case FieldType::kVariant:
        out_ += "{ ";
        if (value.count > 0) Value();  // an empty optional has none
        out_ += " }";
        return;
      case FieldType::kStruct:
        out_ += "{";
        for (uint32_t i = 0; i < value.count; ++i) {
          out_ += i == 0 ? " " : ", ";
          Named();
        }
        out_ += " }";
        return;
    }
  }

  const std::vector<FieldValue>& values_;
  std::string& out_;
  size_t next_ = 0;
};

void PrintLosses(std::span<const syncline::Loss> losses, bool* lossy) {
  for (const syncline::Loss& loss : losses) {
    *lossy = true;
    std::fprintf(stderr, "%s in %s: [%" PRId64 ", %" PRId64 "] count %s: %s\n",
                 LossReasonName(loss.reason), loss.source.c_str(), loss.begin_ns, loss.end_ns,
                 loss.count ? std::to_string(*loss.count).c_str() : "unknown", loss.detail.c_str());
  }
}

absl::Status Dump(const char* directory, bool* lossy) {
  auto reader = syncline::ctf::OpenTrace(directory);
  if (!reader.ok()) return reader.status();
  PrintLosses((*reader)->losses(), lossy);
  std::vector<FieldValue> values;
  std::string line;
  for (const syncline::StreamInfo& stream : (*reader)->streams()) {
    auto cursor = (*reader)->Open(stream.index);
    if (!cursor.ok()) return cursor.status();
    for (;;) {
      auto batch = (*cursor)->NextBatch();
      if (!batch.ok()) return batch.status();
      if (batch->empty()) break;
      for (const syncline::EventRecord& record : *batch) {
        line.clear();
        AppendFormat(line, "[%020" PRId64 "] ", record.time_ns);
        line += record.event_class->name;
        line += ": ";
        if (!(*cursor)->Decode(record, &values)) line += "UNDECODABLE";
        Printer(values, line).Run();
        line += '\n';
        std::fwrite(line.data(), 1, line.size(), stdout);
      }
    }
    PrintLosses((*cursor)->losses(), lossy);
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  bool lossy = false;
  for (int i = 1; i < argc; ++i) {
    const absl::Status status = Dump(argv[i], &lossy);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
      return 1;
    }
  }
  return lossy ? 3 : 0;
}
