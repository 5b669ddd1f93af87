// SPDX-License-Identifier: Apache-2.0
// `pack --redact` of a whole recording: tests/golden/tensorflow_workers with names planted in every
// kind of file.
#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files.h"
#include "common/text.h"
#include "control_block/block_file.h"
#include "coordinator/pack/pack.h"
#include "coordinator/pack/report_numbers.h"
#include "ctf/metadata.h"
#include "ctf/tsdl_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "instrumentation/abi/control_block.h"

namespace syncline::pack {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kDirectory = "redacted-20261122-025345-89ae";
constexpr const char* kTrace = "nodes/worker-0/trace/ust/uid/0/64-bit";

std::map<std::string, std::string> Unpack(const fs::path& pack) {
  std::map<std::string, std::string> files;
  ::archive* const reader = ::archive_read_new();
  ::archive_read_support_filter_all(reader);
  ::archive_read_support_format_tar(reader);
  EXPECT_EQ(::archive_read_open_filename(reader, pack.c_str(), 1 << 16), ARCHIVE_OK);
  ::archive_entry* entry = nullptr;
  while (::archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
    std::string bytes(static_cast<size_t>(::archive_entry_size(entry)), '\0');
    EXPECT_EQ(::archive_read_data(reader, bytes.data(), bytes.size()),
              static_cast<la_ssize_t>(bytes.size()));
    EXPECT_EQ(::archive_entry_uid(entry), 0);
    EXPECT_EQ(::archive_entry_gid(entry), 0);
    EXPECT_EQ(::archive_entry_uname(entry) == nullptr ? "" : ::archive_entry_uname(entry),
              std::string());
    EXPECT_EQ(::archive_entry_mtime(entry), 946684800);
    files[::archive_entry_pathname(entry)] = bytes;
  }
  ::archive_read_free(reader);
  return files;
}

std::string BlockWithNames(const recording::ProcessRecord& process) {
  syncline_block block = {};
  std::memcpy(block.magic, SYNCLINE_BLOCK_MAGIC, sizeof block.magic);
  block.version = SYNCLINE_BLOCK_VERSION;
  block.header_bytes = sizeof block;
  block.pid = process.own_pid;
  block.pid_namespace = process.pid_namespace_inode;
  block.start_ticks = process.start_ticks;
  block.rank = process.rank;
  block.world_size = process.world_size;
  block.thread_slots_used = 1;
  std::strcpy(block.job, "acme-job");
  std::strcpy(block.incarnation, "acme-incarnation");
  std::strcpy(block.role, "acme-role");
  std::strcpy(block.hostname, "acme-gpu-7.example");
  std::strcpy(block.executable, "/acme/bin/python");
  std::strcpy(block.command_line, "python train_acme.py");
  std::string bytes(reinterpret_cast<const char*>(&block), sizeof block);
  for (uint32_t i = 0; i < SYNCLINE_BLOCK_THREADS; ++i) {
    syncline_thread_slot slot = {};
    slot.thread_key = i == 0 ? 1 : 0;
    std::strcpy(slot.name, "acme thread");
    bytes.append(reinterpret_cast<const char*>(&slot), sizeof slot);
  }
  return bytes;
}

std::string TableOfNames() {
  syncline_names_header header = {};
  std::memcpy(header.magic, SYNCLINE_NAMES_MAGIC, sizeof header.magic);
  header.version = SYNCLINE_BLOCK_VERSION;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  uint32_t id = 0;
  for (const std::string text : {"acme domain", "acme layer", "aten::addmm"}) {
    const syncline_name_record record = {++id, static_cast<uint16_t>(text.size()), 2, 0};
    bytes.append(reinterpret_cast<const char*>(&record), sizeof record);
    bytes += text;
    bytes.append(1 + (3 - text.size() % 4), '\0');
  }
  return bytes;
}

class PackRedactTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_);
    fs::copy("tests/golden/tensorflow_workers/run", run_, fs::copy_options::recursive);
    auto read = recording::ReadRecording(run_);
    ASSERT_TRUE(read.ok()) << read.status();
    recording_ = *read;
    PlantInRecording();
    for (const recording::NodeRecord& node : recording_.nodes) PlantInNode(node);
    Write("clocks/probes.json", "{\"acme\": 1}");
    Write("stacks.json", "{\"acme\": 1}");
    Write("out/report.json", "acme");
    WriteRecording();
  }
  void TearDown() override { fs::remove_all(root_); }

  void PlantInRecording() {
    recording_.created_by = {
        "acme-user", "acme-laptop.example", "0.1.0", {"syncline", "record", "/home/acme"}};
    recording_.extra_events = {"acme:*"};
    for (recording::NodeRecord& node : recording_.nodes) {
      node.address = "acme-gpu.example:7611";
      node.failure = "acme failed";
      node.prepare.session = "acme-session";
      recording::ComplaintRecord& complaint = node.complaints.emplace_back();
      complaint.severity = "note";
      complaint.what = "acme what";
      complaint.fix = "acme fix";
      for (recording::ProcessRecord& process : node.processes) {
        process.uid = 48213;
        process.command_line = "python train_acme.py";
        process.job = "acme-job";
      }
    }
  }

  void PlantInNode(const recording::NodeRecord& node) {
    const std::string at = "nodes/" + node.name + "/";
    Write(at + "node.json", "{\"hostname\": \"acme-gpu\"}");
    Write(at + "agent.log", "acme log");
    Write(at + "xspace/acme-0.xspace.pb", "acme xspace");
    Write(at + "kineto/profiles.json", "{\"acme\": 1}");
    Write(at + "kineto/acme.pt.trace.json", "{\"acme\": 1}");
    Write(at + "vtune/48213/syncline-vtune.json", "{\"acme\": 1}");
    Write(at + "vtune/48213/result/acme.vtune", "acme");
    Write(at + "kineto/acme.pt.trace.json.gz", "acme");
    const recording::ProcessRecord& process = node.processes.at(0);
    const control_block::BlockId id = {static_cast<uint64_t>(process.pid_namespace_inode),
                                       process.own_pid, process.start_ticks};
    Write(at + "processes/" + control_block::BlockFileName(id), BlockWithNames(process));
    Write(at + "processes/" + control_block::NamesFileName(id), TableOfNames());
    Write(at + "evidence/samples.txt",
          absl::StrCat("syncline-evidence 1\nG 2 =/acme/job%201\nP 0 100 1 ", process.start_ticks,
                       " ", process.pid_namespace_inode, " ", process.own_pid,
                       " 48213 =acme_proc 0\nT 0 100 ", process.own_pid, " =acme%20main\nt 0 ",
                       process.on_monotonic_ns, " ", process.on_monotonic_ns + 1000,
                       " 3 4 -1 S 2\nN =cannot%20read%20/acme\nE\n"));
    Write(at + "evidence/code.txt", "syncline-code 1\nC 1 1\nP 1 1 1 1 1 =acme\nE\n");
    Write(at + "evidence/devices.txt", "syncline-devices 1\nP 1 1 1 1 =acme\nE\n");
    Write(at + "evidence/scheduling.txt",
          "syncline-scheduling 1\nB 1\nP 1 1 1 1 =acme\nT 0 1 1 =acme\nO 9 9 =acme =acme\nE\n");
    // Names of threads, in traces.
    for (const char* stream : {"syncline_0", "syncline_1"}) {
      const std::string path = at + "trace/ust/uid/0/64-bit/" + stream;
      std::string bytes = Read(path);
      planted_ += absl::StrReplaceAll(
          {{"event_engine", "acme_engines"}, {"collective_ops", "acme_secretops"}}, &bytes);
      Write(path, bytes);
    }
  }

  void WriteRecording() { ASSERT_TRUE(recording::WriteRecording(run_, recording_).ok()); }
  void Write(const std::string& path, std::string_view bytes) {
    fs::create_directories((run_ / path).parent_path());
    ASSERT_TRUE(WriteFileAtomically(run_ / path, bytes).ok());
  }
  std::string Read(const std::string& path) const {
    const auto bytes = ReadFile(run_ / path);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? *bytes : "";
  }
  PackOptions Options() const {
    return {.run = run_, .output = root_ / "sent.tar.gz", .redact = true};
  }
  // Not even a part of a pack.
  void ExpectNoPack() const {
    for (const auto& entry : fs::directory_iterator(root_)) {
      EXPECT_EQ(entry.path().filename(), "acme-run");
    }
  }
  void ExpectRefused(absl::StatusCode code, const std::string& what) const {
    const auto packed = Pack(Options());
    EXPECT_EQ(packed.status().code(), code) << packed.status();
    EXPECT_THAT(std::string(packed.status().message()), HasSubstr(what));
    ExpectNoPack();
  }

  fs::path root_ =
      fs::temp_directory_path() / ("pack_redact_" + std::to_string(::getpid()) + "_" +
                                   testing::UnitTest::GetInstance()->current_test_info()->name());
  fs::path run_ = root_ / "acme-run";
  recording::Recording recording_;
  int planted_ = 0;
};

