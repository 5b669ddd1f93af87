// SPDX-License-Identifier: Apache-2.0
#include "evidence/code_samples.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "evidence/words.h"
#include "evidence/write.h"

namespace syncline::evidence {
namespace {

constexpr size_t kItemsMax = 1 << 22;  // of a kind; samples of 8 processors for 90 minutes
constexpr size_t kNotesMax = 100;
constexpr size_t kStackMax = 256;

class CodeParser {
 public:
  void Line(std::string_view line) {
    Words words(line);
    const std::string_view kind = words.Word();
    if (kind.size() != 1 || !Take(kind[0], &words)) ++code_.damaged_lines;
  }
  CodeSamples Finish() {
    // A damaged line keeps its number, and what refers to it must find something.
    for (std::vector<uint32_t>& stack : code_.stacks) {
      if (!stack.empty()) continue;
      if (unknown_frame_ == UINT32_MAX) {
        unknown_frame_ = static_cast<uint32_t>(code_.frames.size());
        code_.frames.push_back({.module = static_cast<uint32_t>(code_.modules.size())});
        code_.modules.emplace_back(kUnknownModule);
      }
      stack.push_back(unknown_frame_);
    }
    return std::move(code_);
  }

 private:
  bool Take(char kind, Words* words) {
    switch (kind) {
      case 'C':
        code_.period_ns = words->Ns();
        code_.kernel = words->Index(2) == 1;
        return words->Whole();
      case 'P':
        return TakeProcess(words);
      case 'T':
        return TakeThread(words);
      case 'M':
        if (code_.modules.size() >= kItemsMax) return false;
        code_.modules.push_back(words->Text());
        return words->Whole();
      case 'F':
        return TakeFrame(words);
      case 'K':
        return TakeStack(words);
      case 's': {
        CodeSample sample{words->Index(code_.threads.size()), words->Ns(),
                          words->Index(code_.stacks.size())};
        return words->Keep(sample, &code_.samples, kItemsMax);
      }
      case 'L': {
        CodeLoss loss{words->Index(code_.threads.size()), words->Ns(), words->Number<uint64_t>()};
        return words->Keep(loss, &code_.losses, kItemsMax);
      }
      case 'e': {
        CodeThreadTime time{words->Index(code_.threads.size()), words->Ns()};
        return words->Keep(time, &code_.thread_times, kItemsMax);
      }
      case 'Y':
        return TakeSymbol(words);
      case 'c':
        code_.cost_ns = words->Ns();
        return words->Whole();
      case 'N':
        return words->Keep(words->Text(), &code_.notes, kNotesMax);
      case 'E':
        code_.ended |= !words->More();
        return !words->More();
      default:  // what is not known is of a later version, perhaps, and left out
        return TakeSoftwareLine(kind, code_.threads.size(), words, &code_.software).value_or(false);
    }
  }

  // A damaged line of these still takes its number: others refer to those behind it.
  bool TakeProcess(Words* words) {
    if (code_.processes.size() >= kItemsMax) return false;
    CodeProcess& process = code_.processes.emplace_back();
    process.pid = words->Number<int32_t>();
    process.start_ticks = words->Number<uint64_t>();
    process.pid_namespace_inode = words->Number<int64_t>();
    process.own_pid = words->Number<int32_t>();
    process.uid = words->Number<uint32_t>();
    process.name = words->Text();
    if (words->Whole()) return true;
    process = {};
    return false;
  }

  bool TakeThread(Words* words) {
    if (code_.threads.size() >= kItemsMax || code_.processes.empty()) return false;
    CodeThread& thread = code_.threads.emplace_back();
    thread.process = words->Index(code_.processes.size());
    thread.tid = words->Number<int32_t>();
    thread.own_tid = words->Number<int32_t>();
    thread.from_ns = words->Ns();
    thread.name = words->Text();
    if (words->Whole()) return true;
    thread = {};
    return false;
  }

  bool TakeFrame(Words* words) {
    if (code_.frames.size() >= kItemsMax || code_.modules.empty()) return false;
    CodeFrame& frame = code_.frames.emplace_back();
    frame.module = words->Index(code_.modules.size());
    frame.offset = words->Number<uint64_t>(16);
    if (words->Whole()) return true;
    frame = {};
    return false;
  }

  bool TakeStack(Words* words) {
    if (code_.stacks.size() >= kItemsMax) return false;
    std::vector<uint32_t>& stack = code_.stacks.emplace_back();
    while (words->More() && !words->wrong() && stack.size() < kStackMax) {
      stack.push_back(words->Index(code_.frames.size()));
    }
    if (words->Whole() && !stack.empty()) return true;
    stack.clear();
    return false;
  }

  bool TakeSymbol(Words* words) {
    CodeSymbol symbol;
    symbol.frame = words->Index(code_.frames.size());
    symbol.function = words->Text();
    symbol.file = words->Text();
    symbol.line = words->Number<int32_t>();
    if (!words->Whole() || symbol.line < 0) return false;
    CodeFrame& frame = code_.frames[symbol.frame];
    frame.function = std::move(symbol.function);
    frame.file = std::move(symbol.file);
    frame.line = symbol.line;
    return true;
  }

  CodeSamples code_;
  uint32_t unknown_frame_ = UINT32_MAX;
};

}  // namespace

absl::StatusOr<CodeSamples> ParseCodeSamples(std::string_view text) {
  return ParseText<CodeParser>(text, kCodeHead);
}

void AppendCodeHead(int64_t period_ns, bool kernel, std::string* out) {
  absl::StrAppend(out, kCodeHead, "\nC ", period_ns, " ", kernel ? 1 : 0, "\n");
}

void Append(const CodeProcess& process, std::string* out) {
  absl::StrAppend(out, "P ", process.pid, " ", process.start_ticks, " ",
                  process.pid_namespace_inode, " ", process.own_pid);
  absl::StrAppend(out, " ", process.uid, " ", Escaped(process.name), "\n");
}

void Append(const CodeThread& thread, std::string* out) {
  absl::StrAppend(out, "T ", thread.process, " ", thread.tid, " ", thread.own_tid, " ");
  absl::StrAppend(out, thread.from_ns, " ", Escaped(thread.name), "\n");
}

void AppendModule(std::string_view module, std::string* out) {
  absl::StrAppend(out, "M ", Escaped(module), "\n");
}

void Append(const CodeFrame& frame, std::string* out) {
  absl::StrAppend(out, "F ", frame.module, " ", absl::Hex(frame.offset), "\n");
}

void AppendStack(const std::vector<uint32_t>& frames, std::string* out) {
  out->push_back('K');
  for (const uint32_t frame : frames) absl::StrAppend(out, " ", frame);
  out->push_back('\n');
}

void Append(const CodeSample& sample, std::string* out) {
  absl::StrAppend(out, "s ", sample.thread, " ", sample.at_ns, " ", sample.stack, "\n");
}

void Append(const CodeLoss& loss, std::string* out) {
  absl::StrAppend(out, "L ", loss.thread, " ", loss.at_ns, " ", loss.count, "\n");
}

void Append(const CodeThreadTime& time, std::string* out) {
  absl::StrAppend(out, "e ", time.thread, " ", time.on_cpu_ns, "\n");
}

void Append(const CodeSymbol& symbol, std::string* out) {
  absl::StrAppend(out, "Y ", symbol.frame, " ", Escaped(symbol.function), " ", Escaped(symbol.file),
                  " ");
  absl::StrAppend(out, symbol.line, "\n");
}

void AppendCost(int64_t cost_ns, std::string* out) { absl::StrAppend(out, "c ", cost_ns, "\n"); }

}  // namespace syncline::evidence
