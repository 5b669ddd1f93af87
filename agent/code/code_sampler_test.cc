// SPDX-License-Identifier: Apache-2.0
#include "agent/code/code_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/code/code_recorder.h"
#include "agent/code/elf_file.h"
#include "agent/evidence/fake_node.h"
#include "common/files.h"
#include "evidence/code_samples.h"

namespace syncline::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What the kernel will say of each thread, and what was asked of it.
struct FakeKernel {
  std::map<int32_t, PerfRecords> records;
  std::map<int32_t, bool> enabled;
  bool refuses_kernel = false;
  absl::Status refusal;  // of all

  OpenThreadEvent Open() {
    return [this](int32_t tid, bool kernel) -> absl::StatusOr<std::unique_ptr<ThreadEvent>> {
      if (!refusal.ok()) return refusal;
      if (kernel && refuses_kernel) return absl::PermissionDeniedError("no");
      enabled[tid] = false;
      return std::make_unique<Event>(this, tid);
    };
  }
  struct Event : ThreadEvent {
    Event(FakeKernel* from, int32_t of) : kernel(from), tid(of) {}
    void Enable() override { kernel->enabled[tid] = true; }
    void Disable() override { kernel->enabled[tid] = false; }
    PerfRecords Drain() override { return std::exchange(kernel->records[tid], {}); }
    int64_t OnCpuNs() override { return 30'000'000; }
    FakeKernel* kernel;
    int32_t tid;
  };
};

class CodeSamplerTest : public FakeNode {
 protected:
  CodeSamplerTest() {
    Put(proc_ / "1234/maps",
        "1000-2000 r-xp 00000400 08:01 5 /opt/lib.so\n"
        "5000-6000 rwxp 00000000 00:00 0\n");
  }
  CodeSampler Make(CodeSamplerOptions options = {}) {
    options.proc = proc_;
    return CodeSampler(Directories(), &clock_, kernel_.Open(), options);
  }
  evidence::CodeSamples Parsed(CodeSampler* sampler) {
    auto parsed = evidence::ParseCodeSamples(sampler->TakeText());
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->damaged_lines, 0U);
    return *std::move(parsed);
  }
  FakeKernel kernel_;
};

TEST_F(CodeSamplerTest, SamplesBecomePlacesInFiles) {
  SetTask(1300, 0, 0);
  CodeSampler sampler = Make({.time_shift_ns = 500});
  ASSERT_TRUE(sampler.Probe().ok());
  sampler.Search();
  EXPECT_FALSE(kernel_.enabled.at(1234));
  sampler.Enable();
  EXPECT_TRUE(kernel_.enabled.at(1234));
  kernel_.records[1300].samples = {{100, {0xffff1, 0xffff5}, {0x1010, 0x1021, 0x9999, 0x1030}},
                                   {200, {}, {0x1010, 0x1021}},
                                   {300, {}, {0x5004}},
                                   {400, {}, {0x77}}};
  kernel_.records[1300].losses = {{450, 7}};
  sampler.Drain();
  sampler.Disable();
  EXPECT_FALSE(kernel_.enabled.at(1300));
  const evidence::CodeSamples code = Parsed(&sampler);
  EXPECT_TRUE(code.kernel);
  EXPECT_EQ(code.period_ns, kCodePeriodNs);
  ASSERT_THAT(code.threads, SizeIs(2));
  EXPECT_EQ(code.threads[1].tid, 1300);
  ASSERT_THAT(code.samples, SizeIs(4));
  EXPECT_EQ(code.samples[0].at_ns, 600) << "shifted into the agent's time namespace";
  const auto place = [&](uint32_t frame) {
    return absl::StrCat(code.modules[code.frames[frame].module], "+",
                        absl::Hex(code.frames[frame].offset));
  };
  std::vector<std::string> first;
  for (const uint32_t frame : code.stacks[code.samples[0].stack]) first.push_back(place(frame));
  EXPECT_THAT(first,
              ElementsAre("[kernel]+ffff1", "[kernel]+ffff4", "/opt/lib.so+410", "/opt/lib.so+420"))
      << "callers: the call itself; nothing behind what is no code";
  EXPECT_EQ(place(code.stacks[code.samples[2].stack][0]), "[generated code]+5004");
  EXPECT_EQ(place(code.stacks[code.samples[3].stack][0]), "[unknown]+77");
  ASSERT_THAT(code.losses, SizeIs(1));
  EXPECT_EQ(code.losses[0].count, 7U);
  EXPECT_THAT(code.thread_times, SizeIs(2));
}

