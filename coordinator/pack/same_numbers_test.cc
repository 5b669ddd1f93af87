// SPDX-License-Identifier: Apache-2.0
// A real recording of a TensorFlow job (tests/golden/tensorflow_profile): redacted, no name of it
// is left, and its report has the same numbers.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/files.h"
#include "coordinator/merge/merge.h"
#include "coordinator/pack/redact.h"
#include "export/report/json_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::pack {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::Not;

using Json = nlohmann::json;

// All texts alike, and lists in the order of what is left: those that are sorted by names have
// another order.
Json NumbersOf(const Json& json) {
  Json numbers;
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) numbers[key] = NumbersOf(value);
  } else if (json.is_array()) {
    numbers = Json::array();
    for (const Json& value : json) numbers.push_back(NumbersOf(value));
    std::sort(numbers.begin(), numbers.end());
  } else {
    numbers = json.is_string() ? Json("text") : json;
  }
  return numbers;
}

Json ReportOf(const fs::path& run) {
  merge::ReportOptions options;
  options.input.inputs = {run.string()};
  const auto report = merge::MakeReport(options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? Json::parse(report::ReportJson(*report)) : Json();
}

// `run` redacted, as files below `to`.
void RedactInto(const fs::path& run, const fs::path& to) {
  const auto recording = recording::ReadRecording(run);
  ASSERT_TRUE(recording.ok()) << recording.status();
  auto members = FindMembers(run, *recording);
  ASSERT_TRUE(members.ok()) << members.status();
  auto redactor = Redactor::Create(run, *recording, &*members);
  ASSERT_TRUE(redactor.ok()) << redactor.status();
  for (const Member& member : members->members) {
    const absl::Status collected = redactor->Collect(member);
    ASSERT_TRUE(collected.ok()) << collected;
  }
  for (const Member& member : members->members) {
    const auto path = redactor->PathOf(member);
    const auto redacted = redactor->Redact(member);
    ASSERT_TRUE(path.ok() && redacted.ok()) << path.status() << redacted.status();
    fs::create_directories((to / *path).parent_path());
    const auto bytes = redacted->bytes();
    ASSERT_TRUE(
        WriteFileAtomically(to / *path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()})
            .ok());
  }
}

TEST(SameNumbers, OfARealRecording) {
  const fs::path golden = "tests/golden/tensorflow_profile/run";
  const fs::path made =
      fs::temp_directory_path() / ("same_numbers_test_" + std::to_string(::getpid()));
  RedactInto(golden, made);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(made)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const auto bytes = ReadFile(entry.path());
    ASSERT_TRUE(bytes.ok());
    // Nodes, addresses, users, and names of tasks and of nodes of the graph.
    for (const char* name : {"master-0", "worker-0", "10.77.", "/tmp/", "train_step", "labels",
                             "ConstantFolding", "update_conv1"}) {
      EXPECT_THAT(*bytes, Not(HasSubstr(name))) << entry.path();
      EXPECT_THAT(fs::relative(entry.path(), made).string(), Not(HasSubstr(name)));
    }
  }
  EXPECT_GT(files, 15u);
  const Json before = ReportOf(golden);
  EXPECT_GT(before["tensors"]["edges"].size(), 0u);
  EXPECT_EQ(NumbersOf(before), NumbersOf(ReportOf(made)));
  fs::remove_all(made);
}

}  // namespace
}  // namespace syncline::pack
