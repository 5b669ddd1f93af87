// SPDX-License-Identifier: Apache-2.0
#include "export/testing/perfetto_query.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files.h"

namespace syncline::export_testing {
namespace {

std::optional<std::string> QueryProgram() {
  const char* named = std::getenv("SYNCLINE_TRACE_PROCESSOR");
  const std::string path = named != nullptr ? named : "../shared/tools/trace_processor/query.mjs";
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path;
}

}  // namespace

void PerfettoQuery::SetUp() {
  program_ = QueryProgram();
  if (!program_.has_value()) {
    GTEST_SKIP() << "no trace processor: set SYNCLINE_TRACE_PROCESSOR to its query.mjs";
  }
  std::array<char, 32> name{"/tmp/syncline-perfetto-XXXXXX"};
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  directory_ = name.data();
}

void PerfettoQuery::TearDown() {
  if (!directory_.empty()) std::filesystem::remove_all(directory_);
}

std::vector<std::string> PerfettoQuery::Query(const std::string& trace,
                                              const std::vector<std::string>& queries) {
  const std::string path = directory_ / "trace";
  std::ofstream(path, std::ios::binary) << trace;
  std::string command = absl::StrCat("node ", *program_, " ", path);
  for (const std::string& sql : queries) {
    absl::StrAppend(&command, " \"", sql, "\" \"select 'END' as mark\"");
  }
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string out;
  std::array<char, 4096> chunk;
  while (const size_t n = fread(chunk.data(), 1, chunk.size(), pipe)) out.append(chunk.data(), n);
  EXPECT_EQ(pclose(pipe), 0) << out;
  return absl::StrSplit(out, "mark\nEND\n");
}

std::string ReadCase(const std::string& name) {
  const auto text = ReadFile("tests/golden/timeline/" + name + ".txt");
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? text->substr(0, text->find("--- timeline")) : "";
}

}  // namespace syncline::export_testing