TEST_F(CodeSamplerTest, LibrariesThatComeLaterAreFound) {
  CodeSampler sampler = Make();
  ASSERT_TRUE(sampler.Probe().ok());
  sampler.Search();
  sampler.Enable();
  Put(proc_ / "1234/maps",
      "1000-2000 r-xp 0 08:01 5 /opt/lib.so\n8000-9000 r-xp 0 08:01 6 /opt/new.so\n");
  clock_.now_ns += 1'000'000'000;
  kernel_.records[1234].samples = {{100, {}, {0x8010}}};
  sampler.Drain();
  EXPECT_THAT(Parsed(&sampler).modules, ElementsAre("/opt/new.so"));
}

TEST_F(CodeSamplerTest, WhereOnlyPageFaultsAreRefusedCodeIsSampled) {
  CodeSampler sampler(Directories(), &clock_, kernel_.Open(), {.proc = proc_},
                      [](int32_t, bool, uint64_t) -> absl::StatusOr<std::unique_ptr<SoftwareRing>> {
                        return absl::PermissionDeniedError("no");
                      });
  ASSERT_TRUE(sampler.Probe().ok());
  sampler.Search();
  sampler.Enable();
  kernel_.records[1234].samples = {{100, {}, {0x1010}}};
  sampler.Drain();
  sampler.Disable();
  const evidence::CodeSamples code = Parsed(&sampler);
  EXPECT_THAT(code.samples, SizeIs(1));
  EXPECT_FALSE(code.software.known);
  EXPECT_THAT(sampler.TakeComplaints(),
              ElementsAre("page faults and switches are not counted, only code is sampled: no"));
}

TEST_F(CodeSamplerTest, ThreadsThatComeAreSampledAndThoseThatEndSaySo) {
  SetTask(1300, 0, 0);
  CodeSampler sampler = Make();
  ASSERT_TRUE(sampler.Probe().ok());
  sampler.Search();
  sampler.Enable();
  SetTask(1400, 0, 0);
  kernel_.records[1300].samples = {{100, {}, {0x1010}}};
  fs::remove_all(proc_ / "1234/task/1300");
  sampler.LookForThreads();
  EXPECT_TRUE(kernel_.enabled.at(1400));
  const evidence::CodeSamples code = Parsed(&sampler);
  EXPECT_THAT(code.threads, SizeIs(3));
  EXPECT_THAT(code.samples, SizeIs(1)) << "what it ran before it ended";
  EXPECT_THAT(code.thread_times, SizeIs(1));
}

TEST_F(CodeSamplerTest, AZombieIsLetGoThoughItsThreadsAreListed) {
  CodeSampler sampler = Make();
  ASSERT_TRUE(sampler.Probe().ok());
  sampler.Search();
  sampler.Enable();
  std::string stat = ReadFile(proc_ / "1234/stat", 4096).value();
  const size_t state = stat.find(") ");
  ASSERT_NE(state, std::string::npos);
  stat[state + 2] = 'Z';
  Put(proc_ / "1234/stat", stat);
  kernel_.records[1234].samples = {{100, {}, {0x1010}}};
  sampler.Search();
  sampler.Drain();
  sampler.Disable();
  const evidence::CodeSamples code = Parsed(&sampler);
  EXPECT_THAT(code.samples, SizeIs(1)) << "what it ran before it ended";
  EXPECT_THAT(code.thread_times, SizeIs(1));
}

TEST_F(CodeSamplerTest, AnAddressIsThatOfTheLibraryMappedLast) {
  CodeSampler sampler = Make();
  ASSERT_TRUE(sampler.Probe().ok());
  sampler.Search();
  sampler.Enable();
  Put(proc_ / "1234/maps", "1000-2000 r-xp 0 08:01 6 /opt/new.so\n");
  clock_.now_ns += 1'000'000'000;
  kernel_.records[1234].samples = {{clock_.now_ns, {}, {0x1010}}};
  kernel_.records[1234].mapped_ns = {clock_.now_ns - 1000};
  sampler.Drain();
  EXPECT_THAT(Parsed(&sampler).modules, ElementsAre("/opt/new.so"));
}

TEST_F(CodeSamplerTest, ANumberThatIsAnotherProcessesNowIsNotSampled) {
  CodeSampler sampler = Make();
  ASSERT_TRUE(sampler.Probe().ok());
  sampler.Search();
  Put(proc_ / "1234/stat", "1234 (other) S 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 99999 0\n");
  SetTask(1400, 0, 0);
  sampler.LookForThreads();
  EXPECT_FALSE(kernel_.enabled.contains(1400));
}

