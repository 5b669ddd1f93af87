// SPDX-License-Identifier: Apache-2.0
#include "agent/kineto/kineto_profiles.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/host/fake_process.h"
#include "agent/recording/fakes.h"
#include "common/files.h"
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

constexpr char kProcess[] = "4026531836-1234-5678";

class KinetoProfilesTest : public testing::Test {
 protected:
  KinetoProfilesTest() {
    std::string pattern = testing::TempDir() + "kineto-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    runtime_ = root_ / "runtime";
    folder_ = runtime_ / "kineto";
    EXPECT_TRUE(MakeDirectories(folder_, 0700).ok());
    EXPECT_TRUE(MakeDirectories(root_ / "proc", 0700).ok());
    Write(runtime_ / (std::string(kProcess) + ".block"), "its name says enough");
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
    record.begin_monotonic_ns = clock_.MonotonicNs();
    record.end_realtime_ns = record.begin_realtime_ns + 10;
    record.file = file;
    return record;
  }
  void List(std::vector<ProfileRecord> records) {
    Write(ListPath(), xspace::FormatProfileList(std::move(records)));
  }
  std::filesystem::path ListPath() { return folder_ / (std::string(kProcess) + ".pieces"); }
  // The process, running under a user.
  void Run(uint32_t uid, char state = 'S') { AddFakeProcess(root_ / "proc", state, uid); }
  EvidenceWindow Window() { return {.recording_id = "r1", .directory = root_ / "r1"}; }
  std::unique_ptr<KinetoProfiles> Make(KinetoOptions options = {}) {
    options.proc = root_ / "proc";
    return std::make_unique<KinetoProfiles>(
        [this] {
          if (on_directories_) on_directories_();
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
  std::function<void()> on_directories_;
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
  const std::string name = std::string(kProcess) + "-0.kineto.json";
  List({Record(0, name)});
  Write(folder_ / name, "old");
  const ProfileRecord old = Record(1, "p-1.kineto.json");
  auto profiles = Make();
  profiles->Begin(Window());
  EXPECT_FALSE(std::filesystem::exists(folder_ / name));
  Write(folder_ / "p-1.kineto.json", "late");
  Write(folder_ / "p-2.kineto.json", "of an instant that it does not say");
  ProfileRecord unsaid = Record(2, "p-2.kineto.json");
  unsaid.begin_monotonic_ns = 0;
  List({old, unsaid});
  profiles->Collect();
  EXPECT_THAT(Kept(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "p-1.kineto.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "p-2.kineto.json"));
}

TEST_F(KinetoProfilesTest, AWallClockThatIsSetBackLosesNothing) {
  auto profiles = Make();
  profiles->Begin(Window());
  clock_.realtime_offset_ns = -500'000'000;
  Write(folder_ / "p-0.kineto.json", "new");
  List({Record(0, "p-0.kineto.json")});
  profiles->Collect();
  EXPECT_THAT(KeptFiles(), SizeIs(1));
}

TEST_F(KinetoProfilesTest, NothingOfWhatProcessesLeftStays) {
  const std::string process = kProcess;
  for (const char* left : {"-0.kineto.json", "-1.kineto.json.part", "-2.kineto.json.part.tmp",
                           ".pieces", ".pieces.new"}) {
    Write(folder_ / (process + left), "left by a process that was killed");
  }
  Make()->Begin(Window());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(KinetoProfilesTest, WhatNoProcessOfOursWroteStays) {
  const std::string process = kProcess;
  std::vector<std::string> foreign = {"notes",
                                      "my.kineto.json",
                                      "1-2-0.kineto.json",
                                      "my.pieces",
                                      process + ".kineto.json",
                                      process + "-.kineto.json",
                                      process + "-x.kineto.json",
                                      process + "-0.kineto.json.tmp",
                                      process + "-0.kineto.json.old",
                                      process + ".pieces.part",
                                      process + ".block"};
  for (const std::string& name : foreign) Write(folder_ / name, "mine");
  Write(root_ / "elsewhere", "mine");
  std::filesystem::create_symlink(root_ / "elsewhere", folder_ / (process + "-1.kineto.json"));
  std::filesystem::create_directory(folder_ / (process + "-2.kineto.json"));
  foreign.insert(foreign.end(), {process + "-1.kineto.json", process + "-2.kineto.json"});
  auto profiles = Make();
  profiles->Begin(Window());
  for (const std::string& name : foreign) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / name)) << name;
  }
  EXPECT_THAT(profiles->Collect(), IsEmpty());
}

TEST_F(KinetoProfilesTest, AFolderThatIsTooFullToBeClearedIsSaid) {
  for (int i = 0; i < 5; ++i) std::ofstream(folder_ / ("mine-" + std::to_string(i)));
  auto profiles = Make({.folder_entries_max = 4});
  profiles->Begin(Window());
  const std::vector<v1::Complaint> complaints = profiles->Collect();
  ASSERT_THAT(complaints, SizeIs(1));
  EXPECT_THAT(complaints[0].what(), HasSubstr("has more than 4 files"));
}

TEST_F(KinetoProfilesTest, AProcessOfAnotherUserIsNotSpokenFor) {
  Run(::geteuid() + 1);
  auto profiles = Make();
  profiles->Begin(Window());
  Write(folder_ / "p-0.kineto.json", "forged");
  List({Record(0, "p-0.kineto.json")});
  profiles->Collect();
  EXPECT_THAT(Kept(), IsEmpty());
  EXPECT_THAT(KeptFiles(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "p-0.kineto.json"));
  Run(::geteuid());
  profiles->Begin(Window());
  Write(folder_ / "p-0.kineto.json", "its own");
  List({Record(0, "p-0.kineto.json")});
  profiles->Collect();
  EXPECT_THAT(Kept(), SizeIs(1));
}

TEST_F(KinetoProfilesTest, ListsThatAreNotTheProcesssOwnAreNotRead) {
  const auto complaints_of = [&](const std::function<void()>& list) {
    std::filesystem::remove(ListPath());  // a link stays there
    auto profiles = Make();
    profiles->Begin(Window());
    Write(folder_ / "p-0.kineto.json", "there");
    list();
    std::vector<v1::Complaint> complaints = profiles->Collect();
    std::string said = complaints.empty() ? "" : complaints[0].what();
    return said + (KeptFiles().empty() ? "" : "taken");
  };
  const auto text = [&] { return xspace::FormatProfileList({Record(0, "p-0.kineto.json")}); };
  const auto padded = [&](size_t bytes) {
    std::string list = text();
    return list + std::string(bytes - list.size(), ' ');
  };
  EXPECT_EQ(complaints_of([&] { Write(folder_ / "4026531836-1-5678.pieces", text()); }), "");
  EXPECT_EQ(complaints_of([&] {
              ProfileRecord stranger = Record(0, "p-0.kineto.json");
              stranger.own_pid = 1;
              List({stranger});
            }),
            "");
  EXPECT_THAT(complaints_of([&] { Write(ListPath(), padded((256 << 10) + 1)); }),
              HasSubstr("at most 262144 bytes"));
  EXPECT_THAT(complaints_of([&] {
                Write(folder_ / "second", text());
                std::filesystem::create_hard_link(folder_ / "second", ListPath());
              }),
              HasSubstr("must be a regular file"));
  EXPECT_THAT(complaints_of([&] { Write(ListPath(), R"({"format_version": 1, "prof)"); }),
              HasSubstr("it is not JSON"));
  EXPECT_THAT(complaints_of([&] {
                Write(root_ / "elsewhere", text());
                std::filesystem::create_symlink(root_ / "elsewhere", ListPath());
              }),
              HasSubstr("are missing"));
  EXPECT_THAT(complaints_of([&] { ::mkfifo(ListPath().c_str(), 0600); }),
              HasSubstr("must be a regular file"));
  EXPECT_EQ(complaints_of([&] { Write(ListPath(), padded(256 << 10)); }), "taken");
}

TEST_F(KinetoProfilesTest, LongTextsAreCutAndLongNamesRefused) {
  auto profiles = Make();
  profiles->Begin(Window());
  ProfileRecord wordy = Record(0, "");
  wordy.state = ProfileState::kFailed;
  wordy.failure = std::string(511, 'x') + "\u00e9 and more";
  wordy.task = wordy.session = wordy.address = wordy.incarnation = std::string(10'000, 'y');
  List({wordy, Record(1, std::string(600, 'z') + ".kineto.json")});
  EXPECT_THAT(profiles->Collect(), SizeIs(2));
  ASSERT_THAT(Kept(), SizeIs(2));
  EXPECT_EQ(Kept()[0].failure, std::string(511, 'x'));
  for (const std::string& cut :
       {Kept()[0].task, Kept()[0].session, Kept()[0].address, Kept()[0].incarnation}) {
    EXPECT_THAT(cut, SizeIs(512));
  }
  EXPECT_EQ(Kept()[1].failure, "The name of its profile is too long");
}

TEST_F(KinetoProfilesTest, AProfileWithHolesIsNotCopied) {
  const auto opened = PieceFolder::Open(root_ / "runtime", ::geteuid());
  ASSERT_TRUE(opened.ok()) << opened.status();
  Write(folder_ / "p-0.kineto.json", "{}");
  std::filesystem::resize_file(folder_ / "p-0.kineto.json", 1 << 30);
  const auto taken = opened->Take("p-0.kineto.json", root_ / "kept", uint64_t{2} << 30);
  EXPECT_THAT(std::string(taken.status().message()), HasSubstr("has holes"));
  EXPECT_FALSE(std::filesystem::exists(root_ / "kept"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "p-0.kineto.json"));
}

TEST_F(KinetoProfilesTest, ANameThatIsNoTextIsRefused) {
  const auto opened = PieceFolder::Open(root_ / "runtime", ::geteuid());
  ASSERT_TRUE(opened.ok()) << opened.status();
  const std::string name = "M\xfcller.kineto.json";
  Write(folder_ / name, "{}");
  EXPECT_TRUE(absl::IsInvalidArgument(opened->Take(name, root_ / "kept", 100).status()));
  EXPECT_FALSE(std::filesystem::exists(root_ / "kept"));
}

char StateOf(pid_t thread) {
  const auto stat = ReadFile("/proc/self/task/" + std::to_string(thread) + "/stat");
  return stat.ok() ? (*stat)[stat->rfind(')') + 2] : '?';
}

TEST_F(KinetoProfilesTest, TakingEndsWhenItIsToldTo) {
  const pid_t main_thread = ::gettid();
  std::atomic<bool> ending = false;
  auto profiles = Make();
  on_directories_ = [&] {
    if (::gettid() == main_thread) return;
    // Until it is told to end, and waited for.
    while (!ending || StateOf(main_thread) != 'S') ::usleep(100);
  };
  profiles->Begin(Window());
  Write(folder_ / "p-0.kineto.json", "there");
  List({Record(0, "p-0.kineto.json")});
  const EvidenceWindow window = Window();
  ending = true;
  profiles->Adopt(window);
  EXPECT_THAT(KeptFiles(), IsEmpty());
  profiles->Collect();
  EXPECT_THAT(KeptFiles(), SizeIs(1));
}

TEST_F(KinetoProfilesTest, AProcessThatNeverEndsItsProfileIsWaitedForSoLong) {
  Run(::geteuid());
  auto profiles = Make();
  profiles->Begin(Window());
  ProfileRecord running = Record(0, "");
  running.end_realtime_ns = 0;
  running.failure = "the process ended before its profile was written";
  List({running});
  const int64_t before_ns = clock_.now_ns;
  profiles->Collect();
  ASSERT_THAT(Kept(), SizeIs(1));
  EXPECT_THAT(Kept()[0].failure, HasSubstr("did not end its profile within 15 s"));
  EXPECT_GE(clock_.now_ns - before_ns, 15'000'000'000);
  EXPECT_LT(clock_.now_ns - before_ns, 16'000'000'000);
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

  Run(::geteuid(), 'Z');
  profiles->Begin(Window());
  running.begin_monotonic_ns = clock_.MonotonicNs();
  List({running});
  const int64_t unreaped_ns = clock_.now_ns;
  ASSERT_THAT(profiles->Collect(), SizeIs(1));
  EXPECT_LT(clock_.now_ns - unreaped_ns, 1'000'000'000) << "it is dead, though still listed";
  EXPECT_EQ(Kept()[0].failure, running.failure);

  Run(::geteuid());
  profiles->Begin(Window());
  running.begin_monotonic_ns = clock_.MonotonicNs();
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
  const std::string precious = std::string(kProcess) + "-0.kineto.json";
  Write(elsewhere / "kineto" / precious, "precious");
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
    EXPECT_TRUE(std::filesystem::exists(folder_ / precious)) << open;
  }
  begin();
  EXPECT_FALSE(std::filesystem::exists(folder_ / precious));
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
  Write(folder_ / "hard.kineto.json", "hard");
  std::filesystem::create_hard_link(folder_ / "hard.kineto.json", folder_ / "second");
  const std::vector<std::string> bad = {"../secret.kineto.json",
                                        secret.string(),
                                        "link.kineto.json",
                                        "pipe.kineto.json",
                                        "folder.kineto.json",
                                        "large.kineto.json",
                                        "absent.kineto.json",
                                        "profiles.json",
                                        ".kineto.json",
                                        "hard.kineto.json",
                                        std::string("a\0.kineto.json", 14)};
  std::vector<ProfileRecord> records = {Record(0, "good.kineto.json")};
  for (size_t i = 0; i < bad.size(); ++i) {
    records.push_back(Record(static_cast<int32_t>(i) + 1, bad[i]));
  }
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
  for (int piece = 0; piece < 5; ++piece) {
    const std::string name = "p" + std::to_string(piece) + ".kineto.json";
    EXPECT_FALSE(std::filesystem::exists(folder_ / name)) << "it would fill the memory";
  }
}

}  // namespace
}  // namespace syncline::agent
