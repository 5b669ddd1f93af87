// SPDX-License-Identifier: Apache-2.0
// What every command gets: this machine as main gave it, the global options, and the streams.
//
// A command registers itself with the CLI11 app and, when it is the one chosen, sets `action`; main
// runs it and exits with what it returns.
#ifndef SYNCLINE_COORDINATOR_CLI_CONTEXT_H_
#define SYNCLINE_COORDINATOR_CLI_CONTEXT_H_

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/certs/certs.h"
#include "coordinator/fleet/agent_client.h"
#include "coordinator/host/clock.h"
#include "coordinator/hosts/hosts.h"
#include "coordinator/record/interrupts.h"
#include "coordinator/recording/recording.h"

namespace syncline::cli {

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kWrongUsage = 2,
  kIncomplete = 3,  // done, but a node, a stream or a time range is missing; the output says which
  kAboveLimit = 4,  // done, and what was compared changed by more than was allowed (--fail-if)
  kInterrupted = 130,  // Ctrl-C, and nothing is kept: as shells say it
};

struct Context {
  // This machine; set by main.
  std::function<std::string(const char*)> environment;  // "" when unset
  host::Clock* clock = nullptr;
  record::Interrupts* interrupts = nullptr;
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  recording::CreatedBy created_by;
  std::string commit_text;  // " (commit 1a2b3c4d)" of the sources; empty: not known
  std::function<std::unique_ptr<fleet::AgentClient>(const hosts::Node&, const certs::Credentials&)>
      connect;
  // This user's own agent on this machine: the node that is meant when none is named. Set by main.
  std::optional<hosts::Node> local_node;
  // Starts that agent when it does not run: true.
  std::function<absl::StatusOr<bool>()> ensure_local_agent;

  // Global options.
  bool quiet = false;
  std::string color = "auto";
  std::string progress = "auto";
  std::string hosts_file;
  std::string host_list;
  std::string tls_directory;

  // What follows "--" after `run`: a program and its arguments; nullopt: there was no "--".
  std::optional<std::vector<std::string>> program;
  // The chosen command replaces this process by another program: no threads, signals as they were.
  bool becomes_program = false;
  // Ctrl-C presses `interrupts` instead of ending the program where it is.
  bool ends_in_good_order = false;
  // What the chosen command does.
  std::function<int()> action;

  bool ColourOut() const { return Decide(color, out_is_terminal); }
  bool ColourErr() const { return Decide(color, err_is_terminal); }
  bool ShowProgress() const { return !quiet && Decide(progress, err_is_terminal); }

 private:
  static bool Decide(const std::string& choice, bool terminal) {
    return choice == "always" || (choice == "auto" && terminal);
  }
};

// The nodes that --hosts and -H name; $SYNCLINE_HOSTS counts when there is neither. InvalidArgument
// when nothing names any.
absl::StatusOr<std::vector<hosts::Node>> NamedTargets(const Context& context);
// The same, or this machine where nothing names nodes, and where `-H local` names it.
absl::StatusOr<std::vector<hosts::Node>> Targets(const Context& context);

// Clients for them. Certificates are asked for only when a node is not local. Starts this user's
// own agent where it is one of them and does not run.
absl::StatusOr<std::vector<fleet::Member>> Connect(const Context& context,
                                                   const std::vector<hosts::Node>& nodes);

// Targets() and Connect().
absl::StatusOr<std::vector<fleet::Member>> ConnectTargets(const Context& context);

// Prints "syncline: ..." to err; the exit code for it.
int Fail(const Context& context, const absl::Status& status);

// "warning: node: what" and the remedy on a line of its own, to err; notes are left out when quiet.
void PrintNote(const Context& context, std::string_view severity, std::string_view node,
               std::string_view what, std::string_view fix);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_CONTEXT_H_
