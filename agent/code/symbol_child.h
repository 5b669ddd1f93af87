// SPDX-License-Identifier: Apache-2.0
// What the frames of a recording are called, found out by a child process: files of a user are read
// as that user, by a process that may be lost. It has little priority and a time limit, and writes
// as it goes: what it has found until it is killed counts.
//
// It gets on descriptor 3, line by line,
//     M =ROOT =PATH       a file; the frames behind it are of that file
//     G =ROOT OWN_PID     code that a process has made, which it may have listed (perf's map files)
//     A FRAME OFFSET      in hex
// and writes the lines of evidence/code_samples.h that say what the frames are called.
//
// Thread-safety: no state.
#ifndef SYNCLINE_AGENT_CODE_SYMBOL_CHILD_H_
#define SYNCLINE_AGENT_CODE_SYMBOL_CHILD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/code/code_table.h"

namespace syncline::agent {

inline constexpr char kSymbolChildFlag[] = "--name-code-as";

// In the child: becomes `uid` if it is not, and does it. Its exit code.
int RunSymbolChild(uint32_t uid, int request_fd, int answer_fd);

struct SymbolOptions {
  std::vector<std::string> command;  // starts the child; the uid follows
  int limit_ms = 3'000;              // for all users together
};

struct FoundSymbols {
  std::string text;     // lines of code_samples.h
  bool in_time = true;  // else some frames may have no name because of that
};
// Asks for the names of all frames, those of the modules with most samples first.
FoundSymbols FindSymbols(const CodeTable& table, const SymbolOptions& options);

// Lines for the frames of the kernel, by the text of /proc/kallsyms.
std::string KernelSymbols(const CodeTable& table, absl::string_view kallsyms);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CODE_SYMBOL_CHILD_H_
