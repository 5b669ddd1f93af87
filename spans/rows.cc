// SPDX-License-Identifier: Apache-2.0
#include "spans/rows.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::spans {
namespace {

using Json = nlohmann::json;

constexpr int64_t kTimeMaxNs = int64_t{1} << 61;          // sums of two fit
constexpr int64_t kDurationMaxNs = kTimeMaxNs / 1000;     // in picoseconds too
constexpr int64_t kYear2000Ns = 946'684'800'000'000'000;  // times in s, ms or us lie before
constexpr size_t kShownBytes = 40;
constexpr size_t kDepthMax = 64;  // guessed

enum Column : size_t {
  kRank,
  kStep,
  kName,
  kStart,
  kDuration,
  kKind,
  kNode,
  kDevice,
  kStream,
  kSequence,
  kOther
};
constexpr std::array<std::string_view, kOther> kColumns = {
    "rank", "step", "name",   "start_ns", "duration_ns",
    "kind", "node", "device", "stream",   "sequence"};
constexpr size_t kRequired = kNode;  // those before it

Column ColumnOf(std::string_view name) {
  const auto found = std::find(kColumns.begin(), kColumns.end(), name);
  return static_cast<Column>(found - kColumns.begin());
}

absl::Status Wrong(size_t line, std::string_view column, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line, ", column ", AbslView(column), ": ", AbslView(what)));
}

std::string Shown(std::string_view value) {
  if (value.size() <= kShownBytes) return absl::StrCat("\"", AbslView(value), "\"");
  return absl::StrCat("\"", AbslView(value.substr(0, kShownBytes)), "...\"");
}

// One row, field by field. A field is given at most once.
class RowMaker {
 public:
  void Begin(size_t line) {
    row_ = Row();
    line_ = line;
    given_ = {};
  }

  absl::Status Set(std::string_view column, std::string_view value) {
    const Column of = ColumnOf(column);
    if (of == kOther) {
      if (!value.empty()) row_.others.emplace_back(column, value);
      return absl::OkStatus();
    }
    if (value.empty()) return absl::OkStatus();  // as if it were not there
    given_[of] = true;
    switch (of) {
      case kName:
        row_.name = value;
        break;
      case kKind:
        row_.kind = value;
        break;
      case kNode:
        row_.node = value;
        break;
      case kDevice:
        row_.device = value;
        break;
      case kStream:
        row_.stream = value;
        break;
      default:
        return SetNumber(of, value);
    }
    return absl::OkStatus();
  }

  // A row without a step is in none.
  absl::Status End() const {
    for (size_t i = 0; i < kRequired; ++i) {
      if (!given_[i] && i != kStep) return Wrong(line_, kColumns[i], "a value is missing");
    }
    return absl::OkStatus();
  }

  const Row& row() const { return row_; }

 private:
  absl::Status SetNumber(Column of, std::string_view value) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(AbslView(value), &number)) {
      return Wrong(line_, kColumns[of], Shown(value) + " is no whole number");
    }
    const auto refuse = [&](std::string_view why) {
      return Wrong(line_, kColumns[of], absl::StrCat(number, " ", AbslView(why)));
    };
    switch (of) {
      case kRank:
        if (number < 0 || number > std::numeric_limits<int32_t>::max()) return refuse("is no rank");
        row_.rank = static_cast<int32_t>(number);
        break;
      case kStart:
        if (number < kYear2000Ns || number > kTimeMaxNs) {
          return refuse("is no time in nanoseconds since 1970, between 2000 and 2043");
        }
        row_.start_ns = number;
        break;
      case kDuration:
        if (number < 0) return refuse("is negative");
        if (number > kDurationMaxNs) return refuse("is longer than 26 days");
        row_.duration_ns = number;
        break;
      case kStep:
        row_.step = number;
        break;
      default:
        row_.sequence = number;
        break;
    }
    return absl::OkStatus();
  }

  Row row_;
  size_t line_ = 0;
  std::array<bool, kOther> given_ = {};
};

