#include "agent/kineto/kineto_profiles.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/recording/fakes.h"
#include "common/files.h"
#include "control_block/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using xspace::ProfileRecord;
using xspace::ProfileState;

constexpr char kProcess[] = "4026531836-1234-5678";  // control_block/testing.h's

class KinetoProfilesTest : public testing::Test {
 protected:
  KinetoProfilesTest() {
    std::string pattern = testing::TempDir() + "kineto-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    runtime_ = root_ / "runtime";
    folder_ = runtime_ / "kineto";
    EXPECT_TRUE(MakeDirectories(folder_, 0700).ok());
    EXPECT_TRUE(MakeDirectories(root_ / "proc", 0700).ok());
    const std::vector<uint8_t> block = control_block::MakeBlockBytes();
    Write(runtime_ / (std::string(kProcess) + ".block"),
          {reinterpret_cast<const char*>(block.data()), block.size()});
  }
  ~KinetoProfilesTest() override { std::filesystem::remove_all(root_); }

  static void Write(const std::filesystem::path& path, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(path, text, 0600).ok()) << path;
  }
  ProfileRecord Record(int32_t piece, const std::string& file) {
    ProfileRecord record;
    record.pid_namespace_inode = 4026531836;
    record.own_pid = 1234;
    record.start_ticks = 5678;
    record.piece = piece;
    record.state = ProfileState::kComplete;
    record.begin_realtime_ns = clock_.RealtimeNs();
    record.end_realtime_ns = record.begin_realtime_ns + 10;
    record.file = file;
    return record;
  }
  void List(std::vector<ProfileRecord> records) {
    Write(folder_ / (std::string(kProcess) + ".pieces"), xspace::FormatProfileList(records));
  }
  ProfileWindow Window() { return {.recording_id = "r1", .directory = root_ / "r1"}; }
  std::unique_ptr<KinetoProfiles> Make(KinetoOptions options = {}) {
    options.proc = root_ / "proc";
    return std::make_unique<KinetoProfiles>(
        [this] {
          return std::vector<std::pair<uint32_t, std::filesystem::path>>{{::geteuid(), runtime_}};
        },
        &clock_, &log_, options);
  }
  std::vector<ProfileRecord> Kept() {
    const auto text = ReadFile(root_ / "r1/kineto/profiles.json");
    if (!text.ok()) return {};
    return xspace::ParseProfileList(*text).value();
  }
  std::string KeptName(const std::string& file) { return std::to_string(::geteuid()) + "-" + file; }
  // What is in the recording beside the list.
  std::vector<std::string> KeptFiles() {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator it(root_ / "r1/kineto", error), end;
         !error && it != end; ++it) {
      if (it->path().filename() != "profiles.json") names.push_back(it->path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::filesystem::path root_, runtime_, folder_;
  FakeClock clock_;
  Log log_{-1, &clock_};
};

TEST_F(KinetoProfilesTest, TakesWhatIsListedAndRemovesItThere) {
  auto profiles = Make();
  profiles->Begin(Window());
  Write(folder_ / "p-0.kineto.json", "seven b");
  Write(folder_ / "p-1.kineto.json", "not listed");
  List({Record(0, "p-0.kineto.json")});
  EXPECT_THAT(profiles->Collect(), IsEmpty());
  ASSERT_THAT(Kept(), SizeIs(1));
  EXPECT_EQ(Kept()[0].file, KeptName("p-0.kineto.json"));
  EXPECT_EQ(Kept()[0].bytes, 7u);
  EXPECT_EQ(ReadFile(root_ / "r1/kineto" / Kept()[0].file).value(), "seven b");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "p-0.kineto.json"));
  EXPECT_THAT(KeptFiles(), SizeIs(1));
}

TEST_F(KinetoProfilesTest, WhatARecordingBeforeLeftIsNotOfThisOne) {
  List({Record(0, "p-0.kineto.json")});
  Write(folder_ / "p-0.kineto.json", "old");
  const ProfileRecord old = Record(1, "p-1.kineto.json");
  auto profiles = Make();
  profiles->Begin(Window());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "p-0.kineto.json"));
  Write(folder_ / "p-1.kineto.json", "late");
  List({old});
  profiles->Collect();
  EXPECT_THAT(Kept(), IsEmpty());
}

