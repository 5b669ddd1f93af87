// SPDX-License-Identifier: Apache-2.0
#include "timeline/testing/scenario.h"

#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::timeline::testing {
namespace {

std::string_view TakeWord(std::string_view* text) {
  const size_t begin = std::min(text->find_first_not_of(' '), text->size());
  const size_t end = std::min(text->find(' ', begin), text->size());
  const std::string_view word = text->substr(begin, end - begin);
  text->remove_prefix(std::min(end + 1, text->size()));
  return word;
}

absl::StatusOr<int64_t> TakeNumber(std::string_view* text) {
  const std::string_view word = TakeWord(text);
  int64_t number = 0;
  if (absl::SimpleAtoi(AbslView(word), &number)) return number;
  return absl::InvalidArgumentError(absl::StrCat("not a number: '", AbslView(word), "'"));
}

class Parser {
 public:
  absl::Status Line(std::string_view line);
  Scenario Take() { return std::move(scenario_); }

 private:
  absl::Status Node(std::string_view rest);
  absl::Status Process(std::string_view rest);
  absl::Status Lost(std::string_view rest);

  Scenario scenario_;
  FakeStream* stream_ = nullptr;
};

absl::Status Parser::Node(std::string_view rest) {
  NodeInput node;
  node.name = TakeWord(&rest);
  int64_t shift_ns = 0;
  for (std::string_view word = TakeWord(&rest); !word.empty(); word = TakeWord(&rest)) {
    if (word == "unflushed") node.unflushed = true;
    if (word == "shift") {
      SYNCLINE_ASSIGN_OR_RETURN(shift_ns, TakeNumber(&rest));
    }
  }
  const ClockId clock{static_cast<uint32_t>(scenario_.nodes.size())};
  scenario_.placements.push_back(ShiftPlacement(clock, shift_ns));
  scenario_.traces.emplace_back();
  node.readers = {&scenario_.traces.back()};
  node.placement = scenario_.placements.back().get();
  scenario_.nodes.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status Parser::Process(std::string_view rest) {
  SYNCLINE_ASSIGN_OR_RETURN(const FakeEvent event,
                            ParseFakeEvent(0, absl::StrCat("process ", AbslView(rest))));
  KnownProcess process;
  for (const FakeField& field : event.fields) {
    if (const auto* text = std::get_if<std::string>(&field.value)) {
      if (field.name == "command") process.command_line = *text;
      if (field.name == "role") process.role = *text;
      if (field.name == "part") process.part = *text;
      continue;
    }
    const uint64_t number = std::get<uint64_t>(field.value);
    if (field.name == "key") process.process_key = static_cast<uint32_t>(number);
    if (field.name == "uid") process.uid = static_cast<uint32_t>(number);
    if (field.name == "pid") process.key.pid = static_cast<int32_t>(number);
    if (field.name == "pidns") process.key.pid_namespace = number;
    if (field.name == "ticks") process.key.start_ticks = number;
    if (field.name == "replaced") process.became_another_program = number != 0;
    if (field.name == "expected") process.expected = number != 0;
    if (field.name == "worker") process.worker_id = static_cast<int32_t>(number);
    if (field.name == "rank") process.rank = static_cast<int32_t>(number);
    if (field.name == "events") process.counted_events = number;
    if (field.name == "lost") process.counted_lost = number;
    if (field.name == "lost_before_on") process.lost_before_on = number;
    if (field.name == "asked") process.asked_ns = static_cast<int64_t>(number);
    if (field.name == "on") process.on_ns = static_cast<int64_t>(number);
    if (field.name == "off") process.off_ns = static_cast<int64_t>(number);
  }
  scenario_.nodes.back().processes.push_back(std::move(process));
  return absl::OkStatus();
}

absl::Status Parser::Lost(std::string_view rest) {
  Loss loss;
  const std::string_view reason = TakeWord(&rest);
  if (reason == "packets") {
    loss.reason = LossReason::kLostPackets;
  } else if (reason != "discarded") {
    return absl::InvalidArgumentError("loss: discarded or packets");
  }
  SYNCLINE_ASSIGN_OR_RETURN(loss.begin_ns, TakeNumber(&rest));
  SYNCLINE_ASSIGN_OR_RETURN(loss.end_ns, TakeNumber(&rest));
  if (!rest.empty()) {
    SYNCLINE_ASSIGN_OR_RETURN(const int64_t count, TakeNumber(&rest));
    loss.count = static_cast<uint64_t>(count);
  }
  loss.source = stream_->name;
  stream_->losses.push_back(std::move(loss));
  return absl::OkStatus();
}

absl::Status Parser::Line(std::string_view line) {
  std::string_view rest = line;
  const std::string_view word = TakeWord(&rest);
  if (word.empty() || word.starts_with('#')) return absl::OkStatus();
  if (word == "window") {
    Interval window;
    SYNCLINE_ASSIGN_OR_RETURN(window.begin.ns, TakeNumber(&rest));
    SYNCLINE_ASSIGN_OR_RETURN(window.end.ns, TakeNumber(&rest));
    scenario_.options.window = window;
    return absl::OkStatus();
  }
  if (word == "node") return Node(rest);
  if (scenario_.nodes.empty()) return absl::InvalidArgumentError("no node yet");
  FakeTrace& trace = scenario_.traces.back();
  if (word == "env") {
    const std::string key(TakeWord(&rest));
    (*trace.mutable_environment())[key] = rest;
    return absl::OkStatus();
  }
  if (word == "stream") {
    stream_ = trace.AddStream(std::string(TakeWord(&rest)));
    return absl::OkStatus();
  }
  if (word == "process") return Process(rest);
  if (word == "closed") {
    SYNCLINE_ASSIGN_OR_RETURN(scenario_.nodes.back().closed_ns, TakeNumber(&rest));
    scenario_.nodes.back().why_closed = rest;
    return absl::OkStatus();
  }
  auto& processes = scenario_.nodes.back().processes;
  if (word == "name" && !processes.empty()) {
    SYNCLINE_ASSIGN_OR_RETURN(const int64_t id, TakeNumber(&rest));
    processes.back().names[static_cast<uint32_t>(id)] = {2, std::string(rest)};
    return absl::OkStatus();
  }
  if (word == "thread" && !processes.empty()) {
    KnownThread thread;
    SYNCLINE_ASSIGN_OR_RETURN(const int64_t key, TakeNumber(&rest));
    SYNCLINE_ASSIGN_OR_RETURN(const int64_t tid, TakeNumber(&rest));
    thread.key = static_cast<uint32_t>(key);
    thread.tid = static_cast<int32_t>(tid);
    thread.name = rest;
    processes.back().threads.push_back(std::move(thread));
    return absl::OkStatus();
  }
  if (stream_ == nullptr) return absl::InvalidArgumentError("no stream yet");
  if (word == "loss") return Lost(rest);
  int64_t time_ns = 0;
  if (!absl::SimpleAtoi(AbslView(word), &time_ns)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown word '", AbslView(word), "'"));
  }
  SYNCLINE_ASSIGN_OR_RETURN(FakeEvent event, ParseFakeEvent(time_ns, rest));
  stream_->events.push_back(std::move(event));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Scenario> ParseScenario(std::string_view text) {
  Parser parser;
  for (int line_number = 1; !text.empty(); ++line_number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const absl::Status status = parser.Line(text.substr(0, end));
    if (!status.ok()) return WithContext(status, absl::StrCat("line ", line_number));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parser.Take();
}

}  // namespace syncline::timeline::testing
