// SPDX-License-Identifier: Apache-2.0
// syncline/annotate.h as a program uses it, each case in a process of its own: the header loads a
// collector once for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <syncline/annotate.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <tuple>

#include "instrumentation/itt/itt_abi.h"

extern "C" void AnnotateInC();

namespace {

// The header's own copies of ITT's structures are those that collectors are written for.
#define SAME_PLACE(ours, theirs, our_field, their_field) \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field))
static_assert(sizeof(syncline_itt_id) == sizeof(itt_id));
SAME_PLACE(syncline_itt_domain, itt_domain, flags, flags);
SAME_PLACE(syncline_itt_domain, itt_domain, name, name);
SAME_PLACE(syncline_itt_domain, itt_domain, next, next);
static_assert(sizeof(syncline_itt_domain) == sizeof(itt_domain));
SAME_PLACE(syncline_itt_handle, itt_string_handle, text, text);
SAME_PLACE(syncline_itt_handle, itt_string_handle, next, next);
static_assert(sizeof(syncline_itt_handle) == sizeof(itt_string_handle));
SAME_PLACE(syncline_itt_api, itt_api_info, name, name);
SAME_PLACE(syncline_itt_api, itt_api_info, function, function);
SAME_PLACE(syncline_itt_api, itt_api_info, null_function, null_function);
SAME_PLACE(syncline_itt_api, itt_api_info, group, group);
static_assert(sizeof(syncline_itt_api) == sizeof(itt_api_info));
SAME_PLACE(syncline_itt_part, itt_global, version_major, version_major);
SAME_PLACE(syncline_itt_part, itt_global, api_initialized, api_initialized);
SAME_PLACE(syncline_itt_part, itt_global, mutex_initialized, mutex_initialized);
SAME_PLACE(syncline_itt_part, itt_global, mutex, mutex);
SAME_PLACE(syncline_itt_part, itt_global, library, library);
SAME_PLACE(syncline_itt_part, itt_global, api_list, api_list);
SAME_PLACE(syncline_itt_part, itt_global, next, next);
SAME_PLACE(syncline_itt_part, itt_global, threads, threads);
SAME_PLACE(syncline_itt_part, itt_global, domains, domains);
SAME_PLACE(syncline_itt_part, itt_global, strings, strings);
SAME_PLACE(syncline_itt_part, itt_global, state, state);
SAME_PLACE(syncline_itt_part, itt_global, counters, counters);
SAME_PLACE(syncline_itt_part, itt_global, histograms, histograms);
static_assert(sizeof(syncline_itt_part) == sizeof(itt_global));
static_assert(int{SYNCLINE_ITT_CONTROL} == int{ITT_GROUP_CONTROL});
static_assert(int{SYNCLINE_ITT_COUNTER} == int{ITT_GROUP_COUNTER});
static_assert(int{SYNCLINE_ITT_STRUCTURE} == int{ITT_GROUP_STRUCTURE});
static_assert(int{SYNCLINE_ITT_ALL} == int{ITT_GROUP_ALL});
static_assert(int{SYNCLINE_ITT_U64} == int{ITT_METADATA_U64});
static_assert(int{SYNCLINE_ITT_DOUBLE} == int{ITT_METADATA_DOUBLE});
static_assert(int{SYNCLINE_MUTEX_RECURSIVE} == int{PTHREAD_MUTEX_RECURSIVE});

std::function<void()> marks_while_loading;

// What the collector printed while `marks` ran.
template <typename Expected>
void ExpectSaid(const std::function<void()>& marks, const Expected& expected) {
  EXPECT_EXIT(
      {
        marks();
        std::exit(0);
      },
      testing::ExitedWithCode(0), expected);
}

void WithCollector() { setenv("INTEL_LIBITTNOTIFY64", ANNOTATE_TEST_COLLECTOR, 1); }

constexpr const char* kLoaded = "init 3, mutex 1\ndomain annotations\n";

TEST(Annotate, WithoutACollectorNothingHappens) {
  for (const char* path : {"", "/nowhere/libcollector.so", "libm.so.6"}) {
    ExpectSaid(
        [path] {
          setenv("INTEL_LIBITTNOTIFY64", path, 1);
          AnnotateInC();
          const syncline::Step step(1);
          const syncline::Collected collected;
        },
        testing::StrEq(""));
  }
}

// A program may look at both after a mark.
TEST(Annotate, LoadingLeavesErrnoAndDlerrorAlone) {
  for (const char* path : {"/nowhere/libcollector.so", "libm.so.6", ANNOTATE_TEST_COLLECTOR}) {
    ExpectSaid(
        [path] {
          setenv("INTEL_LIBITTNOTIFY64", path, 1);
          marks_while_loading = [] { errno = ENOENT; };
          errno = EINTR;
          syncline_region_end("read", 1);
          std::fprintf(stderr, "errno %d, dlerror %d", errno == EINTR, dlerror() != nullptr);
        },
        testing::EndsWith("errno 1, dlerror 0"));
  }
}

TEST(Annotate, CAndCxxFilesShareOnePart) {
  ExpectSaid(
      [] {
        WithCollector();
        AnnotateInC();
        const syncline::Step step(18);
        const syncline::Phase phase("backward");
      },
      testing::MatchesRegex(std::string(kLoaded) +
                            "pause\nresume\nbegin step\nnumber 17\nbegin forward\n"
                            "region read 3 ([0-9a-f]+)\nend\n"
                            "counter queue of annotations, type 8\nqueue = 1.5\nqueue = 2.5\n"
                            "end\nregion ends 3 ([0-9a-f]+)\n"
                            "begin step\nnumber 18\nbegin backward\nend\nend\n"));
}

TEST(Annotate, ScopesInCxx) {
  static syncline::Counter loss("loss");
  ExpectSaid(
      [] {
        WithCollector();
        const syncline::Collected collected;
        loss.Set(0.25);
      },
      testing::StrEq(std::string(kLoaded) +
                     "resume\ncounter loss of annotations, type 8\nloss = 0.25\npause\n"));
}

TEST(Annotate, RegionsOfOneKeyAndOtherNamesAreOthers) {
  const syncline_itt_id read = syncline_itt_id_of("read", 3);
  const syncline_itt_id again = syncline_itt_id_of("read", 3);
  const syncline_itt_id other = syncline_itt_id_of("write", 3);
  const syncline_itt_id zero = syncline_itt_id_of("", 0);
  EXPECT_EQ(std::tie(read.d1, read.d2, read.d3), std::tie(again.d1, again.d2, again.d3));
  EXPECT_NE(read.d2, other.d2);
  EXPECT_NE(zero.d1 | zero.d2 | zero.d3, 0u);  // all zero would be no id
}

TEST(Annotate, ACollectorMaySwitchTheDomainOffOrWantNoTasks) {
  const auto marks = [] {
    WithCollector();
    const syncline::Step step(1);
    const syncline::Region region("read");
  };
  ExpectSaid(
      [&] {
        setenv("ANNOTATE_TEST_SWITCHED_OFF", "1", 1);
        marks();
      },
      testing::StrEq(kLoaded));
  ExpectSaid(
      [&] {
        setenv("ANNOTATE_TEST_UNWANTED", "__itt_task_begin_overlapped", 1);
        marks();
      },
      testing::MatchesRegex(std::string(kLoaded) + "begin step\nnumber 1\nregion ends .*\nend\n"));
}

TEST(Annotate, ACollectorMayLeaveItToTheProgramToMakeHandles) {
  const auto marks = [] {
    WithCollector();
    for (const char* name : {"forward", "backward", "forward"}) {
      const syncline::Phase phase(name);
    }
    const syncline_itt_handle* first = syncline_annotate_1.part.strings;
    std::fprintf(stderr, "strings:");
    for (; first != nullptr; first = first->next) std::fprintf(stderr, " %s", first->text);
  };
  const std::string said = "begin forward\nend\nbegin backward\nend\nbegin forward\nend\nstrings:";
  ExpectSaid(
      [&] {
        setenv("ANNOTATE_TEST_UNWANTED", "__itt_domain_create", 1);
        marks();
      },
      testing::StrEq("init 3, mutex 1\n" + said));
  ExpectSaid(
      [&] {
        setenv("ANNOTATE_TEST_UNWANTED", "__itt_string_handle_create", 1);
        marks();
      },
      testing::StrEq(kLoaded + said + " backward forward"));
}

// Else two libraries, built with different versions of the header, would use each other's.
TEST(Annotate, ALibraryExportsNothingOfTheHeader) {
  void* library = dlopen(ANNOTATE_TEST_LIBRARY, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlsym(library, "AnnotateInLibrary"), nullptr);
  for (const char* name :
       {"syncline_annotate_1", "syncline_annotate_dropped_1", "_ZN8syncline4StepC2Em",
        "_ZN8syncline4StepC1Em", "_ZN8syncline4StepD1Ev", "_ZN8syncline5PhaseC1EPKc",
        "_ZN8syncline6RegionC1EPKc", "_ZN8syncline6RegionD1Ev", "_ZN8syncline7Counter3SetEd",
        "_ZN8syncline9CollectedC1Ev"}) {
    EXPECT_EQ(dlsym(library, name), nullptr) << name;
  }
  ExpectSaid(
      [library] {
        WithCollector();
        AnnotateInC();  // the program's own part
        reinterpret_cast<void (*)()>(dlsym(library, "AnnotateInLibrary"))();
      },
      testing::MatchesRegex(std::string(kLoaded) + "pause.*" + kLoaded +
                            "resume\nbegin step\nnumber 1\nbegin forward\nregion read .*\n"
                            "counter loss .*\nloss = 0.5\nregion ends .*\nend\nend\npause\n"));
}

TEST(Annotate, ANullNameIsAnEmptyOne) {
  ExpectSaid(
      [] {
        WithCollector();
        const syncline::Phase phase(nullptr);
        syncline_region_begin(nullptr, 1);
      },
      testing::MatchesRegex(std::string(kLoaded) + "begin \nregion  1 .*\nend\n"));
}

TEST(Annotate, MarksWhileAnotherLoadsAreDroppedInPairs) {
  ExpectSaid(
      [] {
        WithCollector();
        marks_while_loading = [] {
          syncline_phase_begin("outer");  // the thread that loads, as an allocator of it may
          std::thread([] {
            syncline_step_begin(1);
            syncline_step_end();
            syncline_region_begin("read", 1);
          }).join();
        };
        syncline_phase_begin("first");  // loads
        syncline_phase_begin("inner");
        syncline_phase_end();
        syncline_phase_end();
        syncline_phase_end();
        const syncline::Phase phase("after");
      },
      testing::StrEq(std::string(kLoaded) + "begin after\nend\n"));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void MarkWhileLoading() {
  if (marks_while_loading) marks_while_loading();
}
