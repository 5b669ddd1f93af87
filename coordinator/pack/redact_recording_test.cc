// SPDX-License-Identifier: Apache-2.0
// A real recording (tests/golden/tensorflow_workers) without names: nothing of them is left in any
// byte, and its report has the same numbers.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/files.h"
#include "coordinator/pack/leftovers.h"
#include "coordinator/pack/redact_files.h"
#include "coordinator/pack/report_numbers.h"
#include "ctf/metadata.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::pack {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const char* const kGolden = "tests/golden/tensorflow_workers/run";

std::string BytesOf(const fs::path& file) {
  const auto bytes = ReadFile(file);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

void Put(const fs::path& file, const absl::StatusOr<std::string>& bytes) {
  ASSERT_TRUE(bytes.ok()) << file << ": " << bytes.status();
  fs::create_directories(file.parent_path());
  ASSERT_TRUE(WriteFileAtomically(file, *bytes).ok());
}

void RedactTrace(const fs::path& trace, const fs::path& to, Pseudonyms* names) {
  const auto metadata = ctf::LoadMetadata(trace);
  ASSERT_TRUE(metadata.ok());
  const auto layout = ctf::BuildLayout(*metadata);
  ASSERT_TRUE(layout.ok());
  Put(to / "metadata", RedactMetadata(**metadata, names));
  for (const char* stream : {"syncline_0", "syncline_1"}) {
    const auto source = ctf::FileWindow::Open(trace / stream);
    ASSERT_TRUE(source.ok());
    std::string made;
    const Sink sink = [&made](std::span<const uint8_t> bytes) {
      made.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return absl::OkStatus();
    };
    const absl::Status status = RedactStream(*layout, source->get(), names, sink);
    ASSERT_TRUE(status.ok()) << status;
    Put(to / stream, made);
  }
}

// `run` without its profiles, redacted where there are `names`, as files below `to`.
void Copy(const fs::path& run, const fs::path& to, Pseudonyms* names) {
  const auto recording = recording::ReadRecording(run);
  ASSERT_TRUE(recording.ok()) << recording.status();
  ASSERT_TRUE(recording::WriteRecording(to, RedactRecording(*recording, names)).ok());
  const recording::Layout from(run);
  const recording::Layout made(to);
  Put(made.Models(), RedactModels(BytesOf(from.Models()), names));
  for (const recording::NodeRecord& node : recording->nodes) {
    const std::string name = RedactNodeName(node.name, names);
    Put(made.Tuples(name), RedactTuples(BytesOf(from.Tuples(node.name)), names));
    Put(made.Samples("coordinator", name),
        RedactSamples(BytesOf(from.Samples("coordinator", node.name)), names));
    RedactTrace(from.Trace(node.name) / "ust/uid/0/64-bit",
                made.Trace(name) / RedactTracePath("ust/uid/0/64-bit", names), names);
  }
  const auto& nodes = recording->nodes;
  Put(made.Samples(RedactNodeName(nodes[0].name, names), RedactNodeName(nodes[1].name, names)),
      RedactSamples(BytesOf(from.Samples(nodes[0].name, nodes[1].name)), names));
}

class RedactRecordingTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_ / "made"); }
  void TearDown() override { fs::remove_all(root_); }
  fs::path root_ = fs::temp_directory_path() / ("redact_recording_" + std::to_string(::getpid()));
};

