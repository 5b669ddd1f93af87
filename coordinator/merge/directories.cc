// SPDX-License-Identifier: Apache-2.0
// Trace directories that come without a recording.
//
// Clocks are the same inside one INPUT, unless its traces themselves say otherwise: traces of
// several hosts below one directory are several nodes. They say it by different hostnames, by
// clocks of different names (another boot) or, where clocks have none, by when those began. That
// two say the same proves nothing, so two INPUTs are always two nodes.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/open_traces.h"
#include "coordinator/recording/recording.h"
#include "export/output_file.h"

namespace syncline::merge {
namespace {

namespace fs = std::filesystem;

// The traces of one INPUT that may share a clock; "" is unknown, and contradicts nothing.
struct Host {
  std::string hostname;
  std::string clock_uuid;
  std::optional<int64_t> offset_ns;  // from its clock to the wall clock
  std::vector<OpenedTrace> traces;
  std::vector<UnreadableTrace> unreadable;
  std::string name;  // of the node
};

bool Agree(const std::string& a, const std::string& b) { return a.empty() || b.empty() || a == b; }

// The offset is sampled for each trace anew, and the wall clock is corrected in between.
bool BeganTogether(std::optional<int64_t> a_ns, std::optional<int64_t> b_ns) {
  constexpr int64_t kApartMaxNs = 1'000'000'000;
  if (!a_ns.has_value() || !b_ns.has_value()) return true;
  const auto low = std::min(*a_ns, *b_ns);
  int64_t apart_ns = 0;
  return !__builtin_sub_overflow(std::max(*a_ns, *b_ns), low, &apart_ns) && apart_ns <= kApartMaxNs;
}

size_t SharedParts(const fs::path& a, const fs::path& b) {
  return static_cast<size_t>(
      std::distance(a.begin(), std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first));
}

// What all traces of the host lie in.
fs::path DirectoryOf(const Host& host) {
  fs::path shared = host.traces.front().path;
  for (const OpenedTrace& trace : host.traces) {
    fs::path part;
    const auto end =
        std::next(shared.begin(), static_cast<ptrdiff_t>(SharedParts(shared, trace.path)));
    for (auto it = shared.begin(); it != end; ++it) part /= *it;
    shared = part;
  }
  return shared;
}

std::vector<Host> SplitByHost(OpenedTraces opened) {
  std::vector<Host> hosts;
  for (OpenedTrace& trace : opened.traces) {
    const auto& environment = trace.reader->environment();
    const auto entry = environment.find("hostname");
    const std::string hostname = entry == environment.end() ? "" : entry->second;
    const std::string clock_uuid = trace.reader->clock_uuid();
    const std::optional<int64_t> offset_ns = trace.reader->wall_clock_offset_ns();
    auto host = std::find_if(hosts.begin(), hosts.end(), [&](const Host& known) {
      const bool named = !known.clock_uuid.empty() && !clock_uuid.empty();
      return Agree(known.hostname, hostname) && Agree(known.clock_uuid, clock_uuid) &&
             (named || BeganTogether(known.offset_ns, offset_ns));
    });
    if (host == hosts.end()) host = hosts.insert(hosts.end(), Host{});
    if (host->hostname.empty()) host->hostname = hostname;
    if (host->clock_uuid.empty()) host->clock_uuid = clock_uuid;
    if (!host->offset_ns.has_value()) host->offset_ns = offset_ns;
    host->traces.push_back(std::move(trace));
  }
  if (hosts.empty()) hosts.emplace_back();
  // What cannot be read belongs to the host whose traces lie next to it.
  for (UnreadableTrace& trace : opened.unreadable) {
    Host* nearest = &hosts.front();
    size_t most = 0;
    for (Host& host : hosts) {
      for (const OpenedTrace& other : host.traces) {
        const size_t shared = SharedParts(trace.path, other.path);
        if (shared > most) nearest = &host;
        most = std::max(most, shared);
      }
    }
    nearest->unreadable.push_back(std::move(trace));
  }
  return hosts;
}

// "master-0 in D/a, worker-0 in D/b".
std::string Describe(const std::vector<Host>& hosts) {
  return absl::StrJoin(hosts, ", ", [](std::string* out, const Host& host) {
    absl::StrAppend(out, host.hostname.empty() ? "an unnamed one" : AsName(host.hostname), " in ",
                    DirectoryOf(host).string());
  });
}

absl::Status CheckOneHost(const Input& input, const std::vector<Host>& hosts) {
  if (hosts.size() == 1 || input.name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(input.text, " holds traces of ", hosts.size(), " clocks (", Describe(hosts),
                   "), and one name stands for one node. Give each its own, as in `",
                   hosts.front().hostname.empty() ? "NAME" : AsName(hosts.front().hostname), "=",
                   DirectoryOf(hosts.front()).string(), "`, or the directory without a name"));
}

// A recording somewhere below is more than its traces.
absl::Status CheckNoRecordingBelow(const Input& input, const OpenedTraces& opened) {
  for (const OpenedTrace& trace : opened.traces) {
    for (fs::path above = trace.path; above != input.directory && above.has_parent_path();
         above = above.parent_path()) {
      std::error_code error;
      if (!fs::exists(recording::Layout(above).RecordingJson(), error)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(input.text, " is not a recording but contains one: `syncline merge ",
                       above.string(), "`; several are merged one by one"));
    }
  }
  return absl::OkStatus();
}

// Each trace once, unless every copy was given a name.
class OnceOnly {
 public:
  absl::Status Add(const Input& input, const OpenedTraces& opened) {
    for (const OpenedTrace& trace : opened.traces) {
      std::error_code error;
      const auto [other, fresh] =
          seen_.try_emplace(fs::weakly_canonical(trace.path, error), &input);
      // Below one input, links to one place are copies (DropCopies).
      if (fresh || other->second == &input) continue;
      if (!input.name.empty() && !other->second->name.empty()) continue;
      return absl::InvalidArgumentError(absl::StrCat(trace.path.string(), " is given twice, by ",
                                                     other->second->text, " and by ", input.text,
                                                     ". Give it once, or name both as NAME=DIR"));
    }
    return absl::OkStatus();
  }

