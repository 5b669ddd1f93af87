// SPDX-License-Identifier: Apache-2.0
// syncline nodes: what each node is, what can be traced there, what cannot, why, and the fix.
#include <google/protobuf/util/json_util.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/parallel.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"
#include "coordinator/cli/parse.h"
#include "coordinator/cli/process_text.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/record/translate.h"

namespace syncline::cli {
namespace {

using Json = nlohmann::ordered_json;
using Descriptions = std::vector<absl::StatusOr<v1::DescribeResponse>>;

constexpr fleet::AgentClient::Timeout kDescribeTimeout{10'000};

Descriptions DescribeAll(const std::vector<fleet::Member>& members, bool check) {
  v1::DescribeRequest request;
  request.set_check_cpu(check);
  Descriptions descriptions(members.size(), absl::UnknownError("not asked"));
  InParallel(members.size(), 128, [&](size_t i) {
    descriptions[i] = members[i].client->Describe(request, kDescribeTimeout);
  });
  return descriptions;
}

bool IsBlocked(const v1::DescribeResponse& description) {
  for (const v1::Complaint& complaint : description.complaints()) {
    if (complaint.severity() == v1::Complaint::BLOCKER) return true;
  }
  return false;
}

// An agent that could not find out says 0.
std::string SizeOrUnknown(uint64_t bytes, bool known) {
  return known ? FormatSize(bytes) : "unknown";
}

void PrintTable(const Context& context, const std::vector<fleet::Member>& members,
                const Descriptions& descriptions) {
  Table table(
      {"NODE", "STATE", "HOST", "CPUS", "MEMORY", "/DEV/SHM FREE", "LTTNG", "AGENT", "PROCESSES"});
  for (size_t i = 0; i < members.size(); ++i) {
    const std::string& name = members[i].node.name;
    if (!descriptions[i].ok()) {
      table.AddRow({name, "unreachable"});
      continue;
    }
    const v1::DescribeResponse& node = *descriptions[i];
    table.AddRow({name, IsBlocked(node) ? "blocked" : "ready", Printable(node.hostname()),
                  node.cpu_count() != 0 ? absl::StrCat(node.cpu_count()) : "unknown",
                  SizeOrUnknown(node.memory_bytes(), node.memory_bytes() != 0),
                  SizeOrUnknown(node.shm_free_bytes(), node.shm_total_bytes() != 0),
                  node.lttng_version().empty() ? "missing" : Printable(node.lttng_version()),
                  Printable(node.agent_version()), absl::StrCat(node.processes_size())});
  }
  table.Print(*context.out);
}

void PrintDetails(const Context& context, const std::string& name,
                  const v1::DescribeResponse& node) {
  if (!context.quiet) {
    for (const std::string& text :
         ProcessTexts({node.processes().begin(), node.processes().end()})) {
      *context.out << name << ": " << text << '\n';
    }
  }
  size_t without_messages = 0;
  for (const v1::ProcessInfo& process : node.processes()) {
    if (process.sources_size() > 0 && !SeesMessages(process)) ++without_messages;
  }
  if (without_messages > 0 && !context.quiet) {
    PrintNote(context, "note", name,
              absl::StrCat("messages of ", without_messages, " of these are not recorded"),
              "start them with `syncline run`, without --no-messages");
  }
  for (const v1::NodeTool& tool : node.tools()) {
    if (!tool.problem().empty()) {
      PrintNote(context, "warning", name,
                absl::StrCat(Printable(tool.name()), " in ", Printable(tool.path()),
                             " cannot be used: ", Printable(tool.problem())),
                "");
    } else if (!context.quiet) {
      const char* const comma = tool.version().empty() || tool.detail().empty() ? "" : ", ";
      const std::string says = absl::StrCat(tool.version(), comma, tool.detail());
      *context.out << name << ": " << Printable(tool.name()) << " in " << Printable(tool.path())
                   << ": " << Printable(says) << '\n';
    }
  }
  for (const v1::EvidenceOffer& offer : node.evidence()) {
    if (context.quiet) break;
    const std::string what =
        absl::StrCat("`record ", Printable(offer.option()), "` ",
                     offer.extent().empty() ? "is not possible here"
                                            : absl::StrCat("sees ", Printable(offer.extent())));
    if (offer.problem().empty()) {
      *context.out << name << ": " << what << '\n';
    } else {
      PrintNote(context, "note", name, absl::StrCat(what, ": ", Printable(offer.problem())),
                Printable(offer.fix()));
    }
  }
  for (const v1::RecordingInfo& recording : node.recordings()) {
    *context.out << name << ": recording " << Printable(recording.recording_id()) << " of "
                 << Printable(recording.holder()) << ", " << StateName(recording.state()) << '\n';
  }
  for (const v1::Complaint& complaint : node.complaints()) {
    const recording::ComplaintRecord record = record::FromComplaint(complaint);
    PrintNote(context, record.severity, name, record.what, record.fix);
  }
}

// "0-3,8".
std::string RanksText(const std::set<int32_t>& ranks) {
  std::vector<std::string> ranges;
  for (auto rank = ranks.begin(); rank != ranks.end();) {
    const int32_t first = *rank;
    int32_t last = first;
    while (++rank != ranks.end() && *rank == last + 1) last = *rank;
    ranges.push_back(first == last ? absl::StrCat(first) : absl::StrCat(first, "-", last));
  }
  return absl::StrJoin(ranges, ",");
}

// What a finding is about: "ranks 0-3", "pids 7, 9"; empty: the node.
std::string WhoText(const v1::CpuFinding& finding) {
  std::set<int32_t> ranks;
  std::vector<std::string> pids;
  std::set<std::string> jobs;
  for (const v1::CpuProcess& process : finding.processes()) {
    jobs.insert(process.job());
    if (process.rank() >= 0) {
      ranks.insert(process.rank());
    } else {
      pids.push_back(absl::StrCat(process.pid()));
    }
  }
  std::vector<std::string> parts;
  if (!ranks.empty()) {
    parts.push_back(absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", RanksText(ranks)));
  }
  if (!pids.empty()) {
    parts.push_back(absl::StrCat(pids.size() == 1 ? "pid " : "pids ", absl::StrJoin(pids, ", ")));
  }
  if (jobs.size() > 1) parts.push_back(absl::StrCat("of ", jobs.size(), " jobs"));
  return absl::StrJoin(parts, ", ");
}

void PrintCheck(const Context& context, const std::string& name, const v1::DescribeResponse& node) {
  std::ostream& out = *context.out;
  if (!node.has_cpu_check()) {
    out << name << ": its agent (" << Printable(node.agent_version())
        << ") cannot check the CPUs: update it (`fab up`)\n";
    return;
  }
  const v1::CpuCheck& check = node.cpu_check();
  if (!check.best_isa().empty()) {
    out << name << ": oneDNN can use " << Printable(check.best_isa()) << " on this CPU\n";
  }
  for (const v1::CpuFinding& finding : check.findings()) {
    const std::string who = WhoText(finding);
    out << name << ": " << who << (who.empty() ? "" : ": ") << Printable(finding.text())
        << "\n  change: " << Printable(finding.change()) << '\n';
  }
  if (check.not_read_size() > 0) {
    out << name << ": cannot be read: " << Printable(absl::StrJoin(check.not_read(), ", ")) << '\n';
  }
  if (check.findings_size() == 0) {
    out << name << ": nothing found in what was checked\n";
  }
}

// An amount that cannot be 0 was not found out.
void NullWhatIsUnknown(Json* description) {
  const auto is_zero = [&](const char* key) { return description->value(key, "0") == "0"; };
  if (description->value("cpu_count", 0) == 0) (*description)["cpu_count"] = nullptr;
  if (is_zero("memory_bytes")) (*description)["memory_bytes"] = nullptr;
  if (!is_zero("shm_total_bytes")) return;
  (*description)["shm_total_bytes"] = (*description)["shm_free_bytes"] = nullptr;
}

// The agent's answer under the node's name.
void PrintJson(const Context& context, const std::vector<fleet::Member>& members,
               const Descriptions& descriptions) {
  Json nodes = Json::array();
  for (size_t i = 0; i < members.size(); ++i) {
    Json node;
    node["name"] = members[i].node.name;
    node["address"] = members[i].node.Address();
    node["role"] = members[i].node.role;
    node["reachable"] = descriptions[i].ok();
    if (descriptions[i].ok()) {
      google::protobuf::util::JsonPrintOptions print;
      print.preserve_proto_field_names = true;
      print.always_print_primitive_fields = true;
      std::string text;
      (void)google::protobuf::util::MessageToJsonString(*descriptions[i], &text, print);
      node["description"] = Json::parse(text, nullptr, false);
      NullWhatIsUnknown(&node["description"]);
    } else {
      node["failure"] = std::string(descriptions[i].status().message());
    }
    nodes.push_back(std::move(node));
  }
  *context.out << nodes.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

int Nodes(const Context& context, bool json, bool check) {
  const absl::StatusOr<std::vector<fleet::Member>> members = ConnectTargets(context);
  if (!members.ok()) return Fail(context, members.status());
  Descriptions descriptions = DescribeAll(*members, check);
  for (absl::StatusOr<v1::DescribeResponse>& one : descriptions) {
    if (one.ok()) record::AddVersionComplaint(context.created_by.version, &*one);
  }
  if (json) {
    PrintJson(context, *members, descriptions);
  } else {
    PrintTable(context, *members, descriptions);
  }
  size_t usable = 0;
  for (size_t i = 0; i < members->size(); ++i) {
    const std::string& name = (*members)[i].node.name;
    if (!descriptions[i].ok()) {
      PrintNote(context, "error", name, StdView(descriptions[i].status().message()), "");
      continue;
    }
    if (!json) PrintDetails(context, name, *descriptions[i]);
    if (!json && check) PrintCheck(context, name, *descriptions[i]);
    if (!IsBlocked(*descriptions[i])) ++usable;
  }
  if (usable == members->size()) return kDone;
  return usable == 0 ? kFailed : kIncomplete;
}

}  // namespace

void RegisterNodes(CLI::App* app, Context* context) {
  CLI::App* const nodes = app->add_subcommand(
      "nodes", "Show what each node is, what can be traced there, what cannot, and the fix");
  nodes->alias("check");
  const auto json = std::make_shared<bool>(false);
  nodes->add_flag("--json", *json, "Everything the agents report, as JSON");
  const auto check = std::make_shared<bool>(false);
  nodes->add_flag("--check", *check,
                  "Look for settings that cost time on CPUs: instruction sets, threads, affinity, "
                  "NUMA; each with the line to change");
  nodes->footer(
      "Exit code 0: all can be recorded; 3: some cannot; 1: none can. What --check finds changes "
      "nothing of it.\n\n"
      "Examples:\n"
      "  syncline nodes --hosts hosts.txt --tls-dir tls\n"
      "  syncline check -H node[01-16]\n"
      "  syncline nodes --check");
  nodes->callback([=] { context->action = [=] { return Nodes(*context, *json, *check); }; });
}

}  // namespace syncline::cli
