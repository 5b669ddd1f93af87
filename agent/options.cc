// SPDX-License-Identifier: Apache-2.0
#include "agent/options.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace syncline::agent {
namespace {

constexpr const char* kDefaultPort = "7611";

constexpr const char* kDescription =
    "syncline-agent: the daemon of one node. It prepares, starts and stops LTTng recordings when "
    "a\n"
    "coordinator (`syncline record`) requests it, keeps the data until it is fetched, and "
    "compares\n"
    "clocks.\n";

constexpr const char* kFooter =
    "\nExamples:\n"
    "  syncline-agent --data-dir ~/.local/share/syncline\n"
    "      local use: a Unix socket in the data directory, for this user and root only\n"
    "  syncline-agent --data-dir /var/lib/syncline --tls-dir /etc/syncline/tls\n"
    "      a node of a fleet: mutual TLS on port 7611 as well; `syncline certs init` creates the "
    "files\n"
    "\n"
    "As root the agent serves the processes of every user, otherwise those of its own user. "
    "Without\n"
    "root it uses LTTNG_HOME, or the node-local directory that `syncline run` uses too. It starts\n"
    "lttng-sessiond when none runs, and stops that one when it ends. SIGTERM or Ctrl-C: an active\n"
    "recording is stopped and kept. SIGUSR1: the same, but lttng-sessiond keeps running for the\n"
    "agent that replaces this one.\n"
    "\n"
    "Exit codes: 0 ended on request, 1 failed, 2 wrong usage.\n";

bool HasPort(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  if (colon == std::string::npos) return false;
  // "::1" and "[::1]" are addresses without a port.
  const bool bare_ipv6 = listen.front() != '[' && listen.find(':') != colon;
  return !bare_ipv6 && listen.find(']', colon) == std::string::npos;
}

}  // namespace

ParsedOptions ParseOptions(int argc, char** argv, const std::string& version) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  CLI::App app(kDescription, "syncline-agent");
  app.footer(kFooter);
  app.set_version_flag("--version", "syncline-agent " + version);
  app.add_option("--data-dir", options.data_dir,
                 "Directory for recordings, created with mode 0700; nothing is written elsewhere")
      ->required();
  app.add_option("--listen", options.listen,
                 "HOST:PORT for the fleet, mutual TLS; default port 7611; needs --tls-dir");
  app.add_option("--socket", options.socket,
                 "Unix socket for local use; its directory must be 0700 [DATA_DIR/agent.sock]");
  app.add_option("--tls-dir", options.tls_dir, "Directory with ca.pem, node.pem and node.key");
  app.add_option("--log-file", options.log_file, "Append the log here [standard error]");
  app.add_option("--node-name", options.node_name, "Name in clock files [hostname]");
  app.add_option("--retention-hours", options.retention_hours,
                 "Delete finished recordings after this time, even if they were not released")
      ->check(CLI::Range(0.01, 24.0 * 3650))
      ->capture_default_str();
  app.add_option("--idle-minutes", options.idle_minutes,
                 "End when nobody has called for this time and nothing is being recorded; 0: never")
      ->check(CLI::Range(0.0, 60.0 * 24 * 365))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = app.exit(error) == 0 ? 0 : 2;
  }
  return parsed;
}

absl::StatusOr<Options> CompleteOptions(Options options) {
  if (!options.listen.empty() && options.tls_dir.empty()) {
    return absl::InvalidArgumentError(
        "--listen needs --tls-dir: an agent never listens in plain text. Make certificates with"
        " `syncline certs init`, or leave --listen out and use the Unix socket");
  }
  if (options.listen.empty() && !options.tls_dir.empty()) options.listen = "[::]";
  if (!options.listen.empty() && !HasPort(options.listen)) {
    if (options.listen.front() != '[' && options.listen.find(':') != std::string::npos) {
      options.listen = absl::StrCat("[", options.listen, "]");
    }
    absl::StrAppend(&options.listen, ":", kDefaultPort);
  }
  std::error_code error;
  options.data_dir = std::filesystem::absolute(options.data_dir, error).lexically_normal().string();
  if (options.data_dir.size() > 1 && options.data_dir.back() == '/') options.data_dir.pop_back();
  if (options.socket.empty()) options.socket = absl::StrCat(options.data_dir, "/agent.sock");
  return options;
}

}  // namespace syncline::agent
