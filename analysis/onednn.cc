// SPDX-License-Identifier: Apache-2.0
#include "analysis/onednn.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace syncline::analysis {
namespace {

constexpr size_t kFieldsMin = 5;  // up to the data; all after it may be missing
constexpr size_t kFieldAttributes = 5;
constexpr size_t kFieldAlgorithm = 6;
constexpr size_t kFieldShapes = 7;
constexpr std::array<std::string_view, 12> kTypes = {
    "f64", "f32", "f16", "bf16", "s64", "s32", "s8", "u8", "s4", "u4", "tf32", "boolean"};
constexpr std::string_view kNoType = "undef";  // of data that is not there
// Beginnings of instruction sets' names.
constexpr std::array<std::string_view, 6> kSets = {"avx", "sse", "sve", "asimd", "rvv", "vsx"};

// By place. Since oneDNN 3.12 those from fp16 on are called by versions of AVX10.
constexpr std::array<std::pair<std::string_view, size_t>, 20> kPlaces = {{
    {"sse41", 0},
    {"avx", 1},
    {"avx2", 2},
    {"avx2_vnni", 3},
    {"avx2_vnni_2", 4},
    {"avx512_core", 5},
    {"avx512_core_vnni", 6},
    {"avx512_core_bf16", 7},
    {"avx512_core_fp16", 8},
    {"avx10_1_512", 8},
    {"avx512_core_amx", 9},
    {"avx10_1_512_amx", 9},
    {"avx512_core_amx_fp16", 10},
    {"avx10_1_512_amx_fp16", 10},
    {"avx10_2", 11},
    {"avx10_2_512", 11},
    {"avx10_2_amx", 12},
    {"avx10_2_512_amx", 12},
    {"avx10_2_amx_2", 12},
    {"avx10_2_512_amx_2", 12},
}};

struct Data {
  std::string name;  // "src", "wei", "dst", "diff_src"
  std::string type;
  std::string layout;
};

std::vector<std::string_view> Split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find(at)) != std::string_view::npos; text.remove_prefix(end + 1)) {
    parts.push_back(text.substr(0, end));
  }
  parts.push_back(text);
  return parts;
}

bool IsType(std::string_view word) {
  return std::find(kTypes.begin(), kTypes.end(), word) != kTypes.end() || word.starts_with("f8_") ||
         word.starts_with("f4_");
}

// "src:f32:a:blocked:abcd::f0", or, of oneDNN 2, "src_f32::blocked:abcd:f0". Where it has no layout
// by name, how it is kept ("any", "opaque") stands for it.
std::optional<Data> ParseData(std::string_view word) {
  const std::vector<std::string_view> parts = Split(word, ':');
  if (parts.size() < 4) return std::nullopt;
  Data data;
  size_t next = 2;
  const size_t line = parts[0].rfind('_');
  if (line != std::string_view::npos && IsType(parts[0].substr(line + 1))) {
    data.name = parts[0].substr(0, line);
    data.type = parts[0].substr(line + 1);
    next = 1;
  } else {
    data.name = parts[0];
    data.type = parts[1];
  }
  const auto blocked = std::find(parts.begin() + static_cast<int>(next), parts.end(), "blocked");
  if (blocked != parts.end() && blocked + 1 != parts.end()) {
    data.layout = *(blocked + 1);
  } else if (next + 1 < parts.size()) {
    data.layout = parts[next + 1];
  }
  return data;
}

// "f32" where all have the same; of a reorder "f32 → bf16"; else with the data's names.
template <class Get>
std::string Joined(const std::vector<Data>& all, bool reorder, bool fold, Get get) {
  if (all.empty()) return "";
  const bool same = std::all_of(all.begin(), all.end(),
                                [&](const Data& data) { return get(data) == get(all.front()); });
  if (fold && same) return get(all.front());
  if (reorder && all.size() == 2) return absl::StrCat(get(all[0]), " → ", get(all[1]));
  std::vector<std::string> words;
  for (const Data& data : all) {
    if (!get(data).empty()) words.push_back(absl::StrCat(data.name, " ", get(data)));
  }
  return absl::StrJoin(words, ", ");
}

std::string AttributesOf(std::string_view field) {
  std::string attributes;
  for (const std::string_view word : Split(field, ' ')) {
    if (word.empty() || word.starts_with("attr-scratchpad")) continue;
    if (!attributes.empty()) attributes += ' ';
    attributes += word;
  }
  return attributes;
}

}  // namespace

bool IsPrimitive(std::string_view domain) {
  return domain.starts_with("dnnl") || domain.starts_with("oneDNN");
}

bool IsExecution(std::string_view domain) {
  return IsPrimitive(domain) && domain.ends_with("execute");
}

bool IsReorder(std::string_view kind) { return kind == "reorder"; }

std::optional<PrimitiveDescription> ParsePrimitive(std::string_view line) {
  const std::vector<std::string_view> fields = Split(line, ',');
  if (fields.size() < kFieldsMin || fields[0] != "cpu" || fields[1].empty()) return std::nullopt;
  std::vector<Data> all;
  for (const std::string_view word : Split(fields[4], ' ')) {
    auto data = ParseData(word);
    if (data.has_value() && data->type != kNoType) all.push_back(*std::move(data));
  }
  if (all.empty()) return std::nullopt;
  PrimitiveDescription description;
  description.kind = fields[1];
  description.implementation = fields[2];
  if (fields[3] != "undef") description.propagation = fields[3];
  const bool reorder = IsReorder(fields[1]);
  description.types = Joined(all, reorder, true, [](const Data& data) { return data.type; });
  description.layouts = Joined(all, reorder, false, [](const Data& data) { return data.layout; });
  if (fields.size() > kFieldShapes) {
    description.attributes = AttributesOf(fields[kFieldAttributes]);
    description.algorithm = fields[kFieldAlgorithm];
    description.shapes = fields[kFieldShapes];
  }
  return description;
}

PrimitiveDescription WorkAlone(PrimitiveDescription description) {
  description.implementation.clear();
  description.layouts.clear();
  return description;
}

std::string_view InstructionSetOf(std::string_view implementation) {
  for (const std::string_view word : Split(implementation, ':')) {
    for (const std::string_view set : kSets) {
      // Of several steps ("brg_conv_bwd:avx512_core+brg_conv_fwd:avx512_core") the first one's.
      if (word.starts_with(set)) return word.substr(0, word.find('+'));
    }
  }
  return {};
}

std::optional<size_t> InstructionSetPlace(std::string_view set) {
  const auto* const found = std::find_if(kPlaces.begin(), kPlaces.end(),
                                         [&](const auto& one) { return one.first == set; });
  if (found == kPlaces.end()) return std::nullopt;
  return found->second;
}

bool IsReference(std::string_view implementation) {
  return implementation == "ref" || implementation.starts_with("ref:");
}

}  // namespace syncline::analysis
