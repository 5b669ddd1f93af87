// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/profile_files.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"
#include "common/parallel.h"
#include "common/process_part.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/merge/open_traces.h"
#include "coordinator/merge/outputs.h"
#include "export/output_file.h"
#include "kineto/trace.h"

namespace syncline::merge {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kEndings = {".json", ".json.gz", ".json.zst"};
constexpr std::string_view kPyTorchEnding = ".pt.trace";
constexpr size_t kRankDigitsMax = 7;

// Without what says that it is a profile.
std::string StemOf(const fs::path& path) {
  std::string stem = path.filename().string();
  for (const std::string_view ending : kEndings) {
    if (stem.ends_with(ending)) {
      stem.resize(stem.size() - ending.size());
      break;
    }
  }
  if (stem.ends_with(kPyTorchEnding)) stem.resize(stem.size() - kPyTorchEnding.size());
  return stem;
}

// A file that was opened.
struct File {
  fs::path path;
  std::string given_name;  // of its node; empty: none was given
  std::unique_ptr<kineto::Trace> trace;
  std::optional<int32_t> rank;
  timeline::ClockInterval covered;  // CLOCK_REALTIME
};

// The files of one node, and of each of its processes, by time.
struct Node {
  std::string name;
  std::vector<File> files;
};

// As the profiler says, else from the first event to the last.
std::optional<timeline::ClockInterval> CoveredBy(kineto::Trace* trace) {
  if (trace->profile_begin_ns().has_value() && trace->profile_end_ns().has_value()) {
    return timeline::ClockInterval{*trace->profile_begin_ns(), *trace->profile_end_ns()};
  }
  TraceReader* const readers[] = {trace};
  return ExtentOf(readers);
}

class Opener {
 public:
  explicit Opener(OpenedInputs* inputs) : inputs_(inputs) {}

  void Open(const std::vector<Input>& inputs) {
    std::vector<Read> reads;
    for (const Input& input : inputs) {
      for (const fs::path& path : input.profiles) reads.push_back({&input, path, {}});
    }
    ReadAll(&reads);
    for (Read& read : reads) Add(&read);
  }

  std::vector<File> Take() { return std::move(files_); }

 private:
  struct Read {
    const Input* input = nullptr;
    fs::path path;
    std::optional<absl::StatusOr<std::unique_ptr<kineto::Trace>>> trace;
  };

  // A file of 100 MB takes a processor more than a second.
  static void ReadAll(std::vector<Read>* reads) {
    InParallel(reads->size(), ThreadsOf(0),
               [reads](size_t i) { (*reads)[i].trace = kineto::Trace::Open((*reads)[i].path); });
  }

  void Add(Read* read) {
    const std::string path = read->path.string();
    absl::StatusOr<std::unique_ptr<kineto::Trace>>& trace = *read->trace;
    if (!trace.ok()) {
      Complain(absl::StrCat(path, " is skipped: ", trace.status().message()));
      return;
    }
    if ((*trace)->events() == 0 && !read->input->is_file) {
      inputs_->notes.push_back(absl::StrCat(path, " is skipped: it holds no event of a profile"));
      return;
    }
    for (const Loss& loss : (*trace)->losses()) {
      Complain(absl::StrCat(path, ": ", LossReasonName(loss.reason), ": ", loss.detail));
    }
    const auto covered = CoveredBy(trace->get());
    if ((*trace)->events() == 0 || !covered.has_value()) {
      Complain(absl::StrCat(path, " is skipped: it holds no event of a profile"));
      return;
    }
    File& file = files_.emplace_back();
    file.path = read->path;
    file.given_name = read->input->name;
    file.rank = (*trace)->rank();
    if (!file.rank.has_value()) file.rank = RankOfName(StemOf(read->path));
    file.covered = *covered;
    file.trace = *std::move(trace);
  }

  void Complain(std::string text) {
    inputs_->incomplete = true;
    inputs_->complaints.push_back(std::move(text));
  }

