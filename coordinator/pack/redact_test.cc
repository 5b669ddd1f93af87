// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <string>

#include "clocksync/sample_file.h"
#include "common/files.h"
#include "control_block/block_file.h"
#include "control_block/testing.h"
#include "coordinator/pack/pack.h"
#include "coordinator/pack/redact.h"
#include "coordinator/pack/redact_files.h"
#include "ctf/test_trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kineto/trace.h"

namespace syncline::pack {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::Not;

using Words = std::set<std::string, std::less<>>;

std::string Text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<uint8_t> BytesOf(std::string* text) {
  return {reinterpret_cast<uint8_t*>(text->data()), text->size()};
}

TEST(Redact, JsonByKeys) {
  Pseudonyms names({"vm"});
  Words words;
  const auto redacted = RedactJson(
      R"({"format_version": 1, "created_by": {"user": "anna", "host": "vm", "version": "0.2.0",
          "command_line": ["syncline", "record", "/home/anna/x"]},
          "nodes": [{"name": "vm", "state": "complete", "failure": "cannot open /home/anna/y",
                     "channels": [{"name": "syncline"}], "stop": {"reason": "requested"},
                     "new_key": "anna"}]})",
      &names, &words);
  ASSERT_TRUE(redacted.ok()) << redacted.status();
  EXPECT_THAT(*redacted, Not(HasSubstr("anna")));
  EXPECT_THAT(*redacted, Not(HasSubstr("\"vm\"")));
  for (const char* kept :
       {"\"complete\"", "\"0.2.0\"", "\"name\": \"syncline\"", "\"requested\""}) {
    EXPECT_THAT(*redacted, HasSubstr(kept));
  }
  EXPECT_THAT(*redacted, HasSubstr(std::string(kRemovedText)));
  EXPECT_TRUE(words.contains("format_version"));
  EXPECT_FALSE(RedactJson("{\"a\": ", &names, &words).ok());
}

TEST(Redact, Evidence) {
  Pseudonyms names({});
  const auto redacted = RedactEvidence(
      "syncline-evidence 1\nR 1 2 =busy%20with%20anna\nG 2 =/user.slice/anna\nP 3 7 1 5 0 0 0 "
      "=anna "
      "0\n"
      "t 0 1 2 3 4 -1\nE\nT 0 1 1 =ann",
      &names);
  ASSERT_TRUE(redacted.ok());
  EXPECT_THAT(*redacted, Not(HasSubstr("ann")));
  EXPECT_THAT(*redacted, HasSubstr("\nt 0 1 2 3 4 -1\nE\n"));
}

TEST(Redact, ControlBlockAndNames) {
  Pseudonyms names({});
  std::vector<uint8_t> block = control_block::MakeBlockBytes();
  const auto before = control_block::ParseBlock(block);
  ASSERT_TRUE(RedactBlock(block, &names).ok());
  const auto after = control_block::ParseBlock(block);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(after->facts.id, before->facts.id);
  EXPECT_EQ(after->threads.size(), 2u);
  EXPECT_EQ(after->facts.role, "worker");
  EXPECT_NE(after->facts.job, "night");
  EXPECT_EQ(after->facts.command_line.size(), before->facts.command_line.size());
  EXPECT_THAT(Text(block), Not(HasSubstr("train")));

  std::string table = control_block::MakeNamesBytes({"secret", "aten::mm", "secret step 1"});
  ASSERT_TRUE(RedactNames(BytesOf(&table), &names).ok());
  const auto parsed = control_block::ParseNames(BytesOf(&table));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->size(), 3u);
  EXPECT_EQ(parsed->Text(2), "aten::mm");
  EXPECT_EQ(parsed->Text(3), std::string(parsed->Text(1)) + " step 1");
  EXPECT_THAT(table, Not(HasSubstr("secret")));
}

TEST(Redact, StreamsWhereTheTextStandsAndBehindTheEvents) {
  Pseudonyms names({});
  const auto layout = ctf::testing::LayoutOf(ctf::testing::kMetadata);
  std::vector<uint8_t> bytes = ctf::testing::Join(
      {ctf::testing::PacketBuilder(100, 200).Text(110, "secret", {7}).Number(120, 5).Close(256),
       ctf::testing::PacketBuilder(200, 300, 1).Text(210, "secret 2").Close(256)});
  const std::vector<uint8_t> before = bytes;
  std::copy_n("secret", 6, bytes.begin() + 250);  // of an earlier packet
  ASSERT_TRUE(RedactStream(layout, bytes, &names).ok());
  EXPECT_EQ(bytes.size(), before.size());
  EXPECT_THAT(Text(bytes), Not(HasSubstr("secret")));
  const auto text = names.originals();
  EXPECT_TRUE(text.contains("secret") && text.contains("secret 2"));
}

