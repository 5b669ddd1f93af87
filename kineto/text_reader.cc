// SPDX-License-Identifier: Apache-2.0
#include "kineto/text_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/utf8.h"

namespace syncline::kineto {
namespace {

constexpr int kMembersDepth = 2;       // of what the file's object contains
constexpr size_t kTextBytesMax = 512;  // of a name, a category, an argument
constexpr char kEventsKey[] = "traceEvents";
constexpr char kDistributedKey[] = "distributedInfo";
// The others are bookkeeping between Kineto's own events.
constexpr std::array<std::string_view, 31> kArguments = {"Input Dims",
                                                         "Input type",
                                                         "Concrete Inputs",
                                                         "Sequence number",
                                                         "finished",
                                                         "name",
                                                         "labels",
                                                         "device",
                                                         "stream",
                                                         "correlation",
                                                         "bytes",
                                                         "grid",
                                                         "block",
                                                         "Collective name",
                                                         "In msg nelems",
                                                         "Out msg nelems",
                                                         "Group size",
                                                         "dtype",
                                                         "Process Group Name",
                                                         "Process Group Description",
                                                         "Process Group Ranks",
                                                         "Seq",
                                                         "Comms Id",
                                                         "Src Rank",
                                                         "Dst Rank",
                                                         "Rank",
                                                         "In split size",
                                                         "Out split size",
                                                         "graph id",
                                                         "graph node id",
                                                         "memory bandwidth (GB/s)"};

std::string_view Cut(std::string_view text) { return CutText(text, kTextBytesMax); }

bool IsWorthHaving(std::string_view key) {
  return std::find(kArguments.begin(), kArguments.end(), key) != kArguments.end();
}

}  // namespace

std::string WithQuotesEscaped(std::string_view text) {
  constexpr std::string_view kBegin = "\"name\": \"";
  constexpr std::string_view kEnd = "\",";
  std::string escaped;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t key = std::min(line.find_first_not_of(' '), line.size());
    const bool is_name = line.substr(key).starts_with(kBegin) && line.ends_with(kEnd) &&
                         line.size() >= key + kBegin.size() + kEnd.size();
    const size_t begin = is_name ? key + kBegin.size() : line.size();
    const size_t end = is_name ? line.size() - kEnd.size() : line.size();
    escaped += line.substr(0, begin);
    for (size_t i = begin; i < end; ++i) {
      if (line[i] == '"' && line[i - 1] != '\\') escaped += '\\';
      escaped += line[i];
    }
    escaped += line.substr(end);
    if (!text.empty()) escaped += '\n';
  }
  return escaped;
}

bool TextReader::number_integer(number_integer_t value) { return Number(std::to_string(value)); }
bool TextReader::number_unsigned(number_unsigned_t value) { return Number(std::to_string(value)); }

bool TextReader::Number(std::string_view text) {
  if (in_events_ && depth_ == EventDepth() && event_key_ == "ts") {
    event_.ts_ns = NanosecondsOf(text);
    return true;
  }
  if (in_events_ && depth_ == EventDepth() && event_key_ == "dur") {
    event_.duration_ns = NanosecondsOf(text);
    return true;
  }
  if (depth_ == 1 && root_key_ == "baseTimeNanoseconds") {
    // As text in microseconds it would be a thousand times as much.
    base_ns_ = NanosecondsOf(std::string(text) + "e-3");
    return true;
  }
  return Scalar(text);
}

bool TextReader::Scalar(std::string_view text) {
  if (!in_events_) {
    if (depth_ == kMembersDepth && root_key_ == kDistributedKey) {
      if (event_key_ == "rank") rank_ = Cut(text);
      if (event_key_ == "world_size") world_size_ = Cut(text);
    }
    return true;
  }
  if (depth_ == EventDepth()) {
    const std::pair<std::string_view, std::string*> fields[] = {{"ph", &event_.ph},
                                                                {"cat", &event_.category},
                                                                {"name", &event_.name},
                                                                {"pid", &event_.pid},
                                                                {"tid", &event_.tid}};
    for (const auto& [key, field] : fields) {
      if (event_key_ == key) *field = Cut(text);
    }
  } else if (in_arguments_ && depth_ == ArgumentsDepth()) {
    EndArgument(Cut(text));
  } else if (in_arguments_ && depth_ > ArgumentsDepth()) {
    Append(text);
  }
  return true;
}

void TextReader::Append(std::string_view text) {
  if (nested_.size() >= kTextBytesMax) return;
  if (!nested_.empty() && nested_.back() != '[' && nested_.back() != '{' && nested_.back() != ':') {
    nested_ += ", ";
  }
  nested_ += Cut(text);
}

// A key that comes again says nothing new, and must not make an event as long as its file.
void TextReader::EndArgument(std::string_view text) {
  if (!IsWorthHaving(argument_key_)) return;
  for (const auto& [key, value] : event_.arguments) {
    if (key == argument_key_) return;
  }
  event_.arguments.emplace_back(argument_key_, text);
}

void TextReader::Open(char bracket) {
  ++depth_;
  if (!in_events_) return;
  if (depth_ == EventDepth()) {
    event_ = {};
    event_key_.clear();
  } else if (depth_ == ArgumentsDepth()) {
    in_arguments_ = bracket == '{' && event_key_ == "args";
  } else if (in_arguments_ && depth_ > ArgumentsDepth()) {
    if (depth_ == ArgumentsDepth() + 1) nested_.clear();
    Append(std::string_view(&bracket, 1));
  }
}

void TextReader::Close(char bracket) {
  if (in_events_) {
    if (depth_ == events_depth_) {
      in_events_ = false;
    } else if (depth_ == EventDepth() && bracket == '}') {
      has_events_ = has_events_ || !event_.ph.empty();
      trace_->Add(std::move(event_));
    } else if (depth_ == ArgumentsDepth()) {
      in_arguments_ = false;
    } else if (in_arguments_ && depth_ > ArgumentsDepth()) {
      if (nested_.size() < kTextBytesMax) nested_ += bracket;
      if (depth_ == ArgumentsDepth() + 1) EndArgument(nested_);
    }
  }
  --depth_;
}

bool TextReader::start_object(size_t) {
  Open('{');
  return true;
}
bool TextReader::end_object() {
  Close('}');
  return true;
}
bool TextReader::start_array(size_t) {
  Open('[');
  const bool bare = depth_ == 1;
  if (bare || (!in_events_ && depth_ == kMembersDepth && root_key_ == kEventsKey)) {
    in_events_ = true;
    has_events_ = has_events_ || !bare;  // any list may be the whole of a file
    events_depth_ = depth_;
  }
  return true;
}
bool TextReader::end_array() {
  Close(']');
  return true;
}

bool TextReader::key(string_t& text) {
  if (depth_ == 1) {
    root_key_ = text;
  } else if (!in_events_ && depth_ == kMembersDepth) {
    event_key_ = text;
  } else if (in_events_ && depth_ == EventDepth()) {
    event_key_ = text;
  } else if (in_arguments_ && depth_ == ArgumentsDepth()) {
    argument_key_ = text;
  } else if (in_arguments_ && depth_ > ArgumentsDepth()) {
    Append(text);
    if (nested_.size() < kTextBytesMax) nested_ += ':';
  }
  return true;
}

bool TextReader::parse_error(size_t position, const std::string&,
                             const nlohmann::detail::exception&) {
  damaged_at_ = position;
  return false;
}

}  // namespace syncline::kineto
