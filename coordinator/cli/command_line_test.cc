// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/command_line.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "coordinator/cli/clocks_text.h"
#include "coordinator/fleet/fake_agent.h"
#include "coordinator/host/fake_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::cli {
namespace {

using fleet::FakeAgent;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
namespace fs = std::filesystem;

class CommandLine : public testing::Test {
 protected:
  CommandLine()
      : directory_(fs::path(testing::TempDir()) /
                   (std::string("syncline_cli_") +
                    testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(directory_);
    EXPECT_TRUE(MakeDirectories(directory_).ok());
    context_.environment = [this](const char* name) { return variables_[name]; };
    context_.clock = &clock_;
    context_.interrupts = &interrupts_;
    context_.out = &out_;
    context_.err = &err_;
    context_.created_by.version = "0.1.0";
    context_.connect = [this](const hosts::Node& node, const certs::Credentials&) {
      auto agent = std::make_unique<FakeAgent>(&clock_);
      agent->behaviour = behaviour_;
      connected_.push_back(node.name);
      return agent;
    };
  }
  ~CommandLine() override { fs::remove_all(directory_); }

  // The exit code.
  int Run(const std::vector<std::string>& words) {
    out_.str("");
    err_.str("");
    const std::optional<int> code = ParseCommandLine(words, &context_);
    return code.has_value() ? *code : context_.action();
  }
  // A hosts file with agents of this machine: those need no certificates.
  std::string HostsFile() {
    const fs::path path = directory_ / "hosts";
    EXPECT_TRUE(WriteFileAtomically(path, "a unix:/run/a\nb unix:/run/b\n").ok());
    return path.string();
  }

  const fs::path directory_;
  std::map<std::string, std::string> variables_;
  host::FakeClock clock_;
  record::Interrupts interrupts_;
  std::ostringstream out_;
  std::ostringstream err_;
  FakeAgent::Behaviour behaviour_;
  std::vector<std::string> connected_;
  Context context_;
};

TEST_F(CommandLine, WrongUsageIsSaidLikeAnyOtherError) {
  EXPECT_EQ(Run({"record", "--bogus"}), kWrongUsage);
  EXPECT_THAT(err_.str(), AllOf(StartsWith("syncline: "), HasSubstr("--bogus"),
                                HasSubstr("syncline record --help")));
  EXPECT_EQ(Run({"recrod"}), kWrongUsage);
  EXPECT_THAT(err_.str(), AllOf(StartsWith("syncline: "), HasSubstr("recrod")));
  EXPECT_EQ(Run({}), kWrongUsage);
  EXPECT_THAT(err_.str(), StartsWith("syncline: "));
}

TEST_F(CommandLine, VtuneIsARecordingWithAnAnalysisOfVtunes) {
  const std::string hosts = HostsFile();
  EXPECT_EQ(Run({"vtune", "hotspot", "--hosts", hosts}), kWrongUsage);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("\"hotspot\" is not an analysis of VTune"),
                                HasSubstr("hotspots, threading")));
  EXPECT_EQ(Run({"record", "--vtune", "io", "--vtune-knob", "x", "--hosts", hosts}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("NAME=VALUE"));
  EXPECT_EQ(Run({"record", "--vtune-ring", "5", "--hosts", hosts}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("need --vtune ANALYSIS"));
  EXPECT_EQ(Run({"vtune", "--hosts", hosts}), kWrongUsage);
  const std::string run = (directory_ / "run").string();
  EXPECT_EQ(Run({"vtune", "io", "--hosts", hosts, "--for", "2s", "--out", run}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("VTune is usable on no node"));
  EXPECT_FALSE(fs::exists(run));
  v1::NodeTool tool;
  tool.set_name("vtune");
  tool.set_path("/opt/vtune");
  tool.set_version("VTune 2025.0");
  behaviour_.tools = {tool};
  Run({"vtune", "io", "--hosts", hosts, "--for", "2s", "--out", run});
  EXPECT_TRUE(fs::exists(run)) << err_.str();
  EXPECT_EQ(Run({"nodes", "--hosts", hosts}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("a: vtune in /opt/vtune: VTune 2025.0\n"));
  behaviour_.tools[0].set_problem("others can write there");
  EXPECT_EQ(Run({"nodes", "--hosts", hosts}), kDone);
  EXPECT_THAT(err_.str(), HasSubstr("vtune in /opt/vtune cannot be used: others can write there"));
}

TEST_F(CommandLine, AnEmptyPlaceIsNoPlace) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--hosts", "", "nodes"}, {"record", "--out", ""}, {"merge", "run", "--out", ""}}) {
    EXPECT_EQ(Run(words), kWrongUsage) << words[0];
    EXPECT_THAT(err_.str(), HasSubstr("must not be empty")) << words[0];
  }
}

TEST_F(CommandLine, AListIsOneWord) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"events", "--nodes", "a,b", "no-input", "--from", "1s"},
           {"merge", "--format", "ctf", "no-input"},
           {"events", "--events", "x:*", "no-input"}}) {
    EXPECT_EQ(Run(words), kFailed) << words[1];
    EXPECT_THAT(err_.str(), HasSubstr("not a file or directory: no-input")) << words[1];
  }
}