 private:
  std::map<fs::path, const Input*> seen_;
};

std::string Fallback(const Input& input) {
  std::error_code error;
  const fs::path path = fs::absolute(input.directory, error).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();  // "." ends in "/"
}

// A name of its own for each host, that is also one for its files: the given one, else its
// hostname, else its directory's.
void NameHosts(const std::vector<Input>& inputs, std::vector<std::vector<Host>>* hosts,
               std::vector<std::string>* notes) {
  std::set<std::string> names;
  for (const Input& input : inputs) {
    if (!input.name.empty()) names.insert(FileNameOf(input.name));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (Host& host : (*hosts)[i]) {
      host.name = inputs[i].name;
      if (!host.name.empty()) continue;
      std::string wanted = AsName(host.hostname.empty() ? Fallback(inputs[i]) : host.hostname);
      std::replace(wanted.begin(), wanted.end(), ',', '_');  // which separates names
      host.name = wanted;
      for (int copy = 2; !names.insert(FileNameOf(host.name)).second; ++copy) {
        host.name = absl::StrCat(wanted, "-", copy);
      }
      if (host.name == wanted) continue;
      notes->push_back(absl::StrCat(
          "more than one node is called ", wanted, "; the one in ",
          host.traces.empty() ? inputs[i].directory.string() : DirectoryOf(host).string(), " is ",
          host.name,
          " here. NAME=DIR gives it a better name; traces of one host go below one "
          "directory"));
    }
    if ((*hosts)[i].size() > 1) {
      notes->push_back(absl::StrCat(inputs[i].text, " holds traces of ", (*hosts)[i].size(),
                                    " clocks, each a node here: ", Describe((*hosts)[i])));
    }
  }
}

void AddHost(Host host, const Input& input, OpenedInputs* inputs) {
  timeline::NodeInput node;
  node.name = host.name;
  node.root = input.directory.string();
  for (std::string& copy : DropCopies(&host.traces)) {
    inputs->incomplete = true;
    inputs->complaints.push_back(absl::StrCat(node.name, ": ", copy));
  }
  AddChain(ChainTraces(host.traces), node.name, inputs);
  for (OpenedTrace& trace : host.traces) AddTrace(std::move(trace), &node, inputs);
  for (UnreadableTrace& trace : host.unreadable) AddLoss(std::move(trace), &node, inputs);
  inputs->nodes.push_back(std::move(node));
}

// Timeline zero: the first event of all, by wall clock, also of nodes that are not chosen.
int64_t ZeroOf(const std::vector<std::vector<Host>>& hosts) {
  std::optional<int64_t> zero_unix_ns;
  for (const std::vector<Host>& found : hosts) {
    for (const Host& host : found) {
      std::vector<TraceReader*> readers;
      for (const OpenedTrace& trace : host.traces) readers.push_back(trace.reader.get());
      const std::optional<int64_t> offset = WallOffset(readers);
      const auto extent = ExtentOf(readers);
      if (!offset.has_value() || !extent.has_value()) continue;
      const int64_t begin_ns = *offset + extent->begin_ns;
      zero_unix_ns = std::min(zero_unix_ns.value_or(begin_ns), begin_ns);
    }
  }
  return zero_unix_ns.value_or(0);
}

void PlaceAll(OpenedInputs* inputs) {
  for (uint32_t i = 0; i < inputs->nodes.size(); ++i) {
    timeline::NodeInput& node = inputs->nodes[i];
    inputs->placements.push_back(PlaceByWallClock({i}, node.readers, inputs->epoch_unix_ns));
    node.placement = inputs->placements.back().get();
    node.facts.emplace_back("clock", "placed by its own wall clock, bound unknown");
    analysis::NodeFacts facts;
    facts.placement = node.placement;
    facts.wall_offset_ns = WallOffset(node.readers);
    inputs->facts.push_back(std::move(facts));
  }
}

}  // namespace

absl::StatusOr<OpenedInputs> OpenDirectories(const InputOptions& options, const InputList& list) {
  if (options.refit) {
    return absl::InvalidArgumentError(
        "--refit makes a clock model of a recording's samples; these are traces, which have none");
  }
  OpenedInputs inputs;
  OnceOnly once;
  std::vector<std::vector<Host>> hosts;
  for (const Input& input : list.inputs) {
    OpenedTraces opened = OpenTraces(input.directory);
    SYNCLINE_RETURN_IF_ERROR(CheckNoRecordingBelow(input, opened));
    for (const fs::path& link : opened.links) {
      inputs.notes.push_back(
          absl::StrCat(link.string(),
                       " leads elsewhere and is not followed: if traces are there, name it, too"));
    }
    SYNCLINE_RETURN_IF_ERROR(once.Add(input, opened));
    hosts.push_back(SplitByHost(std::move(opened)));
    SYNCLINE_RETURN_IF_ERROR(CheckOneHost(input, hosts.back()));
  }
  NameHosts(list.inputs, &hosts, &inputs.notes);
  std::vector<std::string> names;
  for (const std::vector<Host>& found : hosts) {
    for (const Host& host : found) names.push_back(host.name);
  }
  SYNCLINE_RETURN_IF_ERROR(CheckNodeNames(options.nodes, names));
  inputs.epoch_unix_ns = ZeroOf(hosts);
  // By name. The order in which they were given only numbers those of one host's name.
  std::map<std::string, std::pair<Host*, const Input*>> by_name;
  for (size_t i = 0; i < hosts.size(); ++i) {
    for (Host& host : hosts[i]) by_name[host.name] = {&host, &list.inputs[i]};
  }
  for (auto& [name, found] : by_name) {
    if (IsWanted(options.nodes, name)) AddHost(std::move(*found.first), *found.second, &inputs);
  }
  if (inputs.readers.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("nothing to merge: no input is a recording or holds a CTF trace\n  ",
                     absl::StrJoin(inputs.complaints, "\n  ")));
  }
  PlaceAll(&inputs);
  return inputs;
}

}  // namespace syncline::merge
