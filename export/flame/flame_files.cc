// SPDX-License-Identifier: Apache-2.0
#include "export/flame/flame_files.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status.h"
#include "common/utf8.h"
#include "export/output_file.h"

namespace syncline::flame {
namespace {

using analysis::SampledFrame;
using analysis::SampledStacks;
using analysis::SampledThread;

// The format has no way to say that a name holds its separator.
std::string FoldedName(std::string_view name) {
  return absl::StrReplaceAll(OnlyPrintable(name, ' '), {{";", ":"}});
}

std::string NameOf(const SampledFrame& frame) {
  switch (frame.kind) {
    case SampledFrame::Kind::kTask:
      return absl::StrCat(frame.name, " [task]");
    case SampledFrame::Kind::kKernel:
      return absl::StrCat(frame.name, "_[k]");
    case SampledFrame::Kind::kFunction:
      break;
  }
  return frame.name;
}

nlohmann::ordered_json FrameJson(const SampledFrame& frame) {
  nlohmann::ordered_json json = {{"name", RepairedUtf8(NameOf(frame))}};
  if (!frame.file.empty()) json["file"] = RepairedUtf8(frame.file);
  if (frame.line > 0) json["line"] = frame.line;
  return json;
}

nlohmann::ordered_json ProfileJson(const SampledThread& thread) {
  const auto count = static_cast<int64_t>(thread.samples.size());
  return {{"type", "sampled"},
          {"name", RepairedUtf8(absl::StrCat(thread.process, " · ", thread.thread))},
          {"unit", "nanoseconds"},
          {"startValue", 0},
          {"endValue", count * thread.period_ns},
          {"samples", thread.samples},
          {"weights", std::vector<int64_t>(thread.samples.size(), thread.period_ns)}};
}

absl::Status Write(const std::filesystem::path& path, std::string_view text) {
  OutputFile file(path);
  file.buffer()->append(text);
  return file.Close();
}

}  // namespace

std::string FoldedText(const SampledStacks& stacks) {
  std::vector<std::string> names;
  for (const SampledFrame& frame : stacks.frames) names.push_back(FoldedName(NameOf(frame)));
  std::map<std::string, uint64_t> lines;
  for (const SampledThread& thread : stacks.threads) {
    const std::string begin =
        absl::StrCat(FoldedName(thread.process), ";", FoldedName(thread.thread));
    for (const std::vector<uint32_t>& sample : thread.samples) {
      std::string line = begin;
      for (const uint32_t frame : sample) absl::StrAppend(&line, ";", names[frame]);
      ++lines[line];
    }
  }
  std::string text;
  for (const auto& [line, samples] : lines) absl::StrAppend(&text, line, " ", samples, "\n");
  return text;
}

std::string SpeedscopeJson(const SampledStacks& stacks) {
  nlohmann::ordered_json json = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                                 {"exporter", "syncline"},
                                 {"name", "processor time by task and function"},
                                 {"activeProfileIndex", 0}};
  nlohmann::ordered_json& frames = json["shared"]["frames"] = nlohmann::ordered_json::array();
  for (const SampledFrame& frame : stacks.frames) frames.push_back(FrameJson(frame));
  nlohmann::ordered_json& profiles = json["profiles"] = nlohmann::ordered_json::array();
  // The viewer shows the first one at first: the busiest.
  std::vector<const SampledThread*> threads;
  for (const SampledThread& thread : stacks.threads) threads.push_back(&thread);
  std::stable_sort(threads.begin(), threads.end(),
                   [](const SampledThread* a, const SampledThread* b) {
                     return a->samples.size() > b->samples.size();
                   });
  for (const SampledThread* thread : threads) profiles.push_back(ProfileJson(*thread));
  return json.dump() + "\n";
}

absl::Status WriteFiles(const SampledStacks& stacks, const std::filesystem::path& directory) {
  SYNCLINE_RETURN_IF_ERROR(Write(directory / "stacks.folded", FoldedText(stacks)));
  return Write(directory / "speedscope.json", SpeedscopeJson(stacks));
}

}  // namespace syncline::flame