TEST(Redact, DamagedStreamsAreRefused) {
  Pseudonyms names({});
  const auto layout = ctf::testing::LayoutOf(ctf::testing::kMetadata);
  auto open = ctf::testing::PacketBuilder(100, 200).Text(110, "secret").LeaveOpen();
  EXPECT_EQ(RedactStream(layout, open, &names).code(), absl::StatusCode::kDataLoss);
  auto unknown = ctf::testing::PacketBuilder(100, 200).Id(110, 77).Text(120, "secret").Close();
  EXPECT_EQ(RedactStream(layout, unknown, &names).code(), absl::StatusCode::kDataLoss);
  auto tail = ctf::testing::PacketBuilder(100, 200).Text(110, "x").Close();
  tail.insert(tail.end(), 9, 's');
  EXPECT_EQ(RedactStream(layout, tail, &names).code(), absl::StatusCode::kDataLoss);
}

TEST(Redact, MetadataAndPaths) {
  Pseudonyms names({"gpu-7"});
  Words words;
  const auto redacted = RedactMetadata(
      "/* CTF 1.8 */\nenv { hostname = \"gpu-7\"; procname = \"secret\"; domain = \"ust\"; };\n"
      "clock { name = \"monotonic\"; uuid = \"0718c1a4-b173-41da-8dd1-73e9522aeca5\"; };\n"
      "event { name = \"acme:begin\"; };\n",
      &names, &words);
  ASSERT_TRUE(redacted.ok()) << redacted.status();
  for (const char* gone : {"gpu-7", "secret", "0718c1a4"}) {
    EXPECT_THAT(*redacted, Not(HasSubstr(gone)));
  }
  for (const char* kept : {"\"ust\"", "\"monotonic\"", "\"acme:begin\""}) {
    EXPECT_THAT(*redacted, HasSubstr(kept));
  }
  const std::string path = RedactTracePath("ust/pid/secret-12-20261124-1811/64-bit/c_0", &names);
  EXPECT_TRUE(path.ends_with("-12-20261124-1811/64-bit/c_0")) << path;
  EXPECT_THAT(path, Not(HasSubstr("secret")));
  EXPECT_EQ(RedactTracePath("ust/uid/0/64-bit/syncline_0", &names), "ust/uid/0/64-bit/syncline_0");
}

// Events, times and arguments as they were; all threads.
std::string EventsOf(std::string_view json) {
  const auto trace = kineto::Trace::Of(json, "x");
  std::string text = std::to_string(trace->events()) + " " + std::to_string(trace->losses().size());
  for (const StreamInfo& stream : trace->streams()) {
    const auto cursor = trace->Open(stream.index);
    if (!cursor.ok()) return "cannot open";
    for (;;) {
      const auto batch = (*cursor)->NextBatch();
      if (!batch.ok() || batch->empty()) break;
      for (const EventRecord& record : *batch) {
        text += "\n" + std::to_string(record.time_ns) + " " + record.event_class->name;
      }
    }
  }
  return text;
}

TEST(Redact, KinetosProfiles) {
  Pseudonyms names({});
  Words words;
  auto real = ReadFile("kineto/corpus/real.json");
  ASSERT_TRUE(real.ok());
  const std::string before = *real;
  ASSERT_TRUE(RedactKineto(BytesOf(&*real), &names, &words).ok());
  EXPECT_EQ(EventsOf(*real), EventsOf(before));  // all its events are PyTorch's own
  EXPECT_THAT(EventsOf(before), HasSubstr("aten::linear"));
  EXPECT_THAT(*real, Not(HasSubstr("kineto-exp")));  // traceName

  std::string own =
      "{\"baseTimeNanoseconds\": 1, \"host_name\": \"gpu-host\", \"traceEvents\": [\n"
      "  {\n    \"ph\": \"X\",\n    \"cat\": \"user_annotation\",\n"
      "    \"name\": \"load \"secret\" part\",\n    \"pid\": 7, \"tid\": 7, \"ts\": 1.5, \"dur\": "
      "2.0,\n"
      "    \"args\": {\"Concrete Inputs\": [\"[64, 1]\", \"secret\\nmode\", \"True\"]}\n  }]}\n";
  const std::string owned = own;
  ASSERT_TRUE(RedactKineto(BytesOf(&own), &names, &words).ok());
  EXPECT_EQ(own.size(), owned.size());
  for (const char* gone : {"secret", "gpu-host", "load", "mode"}) {
    EXPECT_THAT(own, Not(HasSubstr(gone)));
  }
  for (const char* kept : {"[64, 1]", "\"True\"", "user_annotation", "\\n"}) {
    EXPECT_THAT(own, HasSubstr(kept));
  }
  EXPECT_TRUE(EventsOf(own).starts_with("1 0\n")) << EventsOf(own);
  std::string cut = owned.substr(0, owned.size() / 2);
  EXPECT_FALSE(RedactKineto(BytesOf(&cut), &names, &words).ok());
}

