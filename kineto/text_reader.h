// SPDX-License-Identifier: Apache-2.0
// Kineto's JSON, read from front to back into a Trace. Internal to kineto/.
#ifndef SYNCLINE_KINETO_TEXT_READER_H_
#define SYNCLINE_KINETO_TEXT_READER_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "kineto/trace.h"

namespace syncline::kineto {

// Kineto writes a program's own names as they are: a quote in one is the end of what is JSON. Each
// stands on a line of its own; the text with these quotes escaped, as it is where there are none.
std::string WithQuotesEscaped(std::string_view text);

// nlohmann's callbacks. Depths: 1 the file's object, 2 traceEvents, 3 an event, 4 its arguments,
// deeper what an argument contains, which is kept as text. A file may also be the list of events
// itself: then all of them are one less.
class TextReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TextReader(Trace* trace) : trace_(trace) {}

  bool null() override { return Scalar("null"); }
  bool boolean(bool value) override { return Scalar(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t, const string_t& text) override { return Number(text); }
  bool string(string_t& text) override { return Scalar(text); }
  bool binary(binary_t&) override { return false; }  // not in JSON
  bool start_object(size_t) override;
  bool key(string_t& text) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override;

  // nullopt: none, or not a time.
  std::optional<int64_t> base_ns() const { return base_ns_; }
  // "distributedInfo": "rank", "world_size"; "": not there.
  const std::string& rank() const { return rank_; }
  const std::string& world_size() const { return world_size_; }
  std::optional<size_t> damaged_at() const { return damaged_at_; }
  bool has_events() const { return has_events_; }

 private:
  bool Scalar(std::string_view text);
  bool Number(std::string_view text);
  int EventDepth() const { return events_depth_ + 1; }
  int ArgumentsDepth() const { return events_depth_ + 2; }
  void Open(char bracket);
  void Close(char bracket);
  void Append(std::string_view text);
  void EndArgument(std::string_view text);

  Trace* trace_;
  int depth_ = 0;
  int events_depth_ = 0;  // of the list of events; 0: not seen yet
  bool in_events_ = false;
  bool has_events_ = false;
  bool in_arguments_ = false;
  std::string root_key_, event_key_, argument_key_;
  TextEvent event_;
  std::string nested_;  // of the argument at hand
  std::string rank_, world_size_;
  std::optional<int64_t> base_ns_;
  std::optional<size_t> damaged_at_;
};

}  // namespace syncline::kineto

#endif  // SYNCLINE_KINETO_TEXT_READER_H_
