// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "coordinator/pack/redact_files.h"

namespace syncline::pack {
namespace {

using Json = nlohmann::ordered_json;

// Texts that name nothing of the job or its machines, by their keys.
constexpr std::string_view kPlainKeys[] = {
    "recording_id", "version", "agent_version", "protocol",      "kernel", "machine",
    "cpu_model",    "stamps",  "cpu_features",  "lttng_version", "state",  "severity",
    "sources",      "session", "start_ticks",   "file",
};
constexpr std::string_view kPlainEndings[] = {"_ns",    "_bytes", "_count",
                                              "_inode", "_ticks", "_number"};
constexpr std::string_view kHostKeys[] = {"hostname", "host", "node", "hubs", "nodes"};
constexpr std::string_view kSentences[] = {"what", "fix", "failure", "why_not_better"};
// Why a window or a node stopped, where it is one of these; else a sentence of the agent's.
constexpr std::string_view kReasons[] = {"",           "requested",        "interrupted",
                                         "lost nodes", "coordinator lost", "fetched"};

template <size_t n>
bool IsAmong(const std::string_view (&list)[n], std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

bool IsPlain(std::string_view key) {
  return IsAmong(kPlainKeys, key) ||
         std::any_of(std::begin(kPlainEndings), std::end(kPlainEndings),
                     [&](std::string_view ending) { return key.ends_with(ending); });
}

class Walk {
 public:
  Walk(Pseudonyms* names, std::set<std::string, std::less<>>* words)
      : names_(*names), words_(*words) {}

  // `key` is that of the value, or of the array that it is an element of; `parent` that of the
  // object around it.
  void Visit(const std::string& key, const std::string& parent, Json* value) {
    if (value->is_object()) {
      for (auto& [name, member] : value->items()) {
        words_.insert(name);
        Visit(name, key, &member);
      }
    } else if (value->is_array()) {
      for (Json& element : *value) Visit(key, parent, &element);
    } else if (value->is_string()) {
      *value = Redacted(key, parent, value->get<std::string>());
    }
  }

 private:
  std::string Redacted(const std::string& key, const std::string& parent, const std::string& text) {
    if (text.empty()) return text;
    // A profile's incarnation is a number, and part of the keys of its tensors.
    if (IsPlain(key) || (key == "name" && parent == "channels") ||
        (key == "incarnation" && parent == "profiles")) {
      words_.insert(text);
      return text;
    }
    if (IsAmong(kSentences, key)) return std::string(kRemovedText);
    if (key == "reason" || key == "stop_reason") {
      return IsAmong(kReasons, text) ? text : std::string(kRemovedText);
    }
    if (IsAmong(kHostKeys, key) || (key == "name" && parent == "nodes")) return names_.Host(text);
    if (key == "address") return names_.Address(text);
    if (key == "task") return names_.Task(text);
    if (key == "boot_id") return names_.BootId(text);
    if (key == "path") return RedactTracePath(text, &names_);
    if (key == "user" || key == "job" || key == "incarnation" || key == "role") {
      return names_.Text(text, key.c_str());
    }
    return names_.Text(text);
  }

  Pseudonyms& names_;
  std::set<std::string, std::less<>>& words_;
};

}  // namespace

absl::StatusOr<std::string> RedactJson(std::string_view json, Pseudonyms* names,
                                       std::set<std::string, std::less<>>* words) {
  Json value = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return absl::InvalidArgumentError("it is no whole JSON");
  Walk(names, words).Visit("", "", &value);
  // The small ones are for people, too.
  constexpr size_t kLarge = size_t{1} << 16;
  return absl::StrCat(
      value.dump(json.size() < kLarge ? 2 : -1, ' ', false, Json::error_handler_t::replace), "\n");
}

}  // namespace syncline::pack
