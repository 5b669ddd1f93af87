// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/profile_files.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"
#include "common/parallel.h"
#include "common/process_part.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/merge/file_clocks.h"
#include "coordinator/merge/file_collectives.h"
#include "coordinator/merge/open_traces.h"
#include "coordinator/merge/outputs.h"
#include "coordinator/merge/profile_file.h"
#include "export/output_file.h"

namespace syncline::merge {
namespace {

namespace fs = std::filesystem;

// Text from outside as a node's name.
std::string NodeName(std::string_view text) {
  std::string name = AsName(text);
  std::replace(name.begin(), name.end(), ',', '_');  // which separates names
  return name;
}

// What was opened of a file.
struct File {
  fs::path path;
  std::string given_name;  // of its node; empty: none was given
  ProfilePart part;
  std::optional<int32_t> rank;
  timeline::ClockInterval covered;  // CLOCK_REALTIME
};

// The files of one node, and of each of its processes, by time.
struct Node {
  std::string name;
  std::vector<File> files;
};

// As the profiler says, else from the first event to the last.
std::optional<timeline::ClockInterval> CoveredBy(const ProfilePart& part) {
  if (part.covered.has_value()) return part.covered;
  TraceReader* const readers[] = {part.reader.get()};
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
    std::optional<absl::StatusOr<ProfileFile>> file;
  };

  // A file of 100 MB takes a processor more than a second.
  static void ReadAll(std::vector<Read>* reads) {
    InParallel(reads->size(), ThreadsOf(0),
               [reads](size_t i) { (*reads)[i].file = OpenProfileFile((*reads)[i].path); });
  }

  void Add(Read* read) {
    const std::string path = read->path.string();
    absl::StatusOr<ProfileFile>& file = *read->file;
    if (!file.ok()) {
      Complain(absl::StrCat(path, " is skipped: ", file.status().message()));
      return;
    }
    for (const std::string& note : file->notes) {
      inputs_->notes.push_back(absl::StrCat(path, ": ", note));
    }
    for (ProfilePart& part : file->parts) Add(*read, std::move(part));
  }