  OpenedInputs* inputs_;
  std::vector<File> files_;
};

// Of one rank, or of one process without a rank; `files` by begin.
absl::Status CheckWindows(const std::vector<File>& files) {
  std::map<std::pair<std::string, int32_t>, const File*> before;  // of each: who ends last
  for (const File& file : files) {
    // Files without a rank are of one process where a name says that they are of one host.
    if (!file.rank.has_value() && file.given_name.empty()) continue;
    const auto key = file.rank.has_value() ? std::pair(std::string(), *file.rank)
                                           : std::pair(file.given_name, file.trace->pid());
    const File*& last = before.try_emplace(key, &file).first->second;
    if (last != &file && file.covered.begin_ns < last->covered.end_ns) {
      return absl::InvalidArgumentError(absl::StrCat(
          last->path.string(), " and ", file.path.string(), " are both of ",
          file.rank.has_value() ? absl::StrCat("rank ", *file.rank)
                                : absl::StrCat("process ", key.second, " of ", key.first),
          " and overlap by ", DurationText(last->covered.end_ns - file.covered.begin_ns),
          ": give the files of one job only, each once"));
    }
    if (file.covered.end_ns > last->covered.end_ns) last = &file;
  }
  return absl::OkStatus();
}

std::string NameOf(const File& file) {
  if (!file.given_name.empty()) return file.given_name;
  if (file.rank.has_value()) return absl::StrCat("rank ", *file.rank);
  std::string name = AsName(StemOf(file.path));
  std::replace(name.begin(), name.end(), ',', '_');  // which separates names
  return name;
}

// By rank, those without one behind by name; files of one rank by time.
absl::StatusOr<std::vector<Node>> NodesOf(std::vector<File> files) {
  std::stable_sort(files.begin(), files.end(), [](const File& a, const File& b) {
    const auto key = [](const File& file) {
      return std::tuple(!file.rank.has_value(), file.rank.value_or(0), file.covered.begin_ns);
    };
    return key(a) < key(b);
  });
  SYNCLINE_RETURN_IF_ERROR(CheckWindows(files));
  std::vector<Node> nodes;
  std::map<std::string, size_t> by_name;
  std::set<std::string> file_names;
  for (File& file : files) {
    std::string name = NameOf(file);
    // Files without a rank are strangers to each other, whatever they are called.
    const bool alone = file.given_name.empty() && !file.rank.has_value();
    for (int copy = 2; alone && file_names.contains(FileNameOf(name)); ++copy) {
      name = absl::StrCat(NameOf(file), "-", copy);
    }
    const auto [known, is_new] = by_name.try_emplace(name, nodes.size());
    if (is_new) nodes.push_back({name, {}});
    file_names.insert(FileNameOf(name));
    nodes[known->second].files.push_back(std::move(file));
  }
  return nodes;
}

// One process per rank and pid. Two ranks of one name may have the same pid, in two containers.
ProcessKey KeyOf(const File& file, std::map<int32_t, std::optional<int32_t>>* ranks) {
  ProcessKey key;
  key.pid = file.trace->pid();
  const auto [known, is_new] = ranks->try_emplace(key.pid, file.rank);
  if (!is_new && known->second != file.rank) {
    key.pid_namespace = static_cast<uint32_t>(file.rank.value_or(-1)) + 1;
  }
  return key;
}

void AddNode(Node node, OpenedInputs* inputs) {
  timeline::NodeInput made;
  made.name = node.name;
  made.root = node.files.front().path.parent_path().string();
  made.facts.emplace_back("clock", "placed by its own wall clock, bound unknown");
  std::map<int32_t, std::optional<int32_t>> ranks;
  for (File& file : node.files) {
    timeline::ProfileInput profile;
    profile.profiler = timeline::Profiler::kKineto;
    profile.process = KeyOf(file, &ranks);
    profile.reader = file.trace.get();
    profile.covered = file.covered;
    for (Loss loss : file.trace->losses()) profile.losses.push_back(std::move(loss));
    const bool known =
        std::any_of(made.processes.begin(), made.processes.end(),
                    [&](const timeline::KnownProcess& one) { return one.key == profile.process; });
    if (!known) {
      timeline::KnownProcess& process = made.processes.emplace_back();
      process.key = profile.process;
      process.command_line = file.trace->process_name();
      process.rank = file.rank.value_or(-1);
      process.world_size = file.trace->world_size().value_or(-1);
      if (file.rank.has_value()) process.part = kPartRank;
    }
    made.facts.emplace_back("profile", file.path.filename().string());
    made.profiles.push_back(std::move(profile));
    inputs->readers.push_back(std::move(file.trace));
  }
  // By process, then time.
  std::stable_sort(made.profiles.begin(), made.profiles.end(),
                   [](const timeline::ProfileInput& a, const timeline::ProfileInput& b) {
                     return std::tuple(a.process.pid, a.process.pid_namespace) <
                            std::tuple(b.process.pid, b.process.pid_namespace);
                   });
  inputs->nodes.push_back(std::move(made));
}

// All by wall clock. The trace clock of such a node is its wall clock.
void Place(OpenedInputs* inputs) {
  for (uint32_t i = 0; i < inputs->nodes.size(); ++i) {
    timeline::NodeInput& node = inputs->nodes[i];
    inputs->placements.push_back(timeline::ShiftPlacement({i}, -inputs->epoch_unix_ns));
    node.placement = inputs->placements.back().get();
    inputs->walls.push_back(
        std::make_unique<timeline::WallPlacement>(nullptr, node.placement, int64_t{0}));
    node.wall = inputs->walls.back().get();
    analysis::NodeFacts facts;
    facts.placement = node.placement;
    facts.wall_offset_ns = 0;
    inputs->facts.push_back(std::move(facts));
  }
}

}  // namespace

