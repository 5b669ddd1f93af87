// SPDX-License-Identifier: Apache-2.0
// A made-up PyTorch job of two ranks, in which one is late and both have tasks, threads and files
// with names of their own: a redacted pack of it gives the same answer of `why`, the same report
// and the same events, but for the names.
#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "coordinator/merge/test_recording.h"
#include "coordinator/merge/why.h"
#include "coordinator/pack/pack.h"
#include "coordinator/pack/report_numbers.h"
#include "export/why/why_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "timeline/testing/two_node_job.h"

namespace syncline::pack {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::Not;
using timeline::testing::kJobOffsetNs;
using timeline::testing::kJobStepNs;
using timeline::testing::kJobSteps;
using timeline::testing::kJobZeroNs;

constexpr int64_t kUs = 1'000;
constexpr int64_t kLateNs = 800 * kUs;

// What one rank recorded; the clock of its node reads `zero_ns` at T.
std::string RankText(const char* node, int64_t zero_ns, int rank) {
  std::vector<std::pair<int64_t, std::string>> events;
  const auto add = [&](int64_t at_ns, const std::string& event) {
    events.emplace_back(zero_ns + at_ns, event);
  };
  const auto task = [&](int thread, int name, int64_t begin_ns, int64_t end_ns, int domain = 8) {
    const std::string fields =
        absl::StrCat(" thread=", thread, " domain=", domain, " name=", name, " depth=0");
    add(begin_ns, "syncline_itt:task_begin" + fields);
    add(end_ns, "syncline_itt:task_end" + fields);
  };
  add(50 * kUs, "syncline:on generation=1 process=1 pid=+10 pidns=5 start_ticks=7");
  add(60 * kUs, "syncline_torch:operators thread=7 on=1");
  add(61 * kUs, "syncline_torch:operators thread=8 on=1");
  add(70 * kUs, absl::StrCat("syncline_torch:group thread=7 group=5 description=6 ranks=7 rank=+",
                             rank, " size=2 sequence=40"));
  for (int64_t step = 0; step < 62; ++step) {
    const int64_t at = 5'000 * kUs + step * 3'000 * kUs;
    const int64_t launch_ns = at + 1'000 * kUs + rank * kLateNs;
    const int64_t left_ns = at + 1'600 * kUs + kLateNs;
    task(7, 1, at, at + 300 * kUs);
    task(7, step % 2 == 0 ? 9 : 10, at + 400 * kUs, launch_ns - 10 * kUs, 11);
    task(7, 2, launch_ns, launch_ns + 50 * kUs);
    task(8, 3, launch_ns + 60 * kUs, left_ns);
    task(7, 4, left_ns + 50 * kUs, left_ns + 250 * kUs);
  }
  add(kJobSteps * kJobStepNs + 10 * kUs, absl::StrCat("syncline:off generation=1 process=1 events=",
                                                      events.size() + 1, " lost=0 cost_ns=1000"));
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text =
      absl::StrCat("node ", node, " shift ", -zero_ns,
                   "\nenv tracer_buffering_scheme uid\nenv tracer_buffering_id 0\n"
                   "process key=1 uid=0 pid=10 pidns=5 ticks=7 rank=",
                   rank,
                   " command=\"/acme/python -u /home/acme/train.py --lr 1\"\n"
                   "thread 7 10 acme_thread\nthread 8 11 pt_gloo_runner\n"
                   "name 1 aten::conv2d\nname 2 c10d::allreduce_\nname 3 gloo:all_reduce\n"
                   "name 4 Optimizer.step#SGD.step\nname 5 0\nname 6 default_pg\nname 7 0-1\n"
                   "name 8 PyTorch\nname 9 acme layer 17\nname 10 acme layer 18\n"
                   "name 11 acme domain\nstream syncline_0\n");
  for (const auto& [time_ns, event] : events) absl::StrAppend(&text, time_ns, " ", event, "\n");
  return text;
}

nlohmann::json AnswerOf(const fs::path& run) {
  merge::WhyOptions options;
  options.input.inputs = {run.string()};
  const auto result = merge::Explain(options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? nlohmann::json::parse(report::WhyJson(result->answer, "run"))
                     : nlohmann::json();
}

std::vector<nlohmann::json> EventsOf(const fs::path& run) {
  merge::EventsOptions options;
  options.input.inputs = {run.string()};
  options.format = merge::EventFormat::kJsonLines;
  std::ostringstream out;
  EXPECT_TRUE(merge::PrintEvents(options, &out).ok());
  std::vector<nlohmann::json> events;
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json event = nlohmann::json::parse(line);
    events.push_back(NumbersOf(event));
    events.back()["event"] = event["event"];
  }
  std::sort(events.begin(), events.end());
  return events;
}

// The members' paths and contents in one text.
std::string Unpack(const fs::path& pack, const fs::path& to) {
  std::string all;
  ::archive* const reader = ::archive_read_new();
  ::archive_read_support_filter_all(reader);
  ::archive_read_support_format_tar(reader);
  EXPECT_EQ(::archive_read_open_filename(reader, pack.c_str(), 1 << 16), ARCHIVE_OK);
  ::archive_entry* entry = nullptr;
  while (::archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
    std::string bytes(static_cast<size_t>(::archive_entry_size(entry)), '\0');
    EXPECT_EQ(::archive_read_data(reader, bytes.data(), bytes.size()),
              static_cast<la_ssize_t>(bytes.size()));
    const fs::path file = to / ::archive_entry_pathname(entry);
    fs::create_directories(file.parent_path());
    EXPECT_TRUE(WriteFileAtomically(file, bytes).ok());
    all += file.lexically_relative(to).string() + '\0' + bytes + '\0';
  }
  ::archive_read_free(reader);
  return all;
}

class PackRedactWhyTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string text =
        absl::StrCat("window 0 ", kJobSteps * kJobStepNs, "\n", RankText("master-0", kJobZeroNs, 0),
                     RankText("worker-0", kJobZeroNs + kJobOffsetNs, 1));
    merge::testing::WriteScenario(text, "20261121-093012-7f3a", 0, run_);
    auto recording = recording::ReadRecording(run_);
    ASSERT_TRUE(recording.ok()) << recording.status();
    for (size_t i = 0; i < recording->nodes.size(); ++i) {
      recording::NodeRecord& node = recording->nodes[i];
      node.processes.at(0).job = "acme-night";
      WriteEvidence(node.name, kJobZeroNs + (i == 0 ? 0 : kJobOffsetNs));
    }
    ASSERT_TRUE(recording::WriteRecording(run_, *recording).ok());
  }
  void TearDown() override { fs::remove_all(root_); }

  // Its main thread waited for a processor, because somebody else's program had it.
  void WriteEvidence(const std::string& node, int64_t zero_ns) const {
    std::string text =
        "syncline-evidence 1\nP 0 100 1 7 5 10 0 =acme_proc\nP 3 200 1 9 0 0 48213 =acme_thief\n"
        "T 0 100 10 =acme_thread\nG 2 =/acme.slice/acme%20job\n";
    for (int64_t at_ns = 0; at_ns <= kJobSteps * kJobStepNs; at_ns += 50'000 * kUs) {
      const int64_t ns = zero_ns + at_ns;
      absl::StrAppend(&text, "t 0 ", ns, " ", ns + 1000, " ", at_ns / 2, " ", at_ns / 4, " 0\n");
      absl::StrAppend(&text, "p 1 ", ns, " ", ns + 1000, " ", at_ns / 4, " 0\n");
    }
    text += "E\n";
    const fs::path directory = recording::Layout(run_).Evidence(node);
    ASSERT_TRUE(MakeDirectories(directory).ok());
    ASSERT_TRUE(WriteFileAtomically(directory / "samples.txt", text).ok());
  }

  fs::path root_ = fs::temp_directory_path() / ("pack_redact_why_" + std::to_string(::getpid()));
  fs::path run_ = root_ / "acme-run";
};