TEST_F(PackRedactTest, NoNameIsLeftInAWholeRecording) {
  ASSERT_GT(planted_, 0);
  const auto packed = Pack(Options());
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_THAT(packed->left_out, IsEmpty());
  EXPECT_GT(packed->sought, 20u);
  EXPECT_GE(packed->replaced, packed->sought);
  const auto files = Unpack(root_ / "sent.tar.gz");
  EXPECT_EQ(files.size(), packed->files);
  // recording.json, 6 of clocks; 2 nodes with 3 of the trace, a block, its names, evidence.
  EXPECT_EQ(files.size(), 1u + 6u + 2u * 6u);
  for (const auto& [path, bytes] : files) {
    EXPECT_THAT(path, StartsWith(absl::StrCat(kDirectory, "/")));
    const std::string all = absl::AsciiStrToLower(path + '\0' + bytes);
    for (const char* name :
         {"acme", "worker-0", "worker-1", "10.77.53.", "train.py", "48213", "d92d3ba0", "digits"}) {
      EXPECT_THAT(all, Not(HasSubstr(name))) << path;
    }
  }
  EXPECT_THAT(
      packed->kinds_left_out,
      ElementsAre(
          AllOf(Field(&KindLeftOut::what, HasSubstr("devices.txt")),
                Field(&KindLeftOut::files, 2u)),
          AllOf(Field(&KindLeftOut::what, HasSubstr("probes.json")),
                Field(&KindLeftOut::files, 1u)),
          AllOf(Field(&KindLeftOut::what, HasSubstr("indexes of streams")),
                Field(&KindLeftOut::files, 4u)),
          AllOf(Field(&KindLeftOut::what, HasSubstr("node.json")), Field(&KindLeftOut::files, 2u)),
          AllOf(Field(&KindLeftOut::what, HasSubstr("profiles.json")),
                Field(&KindLeftOut::files, 4u)),
          AllOf(Field(&KindLeftOut::what, HasSubstr("agent.log")), Field(&KindLeftOut::files, 2u)),
          AllOf(Field(&KindLeftOut::what, HasSubstr("profiles of PyTorch")),
                Field(&KindLeftOut::files, 4u)),
          AllOf(Field(&KindLeftOut::what, HasSubstr("profiles of TensorFlow")),
                Field(&KindLeftOut::files, 4u)),
          AllOf(Field(&KindLeftOut::what, HasSubstr("results of VTune")),
                Field(&KindLeftOut::files, 4u)),
          AllOf(Field(&KindLeftOut::what, HasSubstr("scheduling.txt")),
                Field(&KindLeftOut::files, 2u)),
          AllOf(Field(&KindLeftOut::what, HasSubstr("stacks.json")),
                Field(&KindLeftOut::files, 1u)),
          AllOf(Field(&KindLeftOut::what, HasSubstr("code.txt")), Field(&KindLeftOut::files, 2u))));
}

