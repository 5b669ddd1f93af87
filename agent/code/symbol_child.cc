// SPDX-License-Identifier: Apache-2.0
#include "agent/code/symbol_child.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/code/elf_file.h"
#include "agent/session/spawn.h"
#include "common/files.h"
#include "evidence/code_samples.h"
#include "evidence/words.h"

namespace syncline::agent {
namespace {

using evidence::CodeSymbol;
using evidence::ForEachLine;
using evidence::Words;

constexpr rlim_t kHeapMax = rlim_t{2} << 30;  // guessed: debug information unpacks to less
constexpr size_t kAnswerMax = 256 << 20;
constexpr uint64_t kPerfMapMax = 64 << 20;

// What does not fit any more gets no name.
void Say(std::string_view answer, int answer_fd) {
  WriteAll(answer_fd, answer, "names").IgnoreError();
}

std::string ReadFromBegin(int fd, size_t most) {
  std::string text;
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return text;
  text.resize(std::min(static_cast<size_t>(facts.st_size), most));
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got =
        ::pread(fd, text.data() + have, text.size() - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return text;
}

// ---- in the child

struct AskedModule {
  std::string root;
  std::string path;     // empty: generated code
  int32_t own_pid = 0;  // of generated code
  std::vector<uint32_t> frames;
  std::vector<uint64_t> offsets;
};

std::vector<AskedModule> ParseRequest(std::string_view text) {
  std::vector<AskedModule> modules;
  ForEachLine(text, [&](std::string_view line) {
    Words words(line);
    const std::string_view kind = words.Word();
    if (kind == "M") {
      modules.push_back({.root = words.Text(), .path = words.Text()});
    } else if (kind == "G") {
      modules.push_back({.root = words.Text(), .own_pid = words.Number<int32_t>()});
    } else if (kind == "A" && !modules.empty()) {
      modules.back().frames.push_back(words.Number<uint32_t>());
      modules.back().offsets.push_back(words.Number<uint64_t>(16));
    }
  });
  return modules;
}

// "START SIZE name", in hex: /tmp/perf-PID.map, as Python, V8, the JVM and oneDNN write it.
std::string GeneratedNames(const AskedModule& asked) {
  const std::string path = absl::StrCat(asked.root, "/tmp/perf-", asked.own_pid, ".map");
  const auto opened = OpenRegular(path);
  if (!opened.ok() || opened->size_bytes > kPerfMapMax) return "";
  // Anybody can make a file of this name in /tmp.
  struct stat facts {};
  if (::fstat(opened->fd.get(), &facts) != 0) return "";
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0) return "";
  struct Function {
    uint64_t end = 0;
    std::string name;
  };
  std::map<uint64_t, Function> functions;
  ForEachLine(ReadFromBegin(opened->fd.get(), kPerfMapMax), [&](std::string_view line) {
    Words words(line);
    const auto begin = words.Number<uint64_t>(16);
    const auto size = words.Number<uint64_t>(16);
    const size_t first = line.find(' ');
    const size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
    if (words.wrong() || second == std::string_view::npos) return;
    functions[begin] = {begin + size, std::string(line.substr(second + 1))};
  });
  std::string answer;
  for (size_t i = 0; i < asked.frames.size(); ++i) {
    auto behind = functions.upper_bound(asked.offsets[i]);
    if (behind == functions.begin() || asked.offsets[i] >= (--behind)->second.end) continue;
    evidence::Append(CodeSymbol{asked.frames[i], behind->second.name, "", 0}, &answer);
  }
  return answer;
}

// Functions of all files come before the lines of any: lines may take long.
void NameFiles(const std::vector<AskedModule>& modules, int answer_fd) {
  struct Named {
    const AskedModule* asked = nullptr;
    std::unique_ptr<ElfFile> file;
    std::vector<std::string> functions;
  };
  std::vector<Named> all;
  for (const AskedModule& asked : modules) {
    if (asked.path.empty()) {
      Say(GeneratedNames(asked), answer_fd);
      continue;
    }
    auto file = ElfFile::Open(asked.root, asked.path);
    if (!file.ok()) continue;
    Named named{&asked, *std::move(file), {}};
    named.functions = named.file->Functions(asked.offsets);
    std::string answer;
    for (size_t i = 0; i < asked.frames.size(); ++i) {
      if (named.functions[i].empty()) continue;
      evidence::Append(CodeSymbol{asked.frames[i], named.functions[i], "", 0}, &answer);
    }
    Say(answer, answer_fd);
    all.push_back(std::move(named));
  }
  for (const Named& named : all) {
    named.file->Lines(named.asked->offsets, [&](size_t index, const SourceLine& line) {
      std::string answer;
      evidence::Append(
          CodeSymbol{named.asked->frames[index], named.functions[index], line.file, line.line},
          &answer);
      Say(answer, answer_fd);
    });
  }
}

// ---- in the agent

std::string RequestFor(const std::vector<const CodeTable::Module*>& modules) {
  std::string text;
  for (const CodeTable::Module* module : modules) {
    const std::string root = evidence::Escaped(module->owner.root);
    if (module->path == evidence::kGeneratedModule) {
      absl::StrAppend(&text, "G ", root, " ", module->owner.own_pid, "\n");
    } else {
      absl::StrAppend(&text, "M ", root, " ", evidence::Escaped(module->path), "\n");
    }
    for (const auto& [offset, frame] : module->frames) {
      absl::StrAppend(&text, "A ", frame, " ", absl::Hex(offset), "\n");
    }
  }
  return text;
}

bool CanBeNamed(const CodeTable::Module& module) {
  return module.path == evidence::kGeneratedModule ||
         (module.path.starts_with('/') && !module.path.ends_with(" (deleted)"));
}

// Of what a user's process has written: lines for frames that were asked for, and only whole ones.
std::string Checked(std::string_view answer, const std::vector<const CodeTable::Module*>& modules) {
  std::set<uint32_t> asked;
  for (const CodeTable::Module* module : modules) {
    for (const auto& [offset, frame] : module->frames) asked.insert(frame);
  }
  std::string text;
  ForEachLine(answer, [&](std::string_view line) {
    Words words(line);
    const bool symbol = words.Word() == "Y";
    const CodeSymbol one{words.Number<uint32_t>(), words.Text(), words.Text(),
                         words.Number<int32_t>()};
    if (symbol && !words.wrong() && !words.More() && asked.contains(one.frame)) {
      evidence::Append(one, &text);
    }
  });
  return text;
}

// A file in memory, above the descriptors that a child is given.
Descriptor MemoryFile(std::string_view text) {
  const Descriptor made(::memfd_create("syncline-code", MFD_CLOEXEC));
  Descriptor file(::fcntl(made.get(), F_DUPFD_CLOEXEC, 10));
  if (file.get() >= 0 && !WriteAll(file.get(), text, "what is asked").ok()) return Descriptor(-1);
  if (file.get() >= 0) ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

FoundSymbols AskChild(const std::vector<const CodeTable::Module*>& modules, uint32_t uid,
                      int limit_ms, const SymbolOptions& options) {
  FoundSymbols found;
  const Descriptor request = MemoryFile(RequestFor(modules));
  const Descriptor answer = MemoryFile("");
  if (request.get() < 0 || answer.get() < 0) return found;
  SpawnOptions spawn{.arguments = options.command,
                     .for_another_user = uid != ::geteuid(),
                     .pass_as_3 = request.get(),
                     .pass_as_output = answer.get()};
  spawn.arguments.push_back(absl::StrCat(uid));
  const auto pid = Spawn(spawn);
  if (!pid.ok()) return found;
  found.in_time = !absl::IsDeadlineExceeded(WaitForExit(*pid, limit_ms).status());
  found.text = Checked(ReadFromBegin(answer.get(), kAnswerMax), modules);
  return found;
}

}  // namespace

int RunSymbolChild(uint32_t uid, int request_fd, int answer_fd) {
  if (uid != ::geteuid()) {
    const passwd* const user = ::getpwuid(uid);
    const gid_t gid = user != nullptr ? user->pw_gid : static_cast<gid_t>(uid);
    if (::setgroups(0, nullptr) != 0 || ::setgid(gid) != 0 || ::setuid(uid) != 0) return 1;
  }
  ::setpriority(PRIO_PROCESS, 0, 19);
  const rlimit heap{kHeapMax, kHeapMax};
  ::setrlimit(RLIMIT_DATA, &heap);
  const rlimit core{0, 0};
  ::setrlimit(RLIMIT_CORE, &core);
  NameFiles(ParseRequest(ReadFromBegin(request_fd, kAnswerMax)), answer_fd);
  return 0;
}

FoundSymbols FindSymbols(const CodeTable& table, const SymbolOptions& options) {
  std::map<uint32_t, std::vector<const CodeTable::Module*>> by_user;
  for (const CodeTable::Module& module : table.modules()) {
    if (CanBeNamed(module)) by_user[module.owner.uid].push_back(&module);
  }
  FoundSymbols all;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(options.limit_ms);
  for (auto& [uid, modules] : by_user) {
    std::stable_sort(modules.begin(), modules.end(),
                     [](const auto* a, const auto* b) { return a->samples > b->samples; });
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) {
      all.in_time = false;
      break;
    }
    FoundSymbols found = AskChild(modules, uid, static_cast<int>(left), options);
    all.text += found.text;
    all.in_time &= found.in_time;
  }
  return all;
}

// "ffffffff81000000 T _text", "ffffffffc0001000 t f	[module]"; all zero for who may not see
// them.
std::string KernelSymbols(const CodeTable& table, absl::string_view kallsyms) {
  std::map<uint64_t, std::vector<uint32_t>> frames;  // by address
  for (const CodeTable::Module& module : table.modules()) {
    if (module.path != evidence::kKernelModule) continue;
    for (const auto& [offset, frame] : module.frames) frames[offset].push_back(frame);
  }
  if (frames.empty()) return "";
  struct Function {
    uint64_t begin = 0;
    std::string_view name;
  };
  std::vector<Function> functions;
  ForEachLine({kallsyms.data(), kallsyms.size()}, [&](std::string_view line) {
    Words words(line);
    const auto address = words.Number<uint64_t>(16);
    const std::string_view kind = words.Word();
    const std::string_view name = words.Word();
    if (words.wrong() || address == 0 || kind.size() != 1) return;
    if (std::string_view("tTwW").find(kind[0]) == std::string_view::npos) return;
    functions.push_back({address, name.substr(0, name.find('\t'))});
  });
  std::stable_sort(functions.begin(), functions.end(),
                   [](const Function& a, const Function& b) { return a.begin < b.begin; });
  std::string text;
  for (const auto& [address, numbers] : frames) {
    auto behind =
        std::upper_bound(functions.begin(), functions.end(), address,
                         [](uint64_t value, const Function& one) { return value < one.begin; });
    if (behind == functions.begin()) continue;
    --behind;
    for (const uint32_t frame : numbers) {
      evidence::Append(CodeSymbol{frame, std::string(behind->name), "", 0}, &text);
    }
  }
  return text;
}

}  // namespace syncline::agent