TEST_F(CommandLine, HelpAndVersionAreNoErrors) {
  EXPECT_EQ(Run({"--version"}), kDone);
  EXPECT_EQ(out_.str(), "syncline 0.1.0\n");
  EXPECT_EQ(Run({"--help"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("Without --hosts and -H, nodes come from $SYNCLINE_HOSTS"));
  EXPECT_THAT(out_.str(), HasSubstr("this machine is meant"));
  EXPECT_EQ(Run({"completion", "bash"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("--tls-dir"));
  EXPECT_THAT(out_.str(), HasSubstr("\"merge --format\") values=\"perfetto ctf chrome"));
  EXPECT_THAT(out_.str(), HasSubstr("\"events --format\") values=\"text jsonl\""));
}

// The fake agent found out neither its memory nor the size of its /dev/shm.
TEST_F(CommandLine, WhatANodeDoesNotKnowOfItselfIsUnknown) {
  context_.local_node = hosts::Node{.name = "here", .host = "", .socket_path = "/run/own"};
  context_.ensure_local_agent = []() -> absl::StatusOr<bool> { return false; };
  EXPECT_EQ(Run({"nodes"}), kDone) << err_.str();
  EXPECT_THAT(out_.str(), testing::ContainsRegex("fake +unknown +unknown +unknown +missing"));
  EXPECT_EQ(Run({"nodes", "--json"}), kDone) << err_.str();
  for (const char* key : {"cpu_count", "memory_bytes", "shm_free_bytes", "shm_total_bytes"}) {
    EXPECT_THAT(out_.str(), HasSubstr(absl::StrCat("\"", key, "\": null")));
  }
}

TEST_F(CommandLine, NodesNamesWhatARecordingCanUse) {
  v1::NodeTool nvml;
  nvml.set_name("nvml");
  nvml.set_path("/usr/lib/libnvidia-ml.so.1");
  nvml.set_version("580.65.06");
  nvml.set_detail("1 device: NVIDIA H100 80GB HBM3");
  behaviour_.tools = {nvml};
  Run({"nodes", "--hosts", HostsFile()});
  EXPECT_THAT(out_.str(), HasSubstr("a: nvml in /usr/lib/libnvidia-ml.so.1: 580.65.06, 1 device: "
                                    "NVIDIA H100 80GB HBM3\n"));
  behaviour_.tools[0].set_problem("NVML does not start: Driver Not Loaded");
  Run({"nodes", "--hosts", HostsFile()});
  EXPECT_THAT(out_.str(), Not(HasSubstr("nvml")));
  EXPECT_THAT(err_.str(), HasSubstr("nvml in /usr/lib/libnvidia-ml.so.1 cannot be used: NVML does "
                                    "not start"));
}

TEST_F(CommandLine, WithoutNodesThisMachineIsMeant) {
  int ensured = 0;
  context_.local_node = hosts::Node{.name = "here", .host = "", .socket_path = "/run/own"};
  context_.ensure_local_agent = [&]() -> absl::StatusOr<bool> { return ++ensured == 1; };
  EXPECT_EQ(Run({"nodes"}), kDone) << err_.str();
  EXPECT_THAT(err_.str(), HasSubstr("note: here: started an agent"));
  EXPECT_EQ(Run({"-H", "local", "nodes"}), kDone);
  EXPECT_THAT(err_.str(), Not(HasSubstr("started an agent")));
  context_.host_list.clear();  // a command line begins without
  variables_["SYNCLINE_HOSTS"] = "local";
  EXPECT_EQ(Run({"nodes"}), kDone);
  EXPECT_THAT(connected_, testing::ElementsAre("here", "here", "here"));
  EXPECT_EQ(ensured, 3);
  // Named nodes are named nodes, and certificates are for those only.
  EXPECT_EQ(Run({"--hosts", HostsFile(), "nodes"}), kDone);
  EXPECT_EQ(ensured, 3);
  context_.hosts_file.clear();
  variables_.clear();
  EXPECT_EQ(Run({"certs", "init", (directory_ / "tls").string()}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("Which nodes?"));
  EXPECT_EQ(Run({"-H", "local,b", "nodes"}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("this machine alone"));
}

TEST_F(CommandLine, AnAgentThatDoesNotStartIsSaid) {
  context_.local_node = hosts::Node{.name = "here", .host = "", .socket_path = "/run/own"};
  context_.ensure_local_agent = []() -> absl::StatusOr<bool> {
    return absl::FailedPreconditionError("This machine's own agent does not start: no LTTng");
  };
  EXPECT_EQ(Run({"record", "--for", "1s"}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("does not start: no LTTng"));
}

TEST_F(CommandLine, ReportsPrintTheSectionsThatAreNamed) {
  const std::string run = "tests/golden/tensorflow_profile/run";
  EXPECT_EQ(Run({"report", "--section", "nodse", run}), kWrongUsage);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("\"nodse\" is not a section"), HasSubstr("nodes, "),
                                HasSubstr("operators")));
  EXPECT_EQ(Run({"report", "--section", "nodes", "--json", run}), kWrongUsage);
  EXPECT_EQ(Run({"report", "--section", "losses,nodes", run}), kDone) << err_.str();
  const std::string both = out_.str();
  EXPECT_THAT(both, AllOf(StartsWith("Nodes\n"), HasSubstr("\nLosses\n")));
  EXPECT_EQ(Run({"report", run, "--section", "nodes", "--section", "losses"}), kDone);
  EXPECT_EQ(out_.str(), both);
  EXPECT_EQ(Run({"report", run, "--full"}), kDone);
  EXPECT_THAT(out_.str(), AllOf(StartsWith("Recording\n"), HasSubstr("\nPartitions\n")));
  EXPECT_EQ(Run({"report", run}), kDone);
  const std::string screen = out_.str();
  EXPECT_LE(std::count(screen.begin(), screen.end(), '\n'), 45) << screen;
  EXPECT_EQ(Run({"completion", "bash"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("\"report --section\") values=\"recording nodes coverage"));
}

// A program that were started here would end this test with its own exit code, 1.
TEST_F(CommandLine, RunStartsNothingWhenItsOwnOptionsAreWrong) {
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--rnak", "3"},
                                             {"--rank", "3", "--jbo", "x"},
                                             {"-r", "3"},
                                             {"--hosts", "h"},
                                             {"--rank", "-1"},
                                             {"--rank", "three"},
                                             {"--rank", "99999999999"}}) {
    for (const bool dashes : {true, false}) {
      std::vector<std::string> words = {"run"};
      words.insert(words.end(), options.begin(), options.end());
      if (dashes) words.emplace_back("--");
      words.emplace_back("false");
      EXPECT_EQ(Run(words), kWrongUsage) << options[0];
      EXPECT_THAT(err_.str(), AllOf(StartsWith("syncline: "), HasSubstr(options[0]))) << options[0];
    }
  }
  EXPECT_EQ(Run({"run", "--rank", "-1", "--", "false"}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("\"-1\" is not a rank: ranks are 0, 1, 2"));
  EXPECT_EQ(Run({"run", "--rank", "3", "--", "sh", "-c", "torchrun x"}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("every one of them would be rank 3"));
  EXPECT_EQ(Run({"run", "--"}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("No command"));
}

TEST_F(CommandLine, AWindowThatNobodyCouldCoverIsRefusedWithTheReason) {
  for (const char* window : {"0s", "1ms", "99ms"}) {
    EXPECT_EQ(Run({"record", "--hosts", HostsFile(), "--for", window}), kWrongUsage) << window;
    EXPECT_THAT(err_.str(), HasSubstr("--for must be at least 100ms: the stop is sent"));
  }
  EXPECT_EQ(Run({"record", "--hosts", HostsFile(), "--limit", "1"}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("--limit must be at least 1M"));
}

TEST_F(CommandLine, OptionsWinOverTheVariable) {
  variables_["SYNCLINE_HOSTS"] = HostsFile();
  EXPECT_EQ(Run({"nodes"}), kDone);
  EXPECT_THAT(connected_, testing::ElementsAre("a", "b"));
  EXPECT_EQ(Run({"nodes", "-H", "c"}), kWrongUsage);  // -H names TCP nodes: without certificates
  EXPECT_THAT(err_.str(), HasSubstr("--tls-dir"));
  variables_["SYNCLINE_HOSTS"] = "/no/such/file";
  EXPECT_EQ(Run({"nodes", "--hosts", HostsFile(), "-H", "b"}), kDone);
  EXPECT_EQ(connected_.back(), "b");
}

TEST_F(CommandLine, AVariableThatIsWrongIsNamed) {
  for (const char* path : {"/no/such/file", "hosts.txt", "/"}) {
    variables_["SYNCLINE_HOSTS"] = path;
    EXPECT_NE(Run({"nodes"}), kDone) << path;
    EXPECT_THAT(err_.str(), AllOf(HasSubstr("SYNCLINE_HOSTS"), HasSubstr(path)));
  }
  variables_["SYNCLINE_HOSTS"] = "a,b[";
  EXPECT_EQ(Run({"nodes"}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("SYNCLINE_HOSTS"));
  variables_["SYNCLINE_HOSTS"] = "a,b";
  variables_["SYNCLINE_TLS_DIR"] = "/no/such/tls";
  EXPECT_NE(Run({"nodes"}), kDone);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("SYNCLINE_TLS_DIR"), HasSubstr("/no/such/tls")));
  EXPECT_NE(Run({"nodes", "--tls-dir", "/no/other"}), kDone);
  EXPECT_THAT(err_.str(), Not(HasSubstr("SYNCLINE_TLS_DIR")));
}

TEST_F(CommandLine, WithoutALeaseNoLengthIsSaid) {
  EXPECT_EQ(Run({"status", "--hosts", HostsFile()}), kDone);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("recording"), Not(HasSubstr("0 ns"))));
}

TEST_F(CommandLine, OffsetsOfAColumnHaveOneUnit) {
  EXPECT_THAT(InOneUnit({3'282'123'456'789, -54}),
              ElementsAre("+3282.123456789 s", "-0.000000054 s"));
  EXPECT_THAT(InOneUnit({1'500'000, -20}), ElementsAre("+1.500000 ms", "-0.000020 ms"));
  EXPECT_THAT(InOneUnit({999, 0}), ElementsAre("+0.999 µs", "+0.000 µs"));
}

TEST_F(CommandLine, LiveClocksExplainAnAgentThatIsDownAsOtherCommandsDo) {
  behaviour_.clock = absl::UnavailableError("failed to connect to all addresses");
  behaviour_.describe = absl::UnavailableError("nothing listens on /run/a: start the agent");
  EXPECT_EQ(Run({"clocks", "--live", "--hosts", HostsFile()}), kFailed);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("a: nothing listens on /run/a: start the agent"),
                                HasSubstr("No node answers clock probes"),
                                Not(HasSubstr("failed to connect"))));
}

TEST_F(CommandLine, PatternsOfEventsSwallowNoInput) {
  const std::string run = "tests/golden/tensorflow_profile/run";
  const auto lines = [&] {
    const std::string text = out_.str();
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(Run({"events", "--events", "syncline:on", run}), kDone) << err_.str();
  const auto on = lines();
  EXPECT_GT(on, 0);
  EXPECT_EQ(Run({"events", run, "--events", "syncline:off"}), kDone) << err_.str();
  const auto off = lines();
  EXPECT_EQ(Run({"events", "--events", "syncline:on, syncline:off", run}), kDone) << err_.str();
  EXPECT_EQ(lines(), on + off);
  EXPECT_EQ(Run({"events", "--events", "syncline:on", "--events", "syncline:off", run}), kDone);
  EXPECT_EQ(lines(), on + off);
  EXPECT_NE(Run({"events", run, "--events", ""}), kDone);
  EXPECT_EQ(out_.str(), "");
}

TEST_F(CommandLine, WhyTakesARecordingOrMakesOne) {
  for (const char* window : {"0s", "99ms", "steps", "0steps", "-1steps", "1e3steps", "ten"}) {
    EXPECT_EQ(Run({"why", "--hosts", HostsFile(), "--for", window}), kWrongUsage) << window;
    EXPECT_EQ(connected_.size(), 0u) << window;
  }
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"why", "run", "--for", "10s"},
                                             {"why", "run", "--out", "x"},
                                             {"why", "run", "--no-evidence"},
                                             {"why", "run", "--allow-missing"}}) {
    EXPECT_EQ(Run(words), kWrongUsage) << words[2];
    EXPECT_THAT(err_.str(), HasSubstr("apply to a new recording only")) << words[2];
  }
  EXPECT_EQ(Run({"why", "no-such-run"}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("not a file or directory: no-such-run"));
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(Run({"why", "--help"}), kDone);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("Exit code 0"), HasSubstr("docs/findings.md")));
}

// A recording is not compared with itself.
std::string CopyOf(const std::string& run) {
  const std::string copy = ::testing::TempDir() + "earlier-run";
  std::filesystem::remove_all(copy);
  std::filesystem::copy(run, copy, std::filesystem::copy_options::recursive);
  return copy;
}

TEST_F(CommandLine, ReportAgainstComparesWhateverReportReads) {
  const std::string run = "tests/golden/tensorflow_profile/run";
  const std::string copy = CopyOf(run);
  const std::string profiles = "tests/golden/pytorch_profiles";
  for (const auto& [words, what] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"report", "--against", run}, "INPUT is required"},
           {{"report", run, "--against", run, "--section", "nodes"}, "excludes"},
           {{"report", run, "--against", run, "--svg", "x.svg"}, "excludes"},
           {{"report", run, "--against", copy, "--against", copy + "/."}, "is given twice"},
           {{"report", run, "--against", run + "/."}, "is the recording itself"},
           {{"report", run, "--against", run, run + "/."}, "needs its own --against"}}) {
    EXPECT_EQ(Run(words), kWrongUsage) << what;
    EXPECT_THAT(err_.str(), HasSubstr(what));
    EXPECT_EQ(out_.str(), "") << what;
  }
  EXPECT_EQ(Run({"report", run, "--against", "no-such-run"}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("no-such-run"));
  EXPECT_EQ(Run({"report", run, "--against", copy}), kDone) << err_.str();
  EXPECT_THAT(out_.str(), AllOf(StartsWith("NOW     tests/golden/"), HasSubstr("train_step"),
                                HasSubstr("no operator, kernel or collective certainly changed")));
  EXPECT_EQ(Run({"report", run, "--against", copy, "--json"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("\"format\": \"syncline-report-comparison\""));
  EXPECT_EQ(Run({"report", run, "--against", profiles}), kIncomplete);
  EXPECT_THAT(out_.str(), StartsWith("REFUSED not comparable: 2 ranks now, no ranks before"));
}

TEST_F(CommandLine, WhyAgainstTakesTwoRecordingsAndLimits) {
  for (const auto& [words, what] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"why", "--against", "b"}, "syncline why RUN --against RUN"},
           {{"why", "a", "--fail-if", "step > +5%"}, "it needs --against"},
           {{"why", "a", "--against", "b", "--for", "10s"}, "apply to a new recording only"},
           {{"why", "--against", "b", "--fail-if", "step > 5%", "a"}, "with its sign"},
           {{"why", "a", "--against", "b", "--fail-if", "step > +5%", "--fail-if", "pace > +5%"},
            "there is no \"pace\""}}) {
    EXPECT_EQ(Run(words), kWrongUsage) << what;
    EXPECT_THAT(err_.str(), HasSubstr(what));
    EXPECT_EQ(out_.str(), "") << what;
  }
  EXPECT_EQ(Run({"why", "no-such-run", "--against", "nor-this"}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("no-such-run"));
  // A recording that is not explained is not compared either: 3, never 4.
  const std::string run = "tests/golden/tensorflow_profile/run";
  const std::string copy = CopyOf(run);
  const std::vector<std::string> words = {"why",       run,          "--against", copy,
                                          "--fail-if", "step > +0%", "--json"};
  EXPECT_EQ(Run(words), kIncomplete) << err_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("\"now_refused\""), HasSubstr("\"too_few_steps\""),
                                HasSubstr("\"not_judged\"")));
  EXPECT_EQ(Run({"why", run, "--against", copy}), kIncomplete);
  EXPECT_THAT(out_.str(), HasSubstr("REFUSED the recording now: 3 whole steps"));
  EXPECT_EQ(Run({"why", run, "--against", run + "/nodes/worker-0/trace"}), kIncomplete);
  EXPECT_THAT(out_.str(), HasSubstr("REFUSED the recording before: traces that Syncline did"));
  EXPECT_EQ(Run({"why", run, "--against", copy, "--against", copy + "/."}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("is given twice"));
}