TEST_F(PackRedactTest, ItsReportHasTheSameNumbers) {
  ASSERT_TRUE(Pack(Options()).ok());
  for (const auto& [path, bytes] : Unpack(root_ / "sent.tar.gz")) {
    fs::create_directories((root_ / path).parent_path());
    ASSERT_TRUE(WriteFileAtomically(root_ / path, bytes).ok());
  }
  // Without profiles, samples of code and devices, scheduling and results of VTune, which no
  // redacted pack has.
  for (const recording::NodeRecord& node : recording_.nodes) {
    fs::remove_all(run_ / "nodes" / node.name / "xspace");
    fs::remove_all(run_ / "nodes" / node.name / "kineto");
    fs::remove_all(run_ / "nodes" / node.name / "vtune");
    fs::remove(run_ / "nodes" / node.name / "evidence/code.txt");
    fs::remove(run_ / "nodes" / node.name / "evidence/devices.txt");
    fs::remove(run_ / "nodes" / node.name / "evidence/scheduling.txt");
  }
  const nlohmann::json before = ReportOf(run_);
  EXPECT_THAT(before.dump(), HasSubstr("acme domain"));
  EXPECT_EQ(NumbersOf(before), NumbersOf(ReportOf(root_ / kDirectory)));
}

TEST_F(PackRedactTest, TwoPacksHaveDifferentPseudonyms) {
  ASSERT_TRUE(Pack(Options()).ok());
  PackOptions second = Options();
  second.output = root_ / "second.tar.zst";
  ASSERT_TRUE(Pack(second).ok());
  const auto recording_of = [&](const char* pack) {
    return Unpack(root_ / pack).at(absl::StrCat(kDirectory, "/recording.json"));
  };
  EXPECT_NE(recording_of("sent.tar.gz"), recording_of("second.tar.zst"));
}