TEST_F(CodeSamplerTest, WhoIsLeftOutAndWhatIsTooMuchAreNotSampled) {
  SetTask(1300, 0, 0);
  CodeSampler few = Make({.threads_max = 1});
  ASSERT_TRUE(few.Probe().ok());
  few.Search();
  few.Enable();
  few.Disable();
  EXPECT_THAT(few.TakeComplaints(), ElementsAre(HasSubstr("1 threads were not sampled")));
  CodeSampler none = Make();
  ASSERT_TRUE(none.Probe().ok());
  none.LeaveOut({::geteuid()});
  none.Search();
  EXPECT_THAT(Parsed(&none).threads, IsEmpty());
}

TEST_F(CodeSamplerTest, WithoutTheKernelWhereThatIsRefused) {
  kernel_.refuses_kernel = true;
  CodeSampler sampler = Make();
  ASSERT_TRUE(sampler.Probe().ok());
  sampler.Search();
  const evidence::CodeSamples code = Parsed(&sampler);
  EXPECT_FALSE(code.kernel);
  EXPECT_THAT(code.threads, SizeIs(1));
}

TEST_F(CodeSamplerTest, WhereTheKernelRefusesTheRecorderSaysWhatToDo) {
  Put(proc_ / "sys/kernel/perf_event_paranoid", "3\n");
  kernel_.refusal = absl::PermissionDeniedError("perf_event_open: Permission denied");
  Log log(2, &clock_);
  CodeRecorder recorder(Directories(), &clock_, &log,
                        {.sampler = {.proc = proc_}, .open = kernel_.Open()});
  recorder.Find({});
  recorder.Begin({.recording_id = "r1", .directory = root_ / "r1"});
  recorder.End();
  const auto complaints = recorder.Collect();
  ASSERT_THAT(complaints, SizeIs(1));
  EXPECT_THAT(complaints[0].what(), HasSubstr("perf_event_paranoid is 3"));
  EXPECT_THAT(complaints[0].fix(), HasSubstr("CAP_PERFMON"));
  const auto text = ReadFile(root_ / "r1/evidence" / evidence::kCodeFileName);
  ASSERT_TRUE(text.ok());
  const auto code = evidence::ParseCodeSamples(*text);
  ASSERT_TRUE(code.ok());
  EXPECT_TRUE(code->ended);
  EXPECT_THAT(code->notes, ElementsAre(HasSubstr("No code is sampled")));
}

TEST_F(CodeSamplerTest, TheShiftOfATimeNamespaceIsRead) {
  Put(proc_ / "self/timens_offsets",
      "monotonic          12   500\nboottime           0         0\n");
  EXPECT_EQ(TimeNamespaceShiftNs(proc_), 12'000'000'500);
  EXPECT_EQ(TimeNamespaceShiftNs(root_ / "nowhere"), 0);
}

TEST(KernelSymbols, ByTheGreatestAddressBelow) {
  CodeTable table;
  std::string text;
  table.KernelFrame(0x1010, &text);
  table.KernelFrame(0x10, &text);
  EXPECT_EQ(KernelSymbols(table, "1000 T first\n1008 d data\n1020 t second\t[module]\n"),
            "Y 0 =first = 0\n");
  EXPECT_EQ(KernelSymbols(table, "0 T first\n0 T second\n"), "");
}

extern "C" __attribute__((noinline)) int syncline_named_function(int value) { return value * 3; }

TEST(ElfFile, NamesAFunctionOfThisProgram) {
  const auto maps = ReadFile("/proc/self/maps");
  ASSERT_TRUE(maps.ok());
  const std::vector<MappedCode> code = ParseMaps(*maps);
  const auto address = reinterpret_cast<uint64_t>(&syncline_named_function);
  const MappedCode* const mapped = FindCode(code, address);
  ASSERT_NE(mapped, nullptr);
  const auto file = ElfFile::Open("", mapped->module);
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<uint64_t> offsets = {address - mapped->begin + mapped->file_offset, 1};
  EXPECT_THAT((*file)->Functions(offsets), ElementsAre("syncline_named_function", ""));
  std::vector<std::string> lines;
  (*file)->Lines(offsets, [&](size_t index, const SourceLine& line) {
    EXPECT_EQ(index, 0U);
    lines.push_back(line.file);
  });
  EXPECT_THAT(lines, ElementsAre(HasSubstr("code_sampler_test.cc")));
}

TEST(ElfFile, WhatIsNoneIsRefused) {
  EXPECT_FALSE(ElfFile::Open("", "/proc/self/maps").ok());
  EXPECT_FALSE(ElfFile::Open("", "/dev/zero").ok());
  EXPECT_FALSE(ElfFile::Open("/nowhere", "/bin/sh").ok());
}

}  // namespace
}  // namespace syncline::agent