TEST_F(CommandLine, WhyAgainstTakesProfilesToo) {
  const std::string folder = "tests/golden/pytorch_profiles";
  const std::vector<std::string> words = {
      "why", folder + "/rank0.json.gz", folder + "/rank1.json.gz", "--against", folder, "--json"};
  EXPECT_EQ(Run(words), kIncomplete) << err_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("\"devices\""), HasSubstr("rank0.json.gz and 1 more")));
  const std::string run = "tests/golden/tensorflow_profile/run";
  EXPECT_EQ(Run({"why", folder, "--against", run}), kIncomplete) << err_.str();
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("is of a job on GPUs"), HasSubstr(run + " is of a TensorFlow")));
}

TEST_F(CommandLine, WhatIsNotExplainedIsRefusedInOneParagraph) {
  const std::string run = "tests/golden/tensorflow_profile/run";
  EXPECT_EQ(Run({"why", run}), kIncomplete) << err_.str();
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("REFUSED 3 whole steps"), EndsWith("recording: " + run + "\n")));
  EXPECT_EQ(Run({"why", run, "--json"}), kIncomplete) << err_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("\"too_few_steps\""), HasSubstr(run)));
  EXPECT_EQ(Run({"why", run + "/nodes/worker-0/trace"}), kIncomplete) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("traces that Syncline did not record"));
  EXPECT_EQ(Run({"why", run, "--job", "night"}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("no job \"night\" here"));
}