  void Add(const Read& read, ProfilePart part) {
    const std::string path = read.path.string();
    // Of a directory's files many may be JSON.
    const bool stranger = part.profiler == timeline::Profiler::kKineto || part.losses.empty();
    if (part.events == 0 && !read.input->is_file && stranger) {
      inputs_->notes.push_back(absl::StrCat(path, " is skipped: it holds no event of a profile"));
      return;
    }
    for (const Loss& loss : part.losses) {
      Complain(absl::StrCat(path, ": ", LossReasonName(loss.reason), ": ", loss.detail));
    }
    const auto covered = CoveredBy(part);
    if (part.events == 0 || !covered.has_value()) {
      Complain(absl::StrCat(path, " is skipped: it holds no event of a profile"));
      return;
    }
    if (!read.input->name.empty() && !part.node.empty() && part.node != read.input->name) {
      Complain(absl::StrCat(path, " is skipped: it names its nodes itself (", AsName(part.node),
                            "): give it without ", read.input->name, "="));
      return;
    }
    File& made = files_.emplace_back();
    made.path = read.path;
    made.given_name = part.node.empty() ? read.input->name : NodeName(part.node);
    made.rank = part.rank;
    made.covered = *covered;
    made.part = std::move(part);
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
                                           : std::pair(file.given_name, file.part.pid);
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
  return NodeName(StemOf(file.path));
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
  key.pid = file.part.pid;
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
  made.facts.emplace_back("clock", inputs->model == nullptr
                                       ? "placed by its own wall clock, bound unknown"
                                       : "placed by the collectives that its files show");
  std::map<int32_t, std::optional<int32_t>> ranks;
  for (File& file : node.files) {
    timeline::ProfileInput profile;
    profile.profiler = file.part.profiler;
    profile.process = KeyOf(file, &ranks);
    profile.reader = file.part.reader.get();
    profile.covered = file.covered;
    profile.losses = std::move(file.part.losses);
    const bool known =
        std::any_of(made.processes.begin(), made.processes.end(),
                    [&](const timeline::KnownProcess& one) { return one.key == profile.process; });
    if (!known) {
      timeline::KnownProcess& process = made.processes.emplace_back();
      process.key = profile.process;
      process.command_line = file.part.process_name;
      process.rank = file.rank.value_or(-1);
      process.world_size = file.part.world_size.value_or(-1);
      if (file.rank.has_value()) process.part = kPartRank;
    }
    made.facts.emplace_back("profile", file.path.filename().string());
    made.profiles.push_back(std::move(profile));
    inputs->readers.push_back(std::move(file.part.reader));
  }
  // By process, then time.
  std::stable_sort(made.profiles.begin(), made.profiles.end(),
                   [](const timeline::ProfileInput& a, const timeline::ProfileInput& b) {
                     return std::tuple(a.process.pid, a.process.pid_namespace) <
                            std::tuple(b.process.pid, b.process.pid_namespace);
                   });
  inputs->nodes.push_back(std::move(made));
}

// What the files show of collectives, before their readers are handed on.
std::vector<FileKernels> KernelsOf(const std::vector<Node>& nodes) {
  std::vector<FileKernels> files;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    for (const File& file : nodes[i].files) {
      FileKernels& one =
          files.emplace_back(FileKernels{file.path.filename().string(), i, file.rank, {}});
      if (file.part.kineto != nullptr) one.kernels = file.part.kineto->collective_kernels();
    }
  }
  return files;
}

std::vector<FileNode> BeginsOf(const std::vector<Node>& nodes) {
  std::vector<FileNode> begins;
  for (const Node& node : nodes) {
    FileNode& one = begins.emplace_back(FileNode{node.name, kUnknownHi});
    for (const File& file : node.files) {
      one.begin_ns = std::min(one.begin_ns, file.covered.begin_ns);
    }
  }
  return begins;
}

analysis::FileClocks ToldBy(const std::vector<FileKernels>& files, const std::vector<Node>& nodes,
                            const MatchedCollectives& matched, const ComparedClocks& compared) {
  analysis::FileClocks told;
  for (size_t i = 0; i < files.size(); ++i) {
    told.files.push_back(
        {files[i].file, nodes[files[i].node].name, matched.kernels[i], matched.without_number[i]});
  }
  for (const auto* const found : {&matched.collectives, &matched.transfers}) {
    told.collectives += found->size();
    for (const MatchedCollective& one : *found) {
      for (const MatchedCollective::Member& member : one.members) {
        ++told.files[member.file].matched;
      }
    }
  }
  told.binding = compared.binding;
  told.repeated = matched.repeated;
  told.alone = matched.alone;
  told.impossible = matched.impossible;
  told.transfers_left = matched.transfers_left;
  told.disagreeing = matched.disagreeing;
  told.contradiction = compared.contradiction;
  told.compared = compared.model != nullptr;
  told.rate_ppm = kFileRatePpb / 1000;
  return told;
}

// As the builder draws and the report counts them.
timeline::Collectives PlacedOf(const MatchedCollectives& matched,
                               const std::vector<FileKernels>& files, const OpenedInputs& inputs) {
  timeline::Collectives placed;
  placed.groups = matched.groups;
  for (const MatchedCollective& one : matched.collectives) {
    timeline::Collective& collective = placed.collectives.emplace_back();
    collective.group = one.group;
    collective.number = static_cast<uint64_t>(one.number);
    collective.name = one.name;
    collective.bytes = one.bytes;
    collective.may_be_empty = one.flow == DataFlow::kNone;
    for (const MatchedCollective::Member& member : one.members) {
      const uint32_t node = files[member.file].node;
      timeline::Placement& placement = *inputs.nodes[node].placement;
      timeline::CollectiveMember& made = collective.members.emplace_back();
      made.node = node;
      made.rank = member.rank;
      made.entered = {placement.clock(), member.begin_ns};
      made.entered_at = placement.At(member.begin_ns);
      made.left = {placement.clock(), member.end_ns};
      made.left_at = placement.At(member.end_ns);
    }
  }
  return placed;
}

// Why clocks are not compared.
std::string WhyNot(const analysis::FileClocks& told) {
  uint64_t kernels = 0, without_number = 0;
  for (const analysis::FileClocks::File& file : told.files) {
    kernels += file.kernels;
    without_number += file.without_number;
  }
  if (kernels == 0) {
    return "no kernel of a collective is in them (of Gloo's nothing says which is which)";
  }
  if (without_number == kernels) {
    return "their collectives have no number (`Seq`), which PyTorch writes for NCCL from 2.12 on";
  }
  if (told.collectives == 0) return "they show no collective in common";
  return "the collectives that they show in common make no rank of one wait for another's";
}

void Explain(OpenedInputs* inputs) {
  const analysis::FileClocks& told = *inputs->file_clocks;
  if (!told.contradiction.empty()) {
    inputs->incomplete = true;
    inputs->complaints.push_back(
        absl::StrCat("the clocks of the files are not compared: ", told.contradiction));
  }
  if (inputs->nodes.size() < 2) return;
  std::vector<std::string> unknown;
  for (const timeline::NodeInput& node : inputs->nodes) {
    const int64_t begin_ns = node.placement->ClockNs({0});
    if (!node.placement->BoundNs(begin_ns).has_value()) unknown.push_back(node.name);
  }
  if (unknown.empty()) return;
  constexpr char kJoin[] = ". Files of one host are joined by a name: `NAME=FILE NAME=FILE`";
  if (unknown.size() < inputs->nodes.size()) {
    inputs->notes.push_back(absl::StrCat(
        "no collective tells how far the clocks of ", absl::StrJoin(unknown, ", "),
        " are apart from the others: these are placed by the wall clocks of their hosts", kJoin));
    return;
  }
  inputs->notes.push_back(absl::StrCat(
      "each file is placed by the wall clock of its host; how far these clocks are apart is not "
      "known",
      told.contradiction.empty() ? absl::StrCat(": ", WhyNot(told)) : "", kJoin));
}

timeline::Interval WindowOf(const OpenedInputs& inputs) {
  timeline::Interval window{{kUnknownHi}, {kUnknownLo}};
  for (const timeline::NodeInput& node : inputs.nodes) {
    for (const timeline::ProfileInput& profile : node.profiles) {
      window.begin = std::min(window.begin, node.placement->At(profile.covered.begin_ns));
      window.end = std::max(window.end, node.placement->At(profile.covered.end_ns));
    }
  }
  ++window.end.ns;
  return window;
}

// By the model, or by wall clock where there is none. The trace clock of such a node is its wall
// clock.
void Place(OpenedInputs* inputs) {
  for (uint32_t i = 0; i < inputs->nodes.size(); ++i) {
    timeline::NodeInput& node = inputs->nodes[i];
    inputs->placements.push_back(
        inputs->model != nullptr
            ? timeline::ModelPlacement(*inputs->model, {i, ClockKind::kRealtime})
            : timeline::ShiftPlacement({i}, -inputs->epoch_unix_ns));
    node.placement = inputs->placements.back().get();
    inputs->walls.push_back(
        std::make_unique<timeline::WallPlacement>(inputs->model.get(), node.placement, int64_t{0}));
    node.wall = inputs->walls.back().get();
    analysis::NodeFacts facts;
    facts.placement = node.placement;
    facts.wall_offset_ns = 0;
    inputs->facts.push_back(std::move(facts));
  }
}

}  // namespace

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
    return absl::InvalidArgumentError(absl::StrCat("nothing to merge: no file holds a profile\n  ",
                                                   absl::StrJoin(inputs.complaints, "\n  ")));
  }
  inputs.epoch_unix_ns = kUnknownHi;
  for (const File& file : files) {
    inputs.epoch_unix_ns = std::min(inputs.epoch_unix_ns, file.covered.begin_ns);
  }
  SYNCLINE_ASSIGN_OR_RETURN(std::vector<Node> nodes, NodesOf(std::move(files)));
  std::vector<std::string> names;
  for (const Node& node : nodes) names.push_back(node.name);
  SYNCLINE_RETURN_IF_ERROR(CheckNodeNames(options.nodes, names));
  std::erase_if(nodes, [&](const Node& node) { return !IsWanted(options.nodes, node.name); });
  const std::vector<FileKernels> kernels = KernelsOf(nodes);
  const MatchedCollectives matched = MatchFileCollectives(kernels);
  ComparedClocks compared = CompareClocks(BeginsOf(nodes), kernels, matched);
  inputs.file_clocks = ToldBy(kernels, nodes, matched, compared);
  if (compared.model != nullptr) {
    inputs.epoch_unix_ns = compared.zero_ns;
    inputs.reference = compared.reference;
    inputs.model = std::move(compared.model);
  }
  for (Node& node : nodes) AddNode(std::move(node), &inputs);
  Place(&inputs);
  inputs.build.window = WindowOf(inputs);
  inputs.collectives = std::make_unique<timeline::Collectives>(PlacedOf(matched, kernels, inputs));
  inputs.build.matched = inputs.collectives.get();
  Explain(&inputs);
  return inputs;
}

}  // namespace syncline::merge
