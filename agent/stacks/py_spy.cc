// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/py_spy.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "agent/session/output_memory.h"
#include "agent/session/spawn.h"
#include "agent/stacks/json_fields.h"
#include "common/status.h"
#include "common/text.h"
#include "common/utf8.h"

namespace syncline::agent {
namespace {

using Json = nlohmann::json;

constexpr size_t kOutputBytesMax = 2 << 20;
constexpr size_t kThreadsMax = 256;
constexpr size_t kFramesMax = 256;

v1::PythonThreads ReadThread(const Json& json, int32_t pid) {
  v1::PythonThreads threads;
  threads.set_count(1);
  const std::string name = TextOf(FindField(json, "thread_name"));
  if (!name.empty()) threads.add_names(name);
  threads.set_main(name == "MainThread" || NumberOf(FindField(json, "os_thread_id"), 0) == pid);
  const auto frames = json.find("frames");
  if (frames == json.end() || !frames->is_array()) return threads;
  for (const Json& one : *frames) {
    if (!one.is_object()) continue;
    if (threads.frames_size() == static_cast<int>(kFramesMax)) {
      threads.set_frames_left_out_count(threads.frames_left_out_count() + 1);
      continue;
    }
    v1::StackFrame& frame = *threads.add_frames();
    frame.set_function(TextOf(FindField(one, "name")));
    frame.set_file(TextOf(FindField(one, "filename")));
    frame.set_line_number(CountOf(FindField(one, "line")));
  }
  if (threads.frames_left_out_count() > 0) {
    threads.mutable_frames(threads.frames_size() - 1)->set_left_out_behind(true);
  }
  return threads;
}

bool SameStack(const v1::PythonThreads& a, const v1::PythonThreads& b) {
  return a.frames_left_out_count() == b.frames_left_out_count() && SameFrames(a, b);
}

}  // namespace

absl::Status ParsePySpy(const std::string& text, int32_t pid, v1::ProcessStacks* stacks) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return absl::InvalidArgumentError("py-spy printed no list of threads");
  std::vector<v1::PythonThreads> folded;
  uint32_t left_out = 0;
  for (const Json& one : json) {
    if (!one.is_object()) continue;
    v1::PythonThreads thread = ReadThread(one, pid);
    const auto same = std::find_if(folded.begin(), folded.end(),
                                   [&](const auto& threads) { return SameStack(threads, thread); });
    if (same != folded.end()) {
      same->set_count(same->count() + 1);
      same->set_main(same->main() || thread.main());
      if (same->names_size() < 8) same->mutable_names()->MergeFrom(thread.names());
    } else if (folded.size() < kThreadsMax) {
      folded.push_back(std::move(thread));
    } else {
      ++left_out;
    }
  }
  std::stable_sort(folded.begin(), folded.end(),
                   [](const auto& a, const auto& b) { return a.main() && !b.main(); });
  for (v1::PythonThreads& threads : folded) *stacks->add_threads() = std::move(threads);
  stacks->set_threads_left_out_count(left_out);
  return absl::OkStatus();
}

absl::Status AddPySpyThreads(const std::string& program, int32_t pid, int limit_ms,
                             v1::ProcessStacks* stacks) {
  SYNCLINE_ASSIGN_OR_RETURN(const Descriptor file, MakeOutputMemory("py-spy", kOutputBytesMax));
  const auto child = Spawn(
      {.arguments = {program, "dump", "--json", "--nonblocking", "--pid", std::to_string(pid)},
       // Its warnings would come between its JSON.
       .environment = {{"RUST_BACKTRACE", "0"}, {"RUST_LOG", "off"}},
       .pass_as_output = file.get()});
  if (absl::IsNotFound(child.status())) return absl::NotFoundError("py-spy is not installed");
  if (!child.ok()) return child.status();
  const auto exit_code = WaitForExit(*child, limit_ms);
  if (!exit_code.ok()) return WithContext(exit_code.status(), "py-spy");
  const std::string text = ReadOutputMemory(file.get(), kOutputBytesMax);
  if (*exit_code != 0) {
    const std::string said(absl::StripAsciiWhitespace(text.substr(0, text.find('\n'))));
    return absl::FailedPreconditionError(absl::StrCat("py-spy: ", AbslView(CutText(said, 200))));
  }
  return ParsePySpy(text, pid, stacks);
}

}  // namespace syncline::agent