TEST_F(CommandLine, RecordSaysWhatItFetchedAndPackSendsIt) {
  context_.connect = [this](const hosts::Node&, const certs::Credentials&) {
    auto agent = std::make_unique<FakeAgent>(&clock_);
    agent->files = {{"agent.log", std::string(1024, 'x')}};
    return agent;
  };
  const std::string run = directory_ / "run";
  Run({"record", "--hosts", HostsFile(), "--for", "2s", "--out", run});
  EXPECT_THAT(out_.str(), HasSubstr("fetched: 2.0 KiB from 2 nodes"));
  const std::string sent = directory_ / "sent.tar.gz";
  Run({"pack", run, "-o", sent});
  EXPECT_EQ(out_.str(), sent + "\n") << err_.str();
  EXPECT_TRUE(fs::exists(sent));
  EXPECT_EQ(Run({"pack", run, "-o", sent}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("is there already"));
  EXPECT_EQ(Run({"pack", run, "-o", sent + ".zip"}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("must end in .tar.gz or .tar.zst"));
  EXPECT_EQ(Run({"pack", "no-such-run"}), kFailed);
}

TEST_F(CommandLine, PackRedactSaysWhatItDidAndWhatNot) {
  const std::string run = "tests/golden/tensorflow_workers/run";
  const std::string sent = directory_ / "sent.tar.gz";
  EXPECT_EQ(Run({"pack", run, "--redact", "-o", sent}), kDone) << err_.str();
  EXPECT_EQ(out_.str(), sent + "\n");
  EXPECT_THAT(err_.str(),
              AllOf(HasSubstr("not in the pack, 2 files: profiles of TensorFlow (xspace/)"),
                    HasSubstr("not in the pack, 4 files: indexes of streams"),
                    HasSubstr("redacted: "), HasSubstr("none was found"),
                    HasSubstr("not looked for: "), HasSubstr("unchanged: times, sizes, counts")));
  EXPECT_EQ(Run({"--quiet", "pack", run, "--redact", "-o", sent + ".tar.zst"}), kDone);
  EXPECT_EQ(err_.str(), "");
  // A name that cannot be kept out: nothing is written.
  const fs::path copy = directory_ / "run";
  fs::copy(run, copy, fs::copy_options::recursive);
  const fs::path stream = copy / "nodes/worker-0/trace/ust/uid/0/64-bit/syncline_0";
  fs::resize_file(stream, fs::file_size(stream) - 100);
  EXPECT_EQ(Run({"pack", copy, "--redact", "-o", sent + ".tgz"}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("syncline_0\" cannot be redacted: it is damaged"));
  EXPECT_FALSE(fs::exists(sent + ".tgz"));
}

TEST_F(CommandLine, WhyRecordsKeepsAndNamesTheRecording) {
  const std::string run = directory_ / "run";
  EXPECT_EQ(Run({"why", "--hosts", HostsFile(), "--for", "2s", "--out", run}), kIncomplete)
      << err_.str();
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("no process was recorded"), EndsWith("recording: " + run + "\n")));
  EXPECT_TRUE(fs::exists(fs::path(run) / "recording.json"));
  EXPECT_THAT(err_.str(), Not(HasSubstr("second recording")));
  // Nothing that more time would change: no second recording.
  EXPECT_EQ(Run({"why", "--hosts", HostsFile(), "--out", run + "-1"}), kIncomplete) << err_.str();
  EXPECT_THAT(err_.str(), HasSubstr("recording for 10 s; if there are fewer than 60 steps"));
  EXPECT_TRUE(fs::exists(run + "-1"));
  EXPECT_FALSE(fs::exists(run + "-1-2"));
}

}  // namespace
}  // namespace syncline::cli