TEST_F(RedactRecordingTest, OfARealJobHasTheSameNumbersAndNoName) {
  // Without profiles, which no redacted pack has.
  const fs::path before = root_ / "before";
  fs::copy(kGolden, before, fs::copy_options::recursive);
  for (const char* node : {"worker-0", "worker-1"}) {
    fs::remove_all(before / "nodes" / node / "xspace");
  }
  Pseudonyms names(2);
  Copy(before, root_ / "made", &names);
  ASSERT_TRUE(names.status().ok()) << names.status();
  const Leftovers leftovers(names.originals());
  EXPECT_GT(leftovers.sought(), 10u);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "made")) {
    const std::string path = fs::relative(entry.path(), root_ / "made").string();
    const std::string bytes = path + '\0' + (entry.is_regular_file() ? BytesOf(entry.path()) : "");
    files += entry.is_regular_file() ? 1 : 0;
    EXPECT_EQ(leftovers.Find(bytes, false).value_or(""), "") << path;
    for (const char* name : {"worker-0", "worker-1", "10.77.", "/tmp/", "laptop"}) {
      EXPECT_THAT(bytes, Not(HasSubstr(name))) << path;
    }
  }
  EXPECT_GE(files, 12u);
  const Json numbers = ReportOf(before);
  EXPECT_EQ(NumbersOf(numbers), NumbersOf(ReportOf(root_ / "made")));
}

// Hole 2 of an earlier attempt: keys of JSON were never replaced.
TEST(RedactModels, KeysThatAreNotOfTheSchemaGo) {
  Json json = Json::parse(BytesOf(fs::path(kGolden) / "clocks/models.json"));
  json["acme key"] = {{"acme inner", "acme value"}};
  json["wall_clock"]["acme"] = 1;
  json["events"] = Json::array({{{"kind", 4},
                                 {"cause", 0},
                                 {"node", "worker-0--worker-1"},
                                 {"begin_ns", 1},
                                 {"end_ns", 2},
                                 {"text", "acme says"}}});
  Pseudonyms names(2);
  const auto made = RedactModels(json.dump(), &names);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(*made, Not(HasSubstr("acme")));
  EXPECT_THAT(*made, Not(HasSubstr("worker")));
  EXPECT_EQ(Json::parse(*made)["events"][0]["node"],
            names.Plain("worker-0") + "--" + names.Plain("worker-1"));
}

TEST(RedactRecording, EveryTextOfItGoes) {
  recording::Recording recording;
  recording.recording_id = "acme-1";
  recording.created_by = {"acme", "acme-laptop", "0.2.0 acme", {"syncline", "record", "/acme"}};
  recording.window.stop_reason = "acme";
  recording.extra_events = {"acme:*"};
  recording::NodeRecord node;
  node.name = "acme-7";
  node.address = "10.77.3.1:7611";
  node.role = "acme";
  node.failure = "acme";
  node.stop.reason = "guard: acme";
  node.prepare.session = "acme";
  node.channels.emplace_back().name = "acme";
  node.streams.emplace_back().path = "ust/pid/acme-26-20261121/uid/48213/64-bit/acme_0";
  recording::ProcessRecord& process = node.processes.emplace_back();
  process.uid = 48213;
  process.command_line = process.job = process.incarnation = process.role = process.part = "acme";
  process.sources = {"itt", "acme"};
  recording::ComplaintRecord& complaint = node.complaints.emplace_back();
  complaint.severity = complaint.what = complaint.fix = "acme";
  complaint.user = 48213;
  recording.nodes.push_back(node);
  recording.reference.node = "acme-7";
  Pseudonyms names(2);
  const recording::Recording made = RedactRecording(recording, &names);
  const std::string text = recording::FormatRecording(made);
  for (const char* name : {"acme", "10.77.3.1", "48213"}) EXPECT_THAT(text, Not(HasSubstr(name)));
  EXPECT_EQ(made.reference.node, made.nodes[0].name);
  EXPECT_EQ(made.nodes[0].stop.reason.substr(0, 7), "guard: ");
  EXPECT_EQ(made.nodes[0].processes[0].sources[0], "itt");
  EXPECT_EQ(made.nodes[0].complaints[0].user, made.nodes[0].processes[0].uid);
}