// The records of a CSV text, one after the other.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  // False at the end. Empty lines are no records.
  absl::StatusOr<bool> Next(std::vector<std::string>* fields) {
    fields->clear();
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) TakeLineEnd();
    if (at_ == text_.size()) return false;
    record_line_ = line_;
    for (;;) {
      std::string& field = fields->emplace_back();
      SYNCLINE_RETURN_IF_ERROR(at_ < text_.size() && text_[at_] == '"' ? Quoted(&field)
                                                                       : Plain(&field));
      if (at_ == text_.size()) return true;
      if (text_[at_] != ',') {
        TakeLineEnd();
        return true;
      }
      ++at_;
    }
  }

  size_t record_line() const { return record_line_; }  // on which the record begins

 private:
  void TakeLineEnd() {
    if (text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++line_;
  }

  absl::Status Plain(std::string* field) {
    const size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    *field = text_.substr(at_, end - at_);
    at_ = end;
    return absl::OkStatus();
  }

  absl::Status Quoted(std::string* field) {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        field->push_back(text_[at_]);
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        field->push_back('"');
        ++at_;
      } else {
        ++at_;
        if (at_ == text_.size() || text_[at_] == ',' || text_[at_] == '\r' || text_[at_] == '\n') {
          return absl::OkStatus();
        }
        return absl::InvalidArgumentError(
            absl::StrCat("line ", line_, ": text behind the quotes of a field"));
      }
    }
    return absl::InvalidArgumentError(
        absl::StrCat("line ", record_line_, ": quotes that do not end"));
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_ = 1;
  size_t record_line_ = 1;
};

absl::Status CheckHeader(const std::vector<std::string>& header) {
  for (size_t i = 0; i < kRequired; ++i) {
    if (std::find(header.begin(), header.end(), kColumns[i]) == header.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line 1: no column \"", AbslView(kColumns[i]),
                       "\"; rank, step, name, start_ns, duration_ns and kind must be there"));
    }
  }
  for (size_t i = 0; i < header.size(); ++i) {
    if (std::find(header.begin(), header.begin() + static_cast<ptrdiff_t>(i), header[i]) !=
        header.begin() + static_cast<ptrdiff_t>(i)) {
      return absl::InvalidArgumentError(
          absl::StrCat("line 1: two columns are called ", Shown(header[i])));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadCsv(std::string_view text, absl::FunctionRef<void(const Row&)> on_row) {
  CsvReader reader(text);
  std::vector<std::string> header;
  SYNCLINE_RETURN_IF_ERROR(reader.Next(&header).status());
  SYNCLINE_RETURN_IF_ERROR(CheckHeader(header));
  RowMaker maker;
  std::vector<std::string> fields;
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const bool more, reader.Next(&fields));
    if (!more) return absl::OkStatus();
    if (fields.size() != header.size()) {
      return absl::InvalidArgumentError(absl::StrCat("line ", reader.record_line(), ": it has ",
                                                     fields.size(), " fields, the header ",
                                                     header.size()));
    }
    maker.Begin(reader.record_line());
    for (size_t i = 0; i < fields.size(); ++i) {
      SYNCLINE_RETURN_IF_ERROR(maker.Set(header[i], fields[i]));
    }
    SYNCLINE_RETURN_IF_ERROR(maker.End());
    on_row(maker.row());
  }
}

// What a line of JSON says of one column. Numbers as they are written; what has parts as JSON.
std::string TextOf(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Whether it is nested more deeply than anybody writes by hand: each level costs stack.
bool IsDeep(std::string_view json) {
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (quoted && json[i] == '\\') {
      ++i;
    } else if (json[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (json[i] == '[' || json[i] == '{')) {
      if (++depth > kDepthMax) return true;
    } else if (!quoted && (json[i] == ']' || json[i] == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

absl::Status ReadJsonLine(std::string_view text, size_t line, RowMaker* maker) {
  if (IsDeep(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line, ": more than ", kDepthMax, " brackets inside one another"));
  }
  const Json object = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat("line ", line, ": it is no JSON object"));
  }
  maker->Begin(line);
  for (const auto& [column, value] : object.items()) {
    SYNCLINE_RETURN_IF_ERROR(maker->Set(column, TextOf(value)));
  }
  return maker->End();
}

absl::Status ReadJsonLines(std::string_view text, absl::FunctionRef<void(const Row&)> on_row) {
  RowMaker maker;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    SYNCLINE_RETURN_IF_ERROR(ReadJsonLine(one, line, &maker));
    on_row(maker.row());
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<Format> FormatOf(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return std::nullopt;
  if (line[line.find_first_not_of(" \t\r")] == '{') {
    const Json object = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) return std::nullopt;
    return object.contains(kColumns[kStart]) || object.contains(kColumns[kDuration])
               ? std::optional(Format::kJsonLines)
               : std::nullopt;
  }
  std::vector<std::string> header;
  CsvReader reader(line);
  const auto any = reader.Next(&header);
  if (!any.ok()) return std::nullopt;
  const bool table = std::find(header.begin(), header.end(), kColumns[kStart]) != header.end() ||
                     std::find(header.begin(), header.end(), kColumns[kDuration]) != header.end();
  return table ? std::optional(Format::kCsv) : std::nullopt;
}

absl::Status ReadRows(std::string_view text, Format format,
                      absl::FunctionRef<void(const Row&)> on_row) {
  return format == Format::kCsv ? ReadCsv(text, on_row) : ReadJsonLines(text, on_row);
}

}  // namespace syncline::spans