TEST_F(PackRedactTest, WhatIsNotOfARecordingIsLeftOutAndNamed) {
  Write("acme-notes.txt", "acme");
  Write("clocks/acme.tuples", "acme");
  Write("nodes/worker-0/processes/acme-1-2.block", "acme");
  Write("nodes/worker-0/processes/1-2-3.names", "acme");
  Write("clocks/worker-0--coordinator.samples", Read("clocks/coordinator--worker-0.samples"));
  const auto packed = Pack(Options());
  ASSERT_TRUE(packed.ok()) << packed.status();
  for (const char* path :
       {"acme-notes.txt", "clocks/acme.tuples", "nodes/worker-0/processes/acme-1-2.block",
        "nodes/worker-0/processes/1-2-3.names", "clocks/worker-0--coordinator.samples"}) {
    EXPECT_THAT(packed->left_out, Contains(Field(&LeftOut::path, path)));
  }
  EXPECT_EQ(packed->left_out.size(), 5u);
  for (const auto& [path, bytes] : Unpack(root_ / "sent.tar.gz")) {
    EXPECT_THAT(path + bytes, Not(HasSubstr("acme"))) << path;
  }
}

TEST_F(PackRedactTest, ACutStreamIsRefused) {
  const std::string stream = absl::StrCat(kTrace, "/syncline_0");
  const std::string bytes = Read(stream);
  Write(stream, std::string_view(bytes).substr(0, bytes.size() - 100));
  ExpectRefused(absl::StatusCode::kDataLoss,
                absl::StrCat("\"", stream, "\" cannot be redacted: it is damaged"));
}

TEST_F(PackRedactTest, MetadataThatCannotBeReadIsRefused) {
  Write(absl::StrCat(kTrace, "/metadata"), "/* CTF 1.8 */ acme { nothing");
  ExpectRefused(absl::StatusCode::kDataLoss, "cannot be redacted");
}

TEST_F(PackRedactTest, EventsOfOthersAreRefused) {
  const auto metadata = ctf::LoadMetadata(run_ / kTrace);
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  ctf::Metadata other = **metadata;
  other.streams.front().events.front().name = "acme:begin";
  const auto text = ctf::WriteTsdl(other);
  ASSERT_TRUE(text.ok()) << text.status();
  Write(absl::StrCat(kTrace, "/metadata"), *text);
  ExpectRefused(absl::StatusCode::kUnimplemented, "\"acme:begin\" is not of Syncline's own events");
}

TEST_F(PackRedactTest, AStreamWithoutMetadataIsRefused) {
  Write("nodes/worker-0/trace/syncline_0", Read(absl::StrCat(kTrace, "/syncline_0")));
  ExpectRefused(absl::StatusCode::kNotFound, "no metadata");
}

// A name that stands for something else in the pack, too, and is no public word.
TEST_F(PackRedactTest, WhatIsFoundInTheFinishedFileDeletesIt) {
  recording_.created_by.command_line = {"\"pauses\": 0"};
  WriteRecording();
  ExpectRefused(absl::StatusCode::kInternal, "\"\"pauses\": 0\" was still in");
}

TEST_F(PackRedactTest, AChanceMeetingIsTriedAgain) {
  // The first pseudonym drawn, for the user, is another name of the recording.
  recording_.created_by.user = "acme-user";
  recording_.created_by.host = "bbbbbbbbb";
  WriteRecording();
  size_t drawn = 0;
  PackOptions options = Options();
  options.random = [&drawn, random = Pseudonyms::SystemRandom()](uint32_t below) mutable {
    constexpr size_t kFirst = 9;  // as long as "acme-user"
    return drawn++ < kFirst ? 0 : random(below);
  };
  const auto packed = Pack(options);
  ASSERT_TRUE(packed.ok()) << packed.status();
  for (const auto& [path, bytes] : Unpack(root_ / "sent.tar.gz")) {
    EXPECT_THAT(bytes, Not(HasSubstr("bbbbbbbbb"))) << path;
  }
}

TEST_F(PackRedactTest, APseudonymThatSpellsANameIsTriedAgain) {
  // As long as the pseudonym of the user, of which it is a part.
  recording_.created_by.user = "acme-user";
  recording_.created_by.host = "bbbbbbbb";
  WriteRecording();
  size_t drawn = 0;
  PackOptions options = Options();
  options.random = [&drawn, random = Pseudonyms::SystemRandom()](uint32_t below) mutable {
    constexpr size_t kFirst = 9;
    return drawn++ < kFirst ? 0 : random(below);
  };
  const auto packed = Pack(options);
  ASSERT_TRUE(packed.ok()) << packed.status();
  for (const auto& [path, bytes] : Unpack(root_ / "sent.tar.gz")) {
    EXPECT_THAT(bytes, Not(HasSubstr("bbbbbbbb"))) << path;
  }
}

TEST_F(PackRedactTest, AnInterruptLeavesNothing) {
  std::stop_source stop;
  PackOptions options = Options();
  options.interrupt = stop.get_token();
  options.progress = [&](const Progress&) { stop.request_stop(); };
  EXPECT_EQ(Pack(options).status().code(), absl::StatusCode::kCancelled);
  ExpectNoPack();
}

}  // namespace
}  // namespace syncline::pack
