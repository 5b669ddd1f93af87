// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_answer.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "agent/stacks/json_fields.h"

namespace syncline::agent {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr size_t kStacksMax = 256;
constexpr size_t kFramesMax = 256;
constexpr size_t kNamesMax = 64;
constexpr size_t kGroupsMax = 1024;
constexpr size_t kRanksBytesMax = 64 << 10;

bool IsTrue(const Json* value) {
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

// Calls `use` with the first `most` elements; how many there are more.
template <class Use>
size_t ForEach(const Json* list, size_t most, const Use& use) {
  if (list == nullptr || !list->is_array()) return 0;
  const size_t count = std::min(list->size(), most);
  for (size_t i = 0; i < count; ++i) use((*list)[i]);
  return list->size() - count;
}

void ReadThreads(const Json& json, v1::PythonThreads* threads) {
  ForEach(FindField(json, "names"), kNamesMax,
          [&](const Json& name) { threads->add_names(TextOf(&name)); });
  threads->set_count(std::max(1u, CountOf(FindField(json, "count"))));
  threads->set_main(IsTrue(FindField(json, "main")));
  ForEach(FindField(json, "frames"), kFramesMax, [&](const Json& json_frame) {
    if (!json_frame.is_array() || json_frame.size() != 3) return;
    v1::StackFrame& frame = *threads->add_frames();
    frame.set_function(TextOf(&json_frame[0]));
    frame.set_file(TextOf(&json_frame[1]));
    frame.set_line_number(CountOf(&json_frame[2]));
  });
  const uint32_t left_out = CountOf(FindField(json, "left_out"));
  const uint32_t behind = CountOf(FindField(json, "left_out_behind"));
  threads->set_frames_left_out_count(left_out);
  if (left_out > 0 && behind < static_cast<uint32_t>(threads->frames_size())) {
    threads->mutable_frames(static_cast<int>(behind))->set_left_out_behind(true);
  }
}

void ReadGroup(const Json& json, v1::ProcessGroupState* group) {
  group->set_name(TextOf(FindField(json, "name")));
  group->set_description(TextOf(FindField(json, "description")));
  group->set_ranks(TextOf(FindField(json, "ranks"), kRanksBytesMax));
  const int64_t rank = NumberOf(FindField(json, "rank"), -1);
  const bool is_rank = rank >= 0 && rank <= std::numeric_limits<int32_t>::max();
  group->set_rank(is_rank ? static_cast<int32_t>(rank) : -1);
  group->set_backend(TextOf(FindField(json, "backend")));
  const auto number = [&](const char* key) {
    return std::max(int64_t{-1}, NumberOf(FindField(json, key), -1));
  };
  group->set_sequence_number(number("sequence_number"));
  group->set_collective_number(number("collective_number"));
  group->set_collective(TextOf(FindField(json, "collective")));
  group->set_collective_pending(IsTrue(FindField(json, "collective_pending")));
  group->set_pending_number(number("pending_number"));
  group->set_pending(TextOf(FindField(json, "pending")));
  group->set_first_look_sequence_number(-1);
  group->set_first_look_collective_number(-1);
  group->set_first_look_pending_number(-1);
}

const v1::PythonThreads* MainThread(const v1::ProcessStacks& stacks) {
  for (const v1::PythonThreads& threads : stacks.threads()) {
    if (threads.main()) return &threads;
  }
  return nullptr;
}

bool StandsAt(const v1::PythonThreads* a, const v1::PythonThreads* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return SameFrames(*a, *b);
}

}  // namespace

absl::StatusOr<StackAnswer> ParseStackAnswer(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("The process's answer is not JSON");
  const int64_t version = NumberOf(FindField(json, "format_version"), 0);
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("The process's answer has the version ", version,
                                                   ", this agent reads ", kVersion));
  }
  StackAnswer answer;
  answer.number = CountOf(FindField(json, "number"));
  answer.begin_ns = NumberOf(FindField(json, "begin_ns"), 0);
  answer.stacks.set_source(v1::ProcessStacks::HOOK);
  size_t left_out = ForEach(FindField(json, "threads"), kStacksMax, [&](const Json& threads) {
    ReadThreads(threads, answer.stacks.add_threads());
  });
  left_out += CountOf(FindField(json, "threads_left_out"));
  answer.stacks.set_threads_left_out_count(static_cast<uint32_t>(left_out));
  ForEach(FindField(json, "groups"), kGroupsMax,
          [&](const Json& group) { ReadGroup(group, answer.stacks.add_groups()); });
  return answer;
}

void AddFirstLook(const v1::ProcessStacks& first, v1::ProcessStacks* second) {
  second->set_answered_twice(true);
  second->set_main_thread_moved(!StandsAt(MainThread(first), MainThread(*second)));
  for (v1::ProcessGroupState& group : *second->mutable_groups()) {
    const auto before =
        std::find_if(first.groups().begin(), first.groups().end(), [&](const auto& one) {
          return one.name() == group.name() && one.ranks() == group.ranks();
        });
    if (before == first.groups().end()) continue;
    group.set_first_look_sequence_number(before->sequence_number());
    group.set_first_look_collective_number(before->collective_number());
    group.set_first_look_pending_number(before->pending_number());
  }
}

}  // namespace syncline::agent