bool IsProfileName(const fs::path& path) {
  const std::string name = path.filename().string();
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) {
    return name.size() > ending.size() && name.ends_with(ending);
  });
}

std::vector<fs::path> FindProfiles(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator
           entry(directory, fs::directory_options::skip_permission_denied, error),
       end;
       !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && IsProfileName(entry->path())) {
      found.push_back(entry->path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<int32_t> RankOfName(std::string_view name) {
  constexpr std::string_view kRank = "rank";
  const std::string lower = absl::AsciiStrToLower(AbslView(name));
  for (size_t at = lower.find(kRank); at != std::string::npos; at = lower.find(kRank, at + 1)) {
    size_t begin = at + kRank.size();
    if (begin < lower.size() && (lower[begin] == '_' || lower[begin] == '-')) ++begin;
    size_t end = begin;
    while (end < lower.size() && absl::ascii_isdigit(static_cast<unsigned char>(lower[end]))) ++end;
    int32_t rank = 0;
    if (end > begin && end - begin <= kRankDigitsMax &&
        absl::SimpleAtoi(lower.substr(begin, end - begin), &rank)) {
      return rank;
    }
  }
  return std::nullopt;
}

absl::StatusOr<OpenedInputs> OpenProfileFiles(const InputOptions& options, const InputList& list) {
  if (options.refit) {
    return absl::InvalidArgumentError(
        "--refit makes a clock model of a recording's samples; these are profiles, which have "
        "none");
  }
  OpenedInputs inputs;
  Opener opener(&inputs);
  opener.Open(list.inputs);
  std::vector<File> files = opener.Take();
  if (files.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("nothing to merge: no file holds a profile of PyTorch's\n  ",
                     absl::StrJoin(inputs.complaints, "\n  ")));
  }
  timeline::ClockInterval covered = files.front().covered;
  for (const File& file : files) {
    covered.begin_ns = std::min(covered.begin_ns, file.covered.begin_ns);
    covered.end_ns = std::max(covered.end_ns, file.covered.end_ns);
  }
  inputs.epoch_unix_ns = covered.begin_ns;
  inputs.build.window =
      timeline::Interval{TimelineTime{0}, TimelineTime{covered.end_ns - covered.begin_ns + 1}};
  SYNCLINE_ASSIGN_OR_RETURN(std::vector<Node> nodes, NodesOf(std::move(files)));
  std::vector<std::string> names;
  for (const Node& node : nodes) names.push_back(node.name);
  SYNCLINE_RETURN_IF_ERROR(CheckNodeNames(options.nodes, names));
  for (Node& node : nodes) {
    if (IsWanted(options.nodes, node.name)) AddNode(std::move(node), &inputs);
  }
  Place(&inputs);
  if (inputs.nodes.size() > 1) {
    inputs.notes.emplace_back(
        "each file is placed by the wall clock of its host; how far these clocks are apart is not "
        "known. Files of one host are joined by a name: `NAME=FILE NAME=FILE`");
  }
  return inputs;
}

}  // namespace syncline::merge
