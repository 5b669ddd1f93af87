// SPDX-License-Identifier: Apache-2.0
#include "common/launcher.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace syncline {
namespace {

using Words = std::span<const std::string>;

constexpr std::array<std::string_view, 14> kLaunchers = {
    "torchrun", "mpirun",    "mpiexec",    "orterun", "prterun", "srun",     "sbatch",
    "jsrun",    "deepspeed", "horovodrun", "aprun",   "ibrun",   "parallel", "accelerate"};
constexpr std::array<std::string_view, 5> kModules = {
    "torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch",
    "deepspeed.launcher.runner", "horovod.runner.launch"};
constexpr std::array<std::string_view, 6> kShells = {"sh", "bash", "dash", "zsh", "ksh", "busybox"};
// They run the command behind their own options.
constexpr std::array<std::string_view, 21> kWrappers = {
    "env",       "nohup", "nice",    "ionice", "timeout", "time",   "setsid",
    "stdbuf",    "exec",  "command", "chrt",   "taskset", "sudo",   "numactl",
    "catchsegv", "xargs", "conda",   "mamba",  "uv",      "poetry", "syncline"};
// Words of the shell before which and behind which a command begins.
constexpr std::array<std::string_view, 9> kKeywords = {"if", "then",  "elif", "else", "while",
                                                       "do", "until", "!",    "{"};

template <size_t N>
bool IsOneOf(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string BaseName(std::string_view path) {
  return std::filesystem::path(path).filename().string();
}

// "mpirun" for "/usr/bin/mpirun.openmpi"; empty: no launcher's name.
std::string LauncherName(std::string_view word) {
  const std::string name = BaseName(word);
  for (const std::string_view launcher : kLaunchers) {
    if (name == launcher) return name;
    for (const char* const variant : {".openmpi", ".mpich", ".hydra"}) {
      if (name == absl::StrCat(std::string(launcher), variant)) return name;
    }
  }
  return {};
}

bool IsAssignment(std::string_view word) {
  const size_t equals = word.find('=');
  return equals != std::string_view::npos && equals > 0 && word.front() != '-' &&
         word.find('/') > equals;
}

// `python [options] (-m MODULE | -c CODE | SCRIPT) ...`
std::string OfPython(Words words) {
  for (size_t i = 1; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word.substr(0, 2) == "-m") {
      std::string module(word.substr(2));
      if (module.empty() && i + 1 < words.size()) module = words[i + 1];
      return IsOneOf(kModules, module) ? module : "";
    }
    if (word == "-c") return {};
    if (word == "-W" || word == "-X") {
      ++i;  // with its value
    } else if (word.empty() || word.front() != '-') {
      return LauncherName(word);  // `python /usr/bin/torchrun`; what follows are its arguments
    }
  }
  return {};
}

std::string OfSimpleCommand(Words words, int depth);

// A shell's line, split into simple commands. Quotes are honoured; what is expanded only when it
// runs stays as it is written.
std::string OfShellLine(std::string_view line, int depth) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  std::string found;
  const auto end_word = [&] {
    if (in_word && !(words.empty() && IsOneOf(kKeywords, word))) words.push_back(word);
    word.clear();
    in_word = false;
  };
  for (size_t i = 0; i <= line.size() && found.empty(); ++i) {
    const char c = i < line.size() ? line[i] : '\n';
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == '\\' && i + 1 < line.size()) {
      if (line[++i] != '\n') word += line[i];
      in_word = true;
    } else if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '`' || c == '\n') {
      end_word();
      found = OfSimpleCommand(words, depth);
      words.clear();
    } else if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
      end_word();
    } else {
      word += c;
      in_word = true;
    }
  }
  return found;
}

// `bash [options] (-c LINE | SCRIPT) ...`
std::string OfShell(Words words, int depth) {
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "sh") continue;  // busybox sh
    if (word.size() < 2 || (word[0] != '-' && word[0] != '+')) return LauncherName(word);
    const bool line = word[0] == '-' && word[1] != '-' && absl::StrContains(word, 'c');  // -lc
    if (!line) continue;
    while (++i < words.size()) {
      if (words[i].empty() || words[i][0] != '-') return OfShellLine(words[i], depth + 1);
    }
  }
  return {};
}

// A wrapper's own options, their values and assignments are stepped over: the word behind an option
// may be its value or the command.
std::string OfWrapper(Words words, int depth) {
  bool after_option = false;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.empty()) continue;
    const std::string found = OfSimpleCommand(words.subspan(i), depth + 1);
    if (!found.empty()) return found;
    const std::string name = BaseName(word);
    if (IsOneOf(kShells, name) || IsOneOf(kWrappers, name) || absl::StartsWith(name, "python")) {
      return {};  // looked into, and it starts one process
    }
    const bool option = word.front() == '-';
    const bool value = absl::ascii_isdigit(static_cast<unsigned char>(word.front())) ||
                       IsAssignment(word) || word == "run" || after_option;
    if (!option && !value) return {};  // the command, an ordinary one
    after_option = option;
  }
  return {};
}

std::string OfSimpleCommand(Words words, int depth) {
  constexpr int kDepthMax = 16;  // a line inside a line inside a line
  while (!words.empty() && IsAssignment(words.front())) words = words.subspan(1);
  if (words.empty() || depth > kDepthMax) return {};
  const std::string launcher = LauncherName(words.front());
  if (!launcher.empty()) return launcher;
  const std::string name = BaseName(words.front());
  if (IsOneOf(kShells, name)) return OfShell(words, depth);
  if (IsOneOf(kWrappers, name)) return OfWrapper(words, depth);
  if (absl::StartsWith(name, "python")) return OfPython(words);
  return {};
}

}  // namespace

std::string LauncherIn(const std::vector<std::string>& command) {
  return OfSimpleCommand(command, 0);
}

}  // namespace syncline
