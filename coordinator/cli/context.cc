// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/context.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/cli/terminal.h"

namespace syncline::cli {
namespace {

constexpr const char* kLocalTarget = "local";

// Keeps line breaks: messages about several nodes have one line for each.
std::string PrintableLines(std::string_view text) {
  std::string lines;
  while (true) {
    const size_t end = text.find('\n');
    lines += Printable(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    lines += '\n';
    text.remove_prefix(end + 1);
  }
}

absl::StatusOr<std::vector<hosts::Node>> ReadHosts(const std::string& file) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::string text, ReadFileOrPipe(file, 16 << 20));
  return hosts::ParseHosts(text, file);
}

// Meant as the path of a file, whether it is there or not; else it is a list of nodes.
bool IsPath(const std::string& text) {
  std::error_code error;
  return text.find('/') != std::string::npos || text == "hosts" || text.ends_with(".txt") ||
         std::filesystem::exists(text, error);
}

absl::StatusOr<std::vector<hosts::Node>> ParseList(const std::string& list) {
  SYNCLINE_ASSIGN_OR_RETURN(std::vector<hosts::Node> nodes, hosts::ParseHostList(list));
  const bool local = std::any_of(nodes.begin(), nodes.end(),
                                 [](const hosts::Node& node) { return node.name == kLocalTarget; });
  if (!local) return nodes;
  return absl::InvalidArgumentError(
      "\"local\" means this machine alone; to record it with others, give it a line in a hosts "
      "file");
}

absl::StatusOr<std::vector<hosts::Node>> TargetsOfVariable(const std::string& variable) {
  absl::StatusOr<std::vector<hosts::Node>> nodes =
      IsPath(variable) ? ReadHosts(variable) : ParseList(variable);
  return nodes.ok() ? nodes : WithContext(nodes.status(), "SYNCLINE_HOSTS");
}

absl::StatusOr<std::vector<hosts::Node>> LocalTarget(const Context& context) {
  if (context.local_node.has_value()) return std::vector<hosts::Node>{*context.local_node};
  return absl::FailedPreconditionError("This program does not know this machine's own agent");
}

// Before its first call. Says so, because somebody may wonder where the process comes from.
absl::Status EnsureLocalAgent(const Context& context) {
  SYNCLINE_ASSIGN_OR_RETURN(const bool started, context.ensure_local_agent());
  if (started) {
    PrintNote(context, "note", context.local_node->name,
              "started an agent of yours on this machine; the agent ends when it is idle", "");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<hosts::Node>> NamedTargets(const Context& context) {
  if (context.hosts_file.empty() && context.host_list.empty()) {
    const std::string variable = context.environment("SYNCLINE_HOSTS");
    if (!variable.empty()) return TargetsOfVariable(variable);
    return absl::InvalidArgumentError(
        "Which nodes? Give --hosts FILE, -H a,b,node[01-16], or set SYNCLINE_HOSTS to either");
  }
  if (context.hosts_file.empty()) {
    absl::StatusOr<std::vector<hosts::Node>> nodes = ParseList(context.host_list);
    return nodes.ok() ? nodes : WithContext(nodes.status(), "-H");
  }
  SYNCLINE_ASSIGN_OR_RETURN(std::vector<hosts::Node> nodes, ReadHosts(context.hosts_file));
  if (context.host_list.empty()) return nodes;
  auto selected = hosts::SelectHosts(nodes, context.host_list);
  return selected.ok() ? selected : WithContext(selected.status(), context.hosts_file);
}

absl::StatusOr<std::vector<hosts::Node>> Targets(const Context& context) {
  if (!context.hosts_file.empty()) return NamedTargets(context);
  const std::string list =
      context.host_list.empty() ? context.environment("SYNCLINE_HOSTS") : context.host_list;
  return list.empty() || list == kLocalTarget ? LocalTarget(context) : NamedTargets(context);
}

absl::StatusOr<std::vector<fleet::Member>> Connect(const Context& context,
                                                   const std::vector<hosts::Node>& nodes) {
  certs::Credentials credentials;
  const bool all_local =
      std::all_of(nodes.begin(), nodes.end(), [](const hosts::Node& node) { return node.local(); });
  if (!all_local) {
    std::string directory = context.tls_directory;
    const bool by_variable = directory.empty();
    if (by_variable) directory = context.environment("SYNCLINE_TLS_DIR");
    if (directory.empty()) {
      return absl::InvalidArgumentError(
          "Agents are reached by mutual TLS: give --tls-dir DIR or set SYNCLINE_TLS_DIR "
          "(`syncline certs init DIR --hosts FILE` makes the certificates)");
    }
    absl::StatusOr<certs::Credentials> loaded =
        certs::LoadOperator(directory, context.clock->UnixNs() / 1'000'000'000);
    if (!loaded.ok()) {
      return by_variable ? WithContext(loaded.status(), "SYNCLINE_TLS_DIR") : loaded.status();
    }
    credentials = *std::move(loaded);
  }
  std::vector<fleet::Member> members;
  for (const hosts::Node& node : nodes) {
    if (context.local_node.has_value() && node.socket_path == context.local_node->socket_path) {
      SYNCLINE_RETURN_IF_ERROR(EnsureLocalAgent(context));
    }
    members.push_back({node, context.connect(node, credentials)});
  }
  return members;
}

absl::StatusOr<std::vector<fleet::Member>> ConnectTargets(const Context& context) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::vector<hosts::Node> nodes, Targets(context));
  return Connect(context, nodes);
}

int Fail(const Context& context, const absl::Status& status) {
  *context.err << Styled("syncline: ", Style::kRed, context.ColourErr())
               << PrintableLines(StdView(status.message())) << '\n';
  if (absl::IsCancelled(status)) return kInterrupted;
  return absl::IsInvalidArgument(status) ? kWrongUsage : kFailed;
}

void PrintNote(const Context& context, std::string_view severity, std::string_view node,
               std::string_view what, std::string_view fix) {
  const bool note = severity == "note";
  if (note && context.quiet) return;
  const Style style = note ? Style::kDim : severity == "warning" ? Style::kYellow : Style::kRed;
  *context.err << Styled(severity, style, context.ColourErr()) << ": ";
  if (!node.empty()) *context.err << node << ": ";
  *context.err << Printable(what) << '\n';
  if (!fix.empty()) *context.err << "    " << Printable(fix) << '\n';
}

}  // namespace syncline::cli