TEST_F(PackRedactWhyTest, TheSameAnswerReportAndEventsButForNames) {
  const auto packed = Pack({.run = run_, .output = root_ / "sent.tar.zst", .redact = true});
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_TRUE(packed->left_out.empty());
  const std::string all = Unpack(root_ / "sent.tar.zst", root_ / "made");
  for (const char* name : {"acme", "layer", "train", "worker-0", "master-0", "48213", "10.77."}) {
    EXPECT_THAT(all, Not(HasSubstr(name)));
  }
  for (const char* name : {"aten::conv2d", "Optimizer.step#SGD.step", "default_pg"}) {
    EXPECT_THAT(all, HasSubstr(name));
  }
  const fs::path made = root_ / "made" / "redacted-20261121-093012-7f3a";

  EXPECT_TRUE(recording::ReadRecording(made)->redacted);
  EXPECT_FALSE(recording::ReadRecording(run_)->redacted);

  const nlohmann::json answer = AnswerOf(run_);
  EXPECT_THAT(answer.dump(), HasSubstr("acme-night"));
  EXPECT_EQ(answer["ranks"].size(), 2u);
  EXPECT_EQ(NumbersOf(answer), NumbersOf(AnswerOf(made)));

  const nlohmann::json report = ReportOf(run_);
  EXPECT_THAT(report.dump(), HasSubstr("acme layer"));
  EXPECT_EQ(NumbersOf(report), NumbersOf(ReportOf(made)));

  const std::vector<nlohmann::json> events = EventsOf(run_);
  EXPECT_GT(events.size(), 1000u);
  EXPECT_EQ(events, EventsOf(made));
}

}  // namespace
}  // namespace syncline::pack
