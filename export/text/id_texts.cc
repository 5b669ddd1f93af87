// SPDX-License-Identifier: Apache-2.0
#include "export/text/id_texts.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "export/text/json_text.h"

namespace syncline::text {
namespace {

constexpr uint32_t kLowIds = 1 << 16;  // ids below this are found without hashing

std::string Quoted(std::string_view text) {
  std::string quoted;
  AppendJsonString(text, &quoted);
  return quoted;
}

// A member, or "name = value".
std::string Member(std::string_view name, std::string_view value, bool json) {
  return json ? absl::StrCat("\"", std::string(name), "\":", std::string(value))
              : absl::StrCat(std::string(name), " = ", std::string(value));
}

std::string TextOf(const timeline::ThreadEntry& thread, int32_t pid, bool json) {
  const char* const separator = json ? "," : ", ";
  std::string text = thread.name.empty()
                         ? Member("thread_key", absl::StrCat(thread.thread_key), json)
                         : Member("thread", Quoted(thread.name), json);
  if (thread.tid != 0) {
    absl::StrAppend(&text, separator, Member("tid", absl::StrCat(thread.tid), json));
  }
  if (pid != 0) absl::StrAppend(&text, separator, Member("pid", absl::StrCat(pid), json));
  return text;
}

}  // namespace

NameTexts::NameTexts(const timeline::ProcessEntry& process) {
  const timeline::KnownProcess* const known = process.known;
  for (const auto& [id, name] : process.announced) {
    if (known == nullptr || !known->names.contains(id)) Add(id, name.text);
  }
  if (known == nullptr) return;
  for (const auto& [id, name] : known->names) Add(id, name.text);
}

void NameTexts::Add(uint32_t id, std::string_view text) {
  if (id == 0) return;  // "none", whatever anybody announces
  const Piece* const piece = &pieces_.emplace_back(Quoted(text));
  if (id >= kLowIds) {
    high_[id] = piece;
    return;
  }
  if (id >= low_.size()) low_.resize(id + 1, nullptr);
  low_[id] = piece;
}

NodeIdTexts::NodeIdTexts(const timeline::NodeTables& tables, bool json) {
  for (const timeline::ProcessEntry& process : tables.processes()) {
    names_.emplace_back(process);
    if (process.key.pid == 0) continue;
    Owner(process.owner).processes_[process.process_key] =
        Piece(Member("pid", absl::StrCat(process.key.pid), json));
  }
  for (const timeline::ThreadEntry& thread : tables.threads()) {
    const timeline::ProcessEntry& process = tables.processes()[thread.process];
    Owner(process.owner).threads_[thread.thread_key] = {
        Piece(TextOf(thread, process.key.pid, json)), &names_[thread.process]};
  }
}

IdTexts& NodeIdTexts::Owner(uint32_t owner) {
  if (owner >= owners_.size()) owners_.resize(owner + 1);
  return owners_[owner];
}

}  // namespace syncline::text