class RedactRun : public testing::Test {
 protected:
  void SetUp() override {
    recording::Recording recording;
    recording.recording_id = "20261121-093012-7f3a";
    recording.created_by.host = "laptop";
    recording.created_by.user = "anna";
    recording::NodeRecord node;
    node.name = "gpu-7";
    node.state = recording::NodeState::kComplete;
    recording.nodes.push_back(node);
    fs::create_directories(run_);
    ASSERT_TRUE(recording::WriteRecording(run_, recording).ok());
    Write("nodes/gpu-7/agent.log", "anna");
    Write("nodes/gpu-7/trace/ust/uid/0/64-bit/metadata", ctf::testing::kMetadata);
    Write("nodes/gpu-7/trace/ust/uid/0/64-bit/syncline_0",
          Text(ctf::testing::PacketBuilder(100, 200).Text(110, "secret task").Close()));
    Write("clocks/coordinator--gpu-7.samples",
          clocksync::EncodeSamplesHeader("coordinator", "gpu-7"));
  }
  void TearDown() override { fs::remove_all(root_); }
  void Write(const std::string& path, std::string_view bytes) {
    fs::create_directories((run_ / path).parent_path());
    ASSERT_TRUE(WriteFileAtomically(run_ / path, bytes).ok());
  }

  fs::path root_ =
      fs::temp_directory_path() / ("redact_test_" + std::to_string(::getpid()) + "_" +
                                   testing::UnitTest::GetInstance()->current_test_info()->name());
  fs::path run_ = root_ / "run-of-anna";
};

TEST_F(RedactRun, LeavesNoName) {
  const auto recording = recording::ReadRecording(run_);
  auto members = FindMembers(run_, *recording);
  ASSERT_TRUE(members.ok());
  auto redactor = Redactor::Create(run_, *recording, &*members);
  ASSERT_TRUE(redactor.ok()) << redactor.status();
  EXPECT_EQ(members->members.size(), 4u);  // without the log
  for (const Member& member : members->members) ASSERT_TRUE(redactor->Collect(member).ok());
  for (const Member& member : members->members) {
    const auto path = redactor->PathOf(member);
    const auto redacted = redactor->Redact(member);
    ASSERT_TRUE(path.ok() && redacted.ok()) << path.status() << redacted.status();
    for (const char* gone : {"anna", "laptop", "gpu-7", "secret task"}) {
      EXPECT_THAT(*path, Not(HasSubstr(gone)));
      EXPECT_THAT(Text(redacted->bytes()), Not(HasSubstr(gone))) << member.path;
    }
  }
  EXPECT_GT(redactor->leftovers().sought(), 0u);
  // What is left behind is noticed.
  EXPECT_EQ(redactor->leftovers().Find("on gpu-7", false), "host (\"gpu-7\")");
}

TEST_F(RedactRun, IsPackedUnderTheRecordingsId) {
  const auto packed = Pack({.run = run_, .output = root_ / "x.tar.gz", .redact = true});
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(packed->files, 4u);
  EXPECT_GT(packed->names_sought, 0u);
}

TEST_F(RedactRun, WhatCannotBeReadIsRefused) {
  Write("nodes/gpu-7/processes/1-2-3.block", "not a block of anna");
  const auto packed = Pack({.run = run_, .output = root_ / "x.tar.gz", .redact = true});
  EXPECT_THAT(std::string(packed.status().message()), HasSubstr("1-2-3.block"));
  EXPECT_FALSE(fs::exists(root_ / "x.tar.gz"));
}

}  // namespace
}  // namespace syncline::pack
