// SPDX-License-Identifier: Apache-2.0
// syncline certs: a fleet's certificates.
#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/certs/certs.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"
#include "coordinator/cli/terminal.h"

namespace syncline::cli {
namespace {

struct CertsOptions {
  std::string directory;
  std::string node;
  std::string address;
  std::string person;
};

const char* ActionName(certs::Result::Action action) {
  switch (action) {
    case certs::Result::Action::kCreated:
      return "created";
    case certs::Result::Action::kRenewed:
      return "renewed";
    case certs::Result::Action::kKept:
      return "kept";
  }
  return "";
}

void Print(const Context& context, const std::vector<certs::Result>& results) {
  if (!context.quiet) {
    Table table({"NAME", "RESULT", "DIRECTORY"});
    for (const certs::Result& result : results) {
      table.AddRow({result.name, ActionName(result.action), result.directory.string()});
    }
    table.Print(*context.out);
  }
  for (const certs::Result& result : results) {
    if (!result.note.empty()) PrintNote(context, "warning", result.name, result.note, "");
  }
}

int Init(const Context& context, const CertsOptions& options) {
  const absl::StatusOr<std::vector<hosts::Node>> nodes = NamedTargets(context);
  if (!nodes.ok()) return Fail(context, nodes.status());
  std::vector<certs::Subject> subjects;
  for (const hosts::Node& node : *nodes) {
    // A local agent is reached by its Unix socket and needs no certificate.
    if (!node.local()) subjects.push_back({certs::Role::kNode, node.name, node.host});
  }
  const auto results =
      certs::InitFleet(options.directory, subjects, context.clock->UnixNs() / 1'000'000'000);
  if (!results.ok()) return Fail(context, results.status());
  Print(context, *results);
  if (!context.quiet) {
    *context.out
        << "\nCopy DIR/nodes/NAME to each node as its agent's --tls-dir; keep ca.key here.\n"
           "Commands find the operator's certificate with --tls-dir "
        << options.directory << " (or SYNCLINE_TLS_DIR).\n";
  }
  return kDone;
}

int IssueOne(const Context& context, const CertsOptions& options) {
  const bool node = !options.node.empty();
  const certs::Subject subject{node ? certs::Role::kNode : certs::Role::kOperator,
                               node ? options.node : options.person, options.address};
  const auto result =
      certs::Issue(options.directory, subject, context.clock->UnixNs() / 1'000'000'000);
  if (!result.ok()) return Fail(context, result.status());
  Print(context, {*result});
  return kDone;
}

}  // namespace

void RegisterCerts(CLI::App* app, Context* context) {
  CLI::App* const certs =
      app->add_subcommand("certs", "Create the certificates that agents and operators use");
  certs->require_subcommand(1);
  const auto options = std::make_shared<CertsOptions>();

  CLI::App* const init = certs->add_subcommand(
      "init", "Create the missing certificates of a fleet: authority, operator, all nodes");
  init->add_option("DIR", options->directory, "The directory for the fleet's certificates")
      ->required();
  init->footer(
      "Existing files are kept; a key is never overwritten. Certificates are back-dated by a day,\n"
      "because nodes' clocks may be wrong.\n\n"
      "Examples:\n"
      "  syncline certs init tls --hosts hosts.txt\n"
      "  scp -r tls/nodes/worker-0 worker-0:/etc/syncline/tls");
  init->callback([=] { context->action = [=] { return Init(*context, *options); }; });

  CLI::App* const issue = certs->add_subcommand(
      "issue", "Issue another certificate, or renew one for its existing key");
  issue->add_option("DIR", options->directory, "The directory of the fleet's certificates")
      ->required();
  CLI::Option_group* const who = issue->add_option_group("whom");
  who->add_option("--node", options->node, "A node's name, as in the hosts file");
  who->add_option("--operator", options->person, "The name of a person who controls agents");
  who->require_option(1);
  issue->add_option("--address", options->address, "The node's IP address, as an extra name");
  issue->footer(
      "Examples:\n"
      "  syncline certs issue tls --node worker-7\n"
      "  syncline certs issue tls --operator ann      # then: --tls-dir tls/operators/ann");
  issue->callback([=] { context->action = [=] { return IssueOne(*context, *options); }; });
}

}  // namespace syncline::cli
