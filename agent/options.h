// SPDX-License-Identifier: Apache-2.0
// The command line of syncline-agent.
#ifndef SYNCLINE_AGENT_OPTIONS_H_
#define SYNCLINE_AGENT_OPTIONS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace syncline::agent {

struct Options {
  std::string listen;  // HOST:PORT; empty: no TCP
  std::string socket;  // empty: no Unix socket
  std::string data_dir;
  std::string tls_dir;
  std::string log_file;   // empty: standard error
  std::string node_name;  // empty: the hostname
  double retention_hours = 168;
  double idle_minutes = 0;  // ends when nobody called for so long; 0: never
};

// The options, or the exit code of a run that is over already (--help, --version, wrong usage).
struct ParsedOptions {
  std::optional<int> exit_code;
  Options options;
};
ParsedOptions ParseOptions(int argc, char** argv, const std::string& version);

// Fills in defaults (port 7611, DATA_DIR/agent.sock) and refuses combinations: InvalidArgument.
absl::StatusOr<Options> CompleteOptions(Options options);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_OPTIONS_H_
