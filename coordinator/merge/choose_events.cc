// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/choose_events.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/event_filter.h"
#include "common/status.h"
#include "timeline/id_fields.h"

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

std::set<std::string> ClassNames(const OpenedInputs& inputs) {
  std::set<std::string> names;
  for (const auto& reader : inputs.readers) {
    for (const EventClass* event_class : reader->classes()) names.insert(event_class->name);
  }
  return names;
}

bool FitsAny(const std::string& pattern, const std::set<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return MatchesPattern(pattern, name); });
}

// PATTERN of "name:PATTERN".
std::optional<std::string> NamePart(const std::string& pattern) {
  constexpr std::string_view kPrefix = "name:";
  if (!pattern.starts_with(kPrefix)) return std::nullopt;
  return pattern.substr(kPrefix.size());
}

std::string Unseen(const OpenedInputs& inputs) {
  if (inputs.complaints.empty()) return "";
  return absl::StrCat("\nNot everything could be looked at: ",
                      absl::StrJoin(inputs.complaints, "; "));
}

// InvalidArgument: nobody has such a name.
absl::Status WantName(const std::string& pattern, EventNames* names, const OpenedInputs& inputs) {
  if (!names->Knows(pattern)) {
    SYNCLINE_ASSIGN_OR_RETURN(const std::set<std::string> all, names->All());
    if (!FitsAny(pattern, all)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "nothing here has the name '", pattern, "'; ",
          all.empty() ? "no event here has one" : NamesNear(pattern, all), Unseen(inputs)));
    }
  }
  names->Want(pattern);
  return absl::OkStatus();
}

absl::Status Ambiguous(const std::string& pattern) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", pattern, "' could mean events that are called so, or those with the name '",
                   *NamePart(pattern), "'; for the former, write '*", pattern, "'"));
}

bool FitsWithIds(const std::vector<std::string>& patterns, const OpenedInputs& inputs) {
  const EventPatterns wanted(patterns);
  return std::any_of(inputs.readers.begin(), inputs.readers.end(), [&](const auto& reader) {
    const std::vector<const EventClass*> classes = reader->classes();
    return std::any_of(classes.begin(), classes.end(), [&](const EventClass* one) {
      return wanted.Matches(one->name) && timeline::HasIds(*one);
    });
  });
}

std::vector<std::string> Stripped(const std::vector<std::string>& patterns) {
  std::vector<std::string> stripped;
  for (const std::string& pattern : patterns) {
    stripped.emplace_back(absl::StripAsciiWhitespace(pattern));
  }
  return stripped;
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

bool TakesNames(const std::vector<std::string>& patterns, bool raw, const OpenedInputs& inputs) {
  const std::vector<std::string> wanted = Stripped(patterns);
  if (!raw && FitsWithIds(wanted, inputs)) return true;
  const std::set<std::string> classes = ClassNames(inputs);
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& pattern) {
    return NamePart(pattern).has_value() || !FitsAny(pattern, classes);
  });
}

absl::Status ChooseEvents(const std::vector<std::string>& patterns, OpenedInputs* inputs,
                          EventNames* names) {
  std::vector<std::string> wanted = Stripped(patterns);
  if (wanted.empty()) return absl::OkStatus();
  if (std::find(wanted.begin(), wanted.end(), "") != wanted.end()) {
    return absl::InvalidArgumentError(
        "--events takes names of events, separated by commas, e.g. 'syncline_itt:*,*:malloc'");
  }
  const std::set<std::string> classes = ClassNames(*inputs);
  for (const std::string& pattern : wanted) {
    const bool fits = FitsAny(pattern, classes);
    const std::optional<std::string> name = NamePart(pattern);
    if (fits && name.has_value() && names != nullptr && names->Knows(*name)) {
      return Ambiguous(pattern);
    }
    if (fits || classes.empty()) continue;  // without any, what is missing was complained about
    if (name.has_value() && names != nullptr) {
      SYNCLINE_RETURN_IF_ERROR(WantName(*name, names, *inputs));
      continue;
    }
    std::string hint = NamesNear(pattern, classes);
    if (name.has_value()) hint = "'name:...' is for `syncline events` alone";
    if (names != nullptr && names->Knows(pattern)) {
      hint = absl::StrCat("events with that name: 'name:", pattern, "'");
    }
    return absl::InvalidArgumentError(
        absl::StrCat("no event here is called '", pattern, "'; ", hint, Unseen(*inputs)));
  }
  // Those of names fit no class: the look at each event finds them.
  inputs->build.events = EventPatterns(std::move(wanted));
  return absl::OkStatus();
}

}  // namespace syncline::merge