TEST(Leftovers, FindsWhatIsLeft) {
  const Leftovers leftovers({"acme", "gpu-7.acme.example", "10.77.3.1", "1000", "knots", "xyz",
                             "acme-7", "torch::autograd", "syncline_itt:task_begin"});
  EXPECT_EQ(leftovers.sought(), 5u) << "numbers, short names and words of formats are not";
  EXPECT_EQ(leftovers.Find("{\"job\": \"acme\"}", false).value_or(""), "acme");
  EXPECT_EQ(leftovers.Find("xxgpu-7.acme.examplexx", true).value_or(""), "gpu-7.acme.example");
  EXPECT_EQ(leftovers.Find("at 10.77.3.1:7611", false).value_or(""), "10.77.3.1");
  EXPECT_EQ(leftovers.Find("\"knots\": [1000, 1000]", false).value_or(""), "");
  EXPECT_EQ(leftovers.Find("qacmeq", false).value_or(""), "");
  EXPECT_EQ(leftovers.Find({"\1acme\0", 6}, true).value_or(""), "") << "numbers may spell it";
  EXPECT_EQ(leftovers.Find({"\1acme-7\2", 8}, true).value_or(""), "");
  EXPECT_EQ(leftovers.Find({"\1acme-7\0", 8}, true).value_or(""), "acme-7");
  EXPECT_EQ(leftovers.Find({"\1torch::autograd::AccumulateGrad\0", 33}, true).value_or(""), "");
  EXPECT_EQ(leftovers.Find({"\1torch::autograd::Acme\0", 23}, true).value_or(""),
            "torch::autograd");
}

TEST(Leftovers, PartsOfWhatStaysAreNone) {
  const Leftovers leftovers({"accelerator initialised", "rate(DataL"});
  EXPECT_EQ(leftovers.sought(), 2u);
  EXPECT_EQ(leftovers.Find("accelerator initialised: bcd", false).value_or(""), "");
  EXPECT_EQ(leftovers.Find("enumerate(DataLoader)bcd", false).value_or(""), "");
  EXPECT_EQ(leftovers.Find("accelerator initialised, acme", false).value_or(""),
            "accelerator initialised");
}

// A text of its own for each task, as "time: 12.7 ms", all of which begin with what stays of them:
// if each were compared with each, this would take minutes.
TEST(Leftovers, ManyThatBeginAlike) {
  constexpr int kTexts = 200'000;
  std::set<std::string, std::less<>> originals;
  std::string bytes;
  for (int i = 0; i < kTexts; ++i) {
    originals.insert("time: " + std::to_string(i) + " ms");
    bytes += "time#bc" + std::to_string(i) + "#dfg";
    bytes.push_back('\0');
  }
  const Leftovers leftovers(originals);
  EXPECT_EQ(leftovers.Find(bytes, true).value_or(""), "");
  bytes += "time: 77777 ms";
  EXPECT_EQ(leftovers.Find(bytes, true).value_or(""), "time: 77777 ms");
}

TEST(Leftovers, InPiecesAsWhole) {
  const Leftovers leftovers({"acme", "gpu-7.acme.example", "acme-7"});
  const std::string filler(3000, '.');
  for (const std::string& text :
       {filler + "gpu-7.acme.example" + filler, "acme" + filler, filler + "acme", filler + "qacme",
        filler + std::string("acme-7\0", 7) + filler, filler + "acme-7q" + filler, std::string()}) {
    for (const uint64_t numbers_from : {uint64_t{0}, uint64_t{100}, uint64_t{1} << 40}) {
      for (const size_t piece : {1u, 7u, 1000u, 5000u, 100000u}) {
        LeftoverScan scan(&leftovers, numbers_from);
        std::string found;
        for (size_t at = 0; at < text.size() && found.empty(); at += piece) {
          found = scan.Feed(std::string_view(text).substr(at, piece)).value_or("");
        }
        if (found.empty()) found = scan.Finish().value_or("");
        auto whole = leftovers.FindBetween(text, 0, std::min(text.size(), numbers_from), false);
        if (!whole.has_value()) {
          whole =
              leftovers.FindBetween(text, std::min(text.size(), numbers_from), text.size(), true);
        }
        EXPECT_EQ(found, whole.value_or("")) << piece << " " << numbers_from;
      }
    }
  }
}

}  // namespace
}  // namespace syncline::pack