TEST_F(KinetoProfilesTest, WaitsForALivingProcessAndGivesADeadOneUp) {
  auto profiles = Make();
  profiles->Begin(Window());
  ProfileRecord running = Record(0, "");
  running.end_realtime_ns = 0;
  running.state = ProfileState::kFailed;
  running.failure = "the process ended before its profile was written";
  List({running});
  const int64_t before_ns = clock_.now_ns;
  ASSERT_THAT(profiles->Collect(), SizeIs(1));
  EXPECT_LT(clock_.now_ns - before_ns, 1'000'000'000) << "nobody is there to be waited for";
  ASSERT_THAT(Kept(), SizeIs(1));
  EXPECT_NE(Kept()[0].end_realtime_ns, 0);

  std::filesystem::create_directories(root_ / "proc/1234/ns");
  std::filesystem::create_symlink("pid:[4026531836]", root_ / "proc/1234/ns/pid");
  std::string stat = "1234 (python) S";
  for (int field = 4; field <= 21; ++field) stat += " 0";
  Write(root_ / "proc/1234/stat", stat + " 5678 0\n");
  Write(root_ / "proc/1234/status", "Uid:\t0\t0\nNSpid:\t1234\n");
  profiles->Begin(Window());
  running.begin_realtime_ns = clock_.RealtimeNs();
  List({running});
  clock_.on_sleep = [&] {
    Write(folder_ / "p-0.kineto.json", "there");
    List({Record(0, "p-0.kineto.json")});
  };
  EXPECT_THAT(profiles->Collect(), IsEmpty());
  ASSERT_THAT(Kept(), SizeIs(1));
  EXPECT_EQ(Kept()[0].bytes, 5u);
}

TEST_F(KinetoProfilesTest, AKilledAgentsRecordingIsFinishedByTheNextOne) {
  auto first = Make();
  first->Begin(Window());
  Write(folder_ / "p-0.kineto.json", "taken");
  List({Record(0, "p-0.kineto.json")});
  while (KeptFiles().empty()) ::usleep(1000);  // the watcher takes it
  first.reset();
  Write(folder_ / "p-1.kineto.json", "left");
  List({Record(0, "p-0.kineto.json"), Record(1, "p-1.kineto.json")});
  auto second = Make();
  second->Adopt(Window());
  EXPECT_THAT(second->Collect(), IsEmpty());
  ASSERT_THAT(Kept(), SizeIs(2));
  EXPECT_EQ(Kept()[0].bytes, 5u);
  EXPECT_EQ(Kept()[1].bytes, 4u);
}

TEST_F(KinetoProfilesTest, FoldersThatAreNotTheUsersAloneAreNotTouched) {
  const std::filesystem::path elsewhere = root_ / "elsewhere";
  ASSERT_TRUE(MakeDirectories(elsewhere / "kineto", 0700).ok());
  Write(elsewhere / "kineto/precious.kineto.json", "precious");
  const auto begin = [&] { Make()->Begin(Window()); };
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directory_symlink(elsewhere / "kineto", folder_);
  begin();
  std::filesystem::remove_all(runtime_);
  std::filesystem::create_directory_symlink(elsewhere, runtime_);
  begin();
  std::filesystem::remove(runtime_);
  std::filesystem::rename(elsewhere, runtime_);
  for (const std::filesystem::path& open : {runtime_, folder_}) {
    ASSERT_EQ(::chmod(open.c_str(), 0777), 0);
    begin();
    ASSERT_EQ(::chmod(open.c_str(), 0700), 0);
    EXPECT_TRUE(std::filesystem::exists(folder_ / "precious.kineto.json")) << open;
  }
  begin();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "precious.kineto.json"));
}

TEST_F(KinetoProfilesTest, HostileFilesAreSaidAndHarmNothing) {
  auto profiles = Make({.piece_bytes_max = 100});
  profiles->Begin(Window());
  const std::filesystem::path secret = root_ / "secret.kineto.json";
  Write(secret, "secret");
  std::filesystem::create_symlink(secret, folder_ / "link.kineto.json");
  ASSERT_EQ(::mkfifo((folder_ / "pipe.kineto.json").c_str(), 0600), 0);
  std::filesystem::create_directory(folder_ / "folder.kineto.json");
  Write(folder_ / "large.kineto.json", std::string(101, 'x'));
  Write(folder_ / "good.kineto.json", "good");
  Write(folder_ / "damaged.pieces", R"({"format_version": 1, "profiles": [{"file": 7)");
  std::filesystem::create_symlink(secret, folder_ / "link.pieces");
  ASSERT_EQ(::mkfifo((folder_ / "pipe.pieces").c_str(), 0600), 0);
  const std::vector<std::string> bad = {
      "../secret.kineto.json", secret.string(),
      "link.kineto.json",      "pipe.kineto.json",
      "folder.kineto.json",    "large.kineto.json",
      "absent.kineto.json",    "profiles.json",
      ".kineto.json",          std::string("a\0.kineto.json", 14)};
  std::vector<ProfileRecord> records = {Record(0, "good.kineto.json")};
  for (size_t i = 0; i < bad.size(); ++i) {
    records.push_back(Record(static_cast<int32_t>(i) + 1, bad[i]));
  }
  // A process that has no control block is not recorded.
  ProfileRecord stranger = Record(99, "good.kineto.json");
  stranger.own_pid = 1;
  records.push_back(stranger);
  List(records);
  EXPECT_THAT(profiles->Collect(), SizeIs(bad.size()));
  const std::vector<ProfileRecord> kept = Kept();
  ASSERT_THAT(kept, SizeIs(1 + bad.size()));
  EXPECT_EQ(kept[0].state, ProfileState::kComplete);
  for (size_t i = 1; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i].state, ProfileState::kFailed) << bad[i - 1];
    EXPECT_EQ(kept[i].file, "") << bad[i - 1];
  }
  EXPECT_THAT(KeptFiles(), ElementsAre(KeptName("good.kineto.json")));
  EXPECT_EQ(ReadFile(secret).value(), "secret");
}

TEST_F(KinetoProfilesTest, AUserHasSoManyPiecesAndBytesAndNoMore) {
  auto profiles = Make({.pieces_max = 3, .bytes_max = 10});
  profiles->Begin(Window());
  std::vector<ProfileRecord> records;
  for (int32_t piece = 0; piece < 5; ++piece) {
    const std::string name = "p" + std::to_string(piece) + ".kineto.json";
    Write(folder_ / name, "1234");
    records.push_back(Record(piece, name));
  }
  List(records);
  const std::vector<v1::Complaint> complaints = profiles->Collect();
  ASSERT_THAT(complaints, SizeIs(2));
  EXPECT_THAT(complaints[0].what(), HasSubstr("could not be kept"));
  EXPECT_THAT(complaints[1].what(), HasSubstr("more than 3 pieces"));
  EXPECT_THAT(Kept(), SizeIs(3));
  EXPECT_THAT(KeptFiles(), SizeIs(2));
}

}  // namespace
}  // namespace syncline::agent
