// SPDX-License-Identifier: Apache-2.0
// The table of our events, instrumentation/abi/events.h, against the tracepoints, the document that
// says what they mean, and the reader that draws them.
#include "instrumentation/abi/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/text.h"
#include "timeline/schema.h"

namespace {

// Name to fields, "thread u32, name string", as LTTng-UST is told of them.
using Tracepoints = std::map<std::string, std::string>;

Tracepoints& Seen() {
  static auto* const kSeen = new Tracepoints;
  return *kSeen;
}

std::string TypeName(const std::string& c_type) {
  if (c_type == "double") return "f64";
  const bool is_signed = c_type.rfind("int", 0) == 0;
  const std::string bits = c_type.substr(c_type.find_first_of("123468"));
  return (is_signed ? "i" : "u") + bits.substr(0, bits.find('_'));
}

struct See {
  See(const char* provider, const char* name, std::initializer_list<std::string> fields) {
    const std::string text = absl::StrJoin(fields, ", ");
    const auto [entry, is_new] = Seen().try_emplace(absl::StrCat(provider, ":", name), text);
    if (entry->second != text) absl::StrAppend(&entry->second, " or ", text);  // the canary's two
  }
};

}  // namespace

// What the headers of the tracepoints are made of. The LTTng headers that they include are empty
// ones here.
#define LTTNG_UST_TRACEPOINT_EVENT(provider, name, args, fields) \
  SYNCLINE_NUMBERED(provider, name, __COUNTER__, {fields})
#define SYNCLINE_NUMBERED(provider, name, number, ...) \
  SYNCLINE_SEEN(provider, name, number, __VA_ARGS__)
#define SYNCLINE_SEEN(provider, name, number, ...) \
  const See seen_##number(#provider, #name, __VA_ARGS__);
#define LTTNG_UST_TP_ARGS(...)
#define LTTNG_UST_TP_FIELDS(...) __VA_ARGS__
#define lttng_ust_field_integer(type, name, value) absl::StrCat(#name, " ", TypeName(#type)),
#define lttng_ust_field_integer_hex(type, name, value) absl::StrCat(#name, " ", TypeName(#type)),
#define lttng_ust_field_float(type, name, value) absl::StrCat(#name, " ", TypeName(#type)),
#define lttng_ust_field_string(name, value) absl::StrCat(#name, " string"),
#define lttng_ust_field_sequence(type, name, value, length_type, length) \
  absl::StrCat(#name, " ", TypeName(#type), "[]"),

#include "all_tracepoints.h"  // every tracepoints.h there is: CMakeLists.txt

namespace syncline {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

std::string NameOf(const abi::EventRow& row) {
  return absl::StrCat(AbslView(row.provider), ":", AbslView(row.name));
}

// "a, b u32" as "a u32, b u32".
std::string Expand(std::string_view fields) {
  std::vector<std::string> parts = absl::StrSplit(AbslView(fields), ", ");
  std::string type;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const size_t blank = part->find(' ');
    if (blank == std::string::npos) {
      absl::StrAppend(&*part, " ", type);
    } else {
      type = part->substr(blank + 1);
    }
  }
  return absl::StrJoin(parts, ", ");
}

Tracepoints Table() {
  Tracepoints table;
  for (const abi::EventRow& row : abi::kEvents) table[NameOf(row)] = row.fields;
  return table;
}

TEST(EventsTest, EachIsListedOnceAndProvidersTogether) {
  EXPECT_EQ(Table().size(), std::size(abi::kEvents));
  const std::vector<std::string> patterns = abi::EventPatterns();
  EXPECT_EQ(std::set(patterns.begin(), patterns.end()).size(), patterns.size());
}

TEST(EventsTest, FieldsHaveNames) {
  EXPECT_THAT(abi::FieldNames({"p", "e", "a, b u32, c string, d i64[]"}),
              ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(abi::FieldNames({"p", "e", "a u8"}), ElementsAre("a"));
  EXPECT_THAT(abi::FieldNames({"p", "e", ""}), IsEmpty());
}

TEST(EventsTest, AreTheTracepoints) {
  Tracepoints expected = Table();
  for (auto& [name, fields] : expected) fields = Expand(fields);
  EXPECT_THAT(Seen(), ElementsAreArray(expected));
}

// The session's patterns are made of the rows: whatever is a tracepoint is recorded.
TEST(EventsTest, ProvidersOfAllTracepointsAreRecorded) {
  std::set<std::string> providers;
  for (const auto& [name, fields] : Seen()) providers.insert(name.substr(0, name.find(':')) + ":*");
  EXPECT_THAT(abi::EventPatterns(), UnorderedElementsAreArray(providers));
}

// Tables of the document whose first column is "event", and whose second one is "fields".
Tracepoints Documented(std::istream& document) {
  Tracepoints events;
  bool in_table = false;
  for (std::string line; std::getline(document, line);) {
    if (line.rfind("| event | fields |", 0) == 0) in_table = true;
    if (line.rfind("| ", 0) != 0) in_table = in_table && line.rfind("|", 0) == 0;
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (!in_table || cells.size() < 3 || !absl::StrContains(cells[1], '`')) continue;
    std::string provider;
    for (const std::string& part : std::vector<std::string>(absl::StrSplit(cells[1], ", "))) {
      const std::vector<std::string> quoted = absl::StrSplit(part, '`');
      const std::string& name = quoted.at(1);  // "syncline_itt:x", or as before it: "y"
      const size_t colon = name.find(':');
      if (colon != std::string::npos) provider = name.substr(0, colon);
      const std::string whole =
          colon == std::string::npos ? absl::StrCat(provider, ":", name) : name;
      EXPECT_TRUE(events.emplace(whole, absl::StripAsciiWhitespace(cells[2])).second) << whole;
    }
  }
  return events;
}

TEST(EventsTest, AreDocumented) {
  const auto text = ReadFile("docs/event-schema.md");
  ASSERT_TRUE(text.ok()) << text.status();
  std::istringstream document(*text);
  EXPECT_THAT(Documented(document), ElementsAreArray(Table()));
}

TEST(EventsTest, TheTimelineKnowsThem) {
  for (const abi::EventRow& row : abi::kEvents) {
    const timeline::EventKind kind = timeline::KindOf(NameOf(row));
    EXPECT_EQ(kind, row.kind) << NameOf(row);
    EXPECT_NE(kind, timeline::EventKind::kForeign) << NameOf(row);
    const bool of_a_thread = row.fields.rfind("thread", 0) == 0;
    EXPECT_EQ(timeline::HasThread(kind), of_a_thread) << NameOf(row);
  }
  EXPECT_EQ(timeline::KindOf("syncline_itt"), timeline::EventKind::kForeign);
  EXPECT_EQ(timeline::KindOf("syncline_itt:no_such"), timeline::EventKind::kForeign);
}

}  // namespace
}  // namespace syncline
