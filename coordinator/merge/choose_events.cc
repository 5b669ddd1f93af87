// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/choose_events.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/event_filter.h"

namespace syncline::merge {
namespace {

constexpr size_t kNamesMax = 8;
constexpr size_t kNameCharactersMax = 256;  // of longer ones, none is near

// How many characters must be changed, added or taken away to make `a` of `b`.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string Listed(const std::set<std::string>& names) {
  std::vector<std::string> listed(names.begin(), names.end());
  const bool more = listed.size() > kNamesMax;
  if (more) listed.resize(kNamesMax);
  return absl::StrCat(absl::StrJoin(listed, ", "), more ? " and others" : "");
}

// "PROVIDER:*"; of a name without provider itself.
std::string AllBeside(const std::string& name) {
  const size_t colon = name.find(':');
  return colon == std::string::npos ? name : name.substr(0, colon) + ":*";
}

// What there is, by provider; names without one only where there is no other.
std::string Providers(const std::set<std::string>& names) {
  std::set<std::string> providers;
  std::set<std::string> others;
  for (const std::string& name : names) {
    (name.find(':') == std::string::npos ? others : providers).insert(AllBeside(name));
  }
  return absl::StrCat("there are: ", Listed(providers.empty() ? others : providers));
}

}  // namespace

std::string NamesNear(const std::string& pattern, const std::set<std::string>& names) {
  const std::vector<std::string> pieces =
      absl::StrSplit(absl::AsciiStrToLower(pattern), '*', absl::SkipEmpty());
  const std::string plain = absl::StrJoin(pieces, "");
  std::set<std::string> near;
  for (const std::string& name : names) {  // a provider is missing, or other letters are large
    const std::string lower = absl::AsciiStrToLower(name);
    const bool has_all = std::all_of(pieces.begin(), pieces.end(), [&](const std::string& piece) {
      return lower.find(piece) != std::string::npos;
    });
    if (has_all && !pieces.empty()) near.insert(name);
  }
  // Mistyped: those that differ least.
  size_t distance_max = std::max<size_t>(2, plain.size() / 4);
  const bool compare = near.empty() && plain.size() <= kNameCharactersMax;
  for (const std::string& name : names) {
    if (!compare || name.size() > kNameCharactersMax) continue;
    const std::string lower = absl::AsciiStrToLower(name);
    const std::string_view event = std::string_view(lower).substr(lower.find(':') + 1);
    const bool of_provider = plain.ends_with(':') && event.size() < lower.size();
    const std::string_view provider = std::string_view(lower).substr(0, lower.find(':') + 1);
    const size_t distance = of_provider ? Distance(plain, provider)
                                        : std::min(Distance(plain, lower), Distance(plain, event));
    if (distance > distance_max) continue;
    if (distance < distance_max) near.clear();
    distance_max = distance;
    near.insert(of_provider ? AllBeside(name) : name);
  }
  return near.empty() ? Providers(names) : absl::StrCat("near to it: ", Listed(near));
}

absl::Status ChooseEvents(const std::vector<std::string>& patterns, OpenedInputs* inputs) {
  std::vector<std::string> wanted;
  for (const std::string& pattern : patterns) {
    wanted.emplace_back(absl::StripAsciiWhitespace(pattern));
    if (wanted.back().empty()) {
      return absl::InvalidArgumentError(
          "--events takes names of events, separated by commas, e.g. 'syncline_itt:*,*:malloc'");
    }
  }
  if (wanted.empty()) return absl::OkStatus();
  std::set<std::string> names;
  for (const auto& reader : inputs->readers) {
    for (const EventClass* event_class : reader->classes()) names.insert(event_class->name);
  }
  for (const std::string& pattern : wanted) {
    const bool fits = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return MatchesPattern(pattern, name);
    });
    if (fits || names.empty()) continue;  // without any, what is missing was complained about
    return absl::InvalidArgumentError(
        absl::StrCat("no event here is called '", pattern, "'; ", NamesNear(pattern, names),
                     inputs->complaints.empty() ? "" : "\nNot everything could be looked at: ",
                     absl::StrJoin(inputs->complaints, "; ")));
  }
  inputs->build.events = EventPatterns(std::move(wanted));
  return absl::OkStatus();
}

}  // namespace syncline::merge
