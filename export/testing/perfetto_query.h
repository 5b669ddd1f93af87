// SPDX-License-Identifier: Apache-2.0
// Test support: what Perfetto's own engine makes of a trace, and the golden scenarios to ask it of.
//
// The engine is no part of this repository: $SYNCLINE_TRACE_PROCESSOR names a program that takes a
// trace and queries and prints tab-separated tables. Where it is missing the tests are skipped.
#ifndef SYNCLINE_EXPORT_TESTING_PERFETTO_QUERY_H_
#define SYNCLINE_EXPORT_TESTING_PERFETTO_QUERY_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace syncline::export_testing {

class PerfettoQuery : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // The rows of each query, without the column names. The engine takes seconds to start.
  std::vector<std::string> Query(const std::string& trace, const std::vector<std::string>& queries);

 private:
  std::optional<std::string> program_;
  std::filesystem::path directory_;
};

// The scenario of tests/golden/timeline/<name>.txt.
std::string ReadCase(const std::string& name);

}  // namespace syncline::export_testing

#endif  // SYNCLINE_EXPORT_TESTING_PERFETTO_QUERY_H_
