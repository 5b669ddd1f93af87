// SPDX-License-Identifier: Apache-2.0
#include "evidence/scheduling.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "evidence/words.h"
#include "evidence/write.h"

namespace syncline::evidence {
namespace {

constexpr size_t kTurnsMax = 1 << 24;  // the file's size limit comes first
constexpr size_t kItemsMax = 1 << 20;  // of any other kind
constexpr size_t kNotesMax = 100;

bool IsPause(std::string_view word) {
  return word.size() == 1 && std::string_view("SDTR?").find(word[0]) != std::string_view::npos;
}

class SchedulingParser {
 public:
  void Line(std::string_view line) {
    Words words(line);
    const std::string_view kind = words.Word();
    if (kind.size() != 1 || !Take(kind[0], &words)) ++all_.damaged_lines;
  }
  Scheduling Finish() { return std::move(all_); }

 private:
  bool Take(char kind, Words* words) {
    switch (kind) {
      case 'B':
        all_.from_ns = words->Ns();
        return words->Whole();
      case 'P':
        if (all_.processes.size() >= kItemsMax) return false;
        all_.processes.push_back(TakeIdentity(words));
        return words->Whole();
      case 'T':
        return TakeThread(words);
      case 'O':
        return TakeOther(words);
      case 'r':
        return TakeTurn(words);
      case 'L': {
        SchedulingLoss loss;
        words->Bracket(&loss.from_ns, &loss.until_ns);
        loss.count = words->Number<uint64_t>();
        return words->Keep(loss, &all_.losses, kItemsMax);
      }
      case 'c':
        all_.cost_ns = words->Ns();
        return words->Whole();
      case 'N':
        return words->Keep(words->Text(), &all_.notes, kNotesMax);
      case 'E':
        all_.ended |= !words->More();
        return !words->More();
      default:  // of a later version, perhaps: what is not known is left out
        return false;
    }
  }

  // A damaged line of these still takes its number: others refer to those behind it.
  bool TakeThread(Words* words) {
    if (all_.threads.size() >= kItemsMax || all_.processes.empty()) return false;
    ScheduledThread& thread = all_.threads.emplace_back();
    thread.process = words->Index(all_.processes.size());
    thread.tid = words->Number<int32_t>();
    thread.own_tid = words->Number<int32_t>();
    thread.name = words->Text();
    if (words->Whole()) return true;
    thread = {};
    return false;
  }

  bool TakeOther(Words* words) {
    if (all_.others.size() >= kItemsMax) return false;
    OtherThread& other = all_.others.emplace_back();
    other.pid = words->Number<int32_t>();
    other.tid = words->Number<int32_t>();
    other.name = words->Text();
    other.process_name = words->Text();
    if (words->Whole()) return true;
    other = {};
    return false;
  }

  Who TakeWho(Words* words) {
    const std::string_view word = words->Word();
    if (word == "-") return {};
    if (word == "i") return {Who::Kind::kIdle, 0};
    if (word == "x") return {Who::Kind::kInterrupt, 0};
    const bool thread = word.starts_with('t');
    if (!thread && !word.starts_with('o')) {
      words->Fail();
      return {};
    }
    Words number(word.substr(1));
    const uint32_t index = number.Index(thread ? all_.threads.size() : all_.others.size());
    if (!number.Whole()) words->Fail();
    return {thread ? Who::Kind::kThread : Who::Kind::kOther, index};
  }

  bool TakeTurn(Words* words) {
    if (all_.turns.size() >= kTurnsMax) return false;
    Turn turn;
    turn.thread = words->Index(all_.threads.size());
    turn.until_ns = words->Ns();
    turn.ran_ns = words->Ns();
    turn.ready_ns = words->Ns();
    turn.pause_ns = words->Ns();
    const std::string_view pause = words->Word();
    turn.cpu = words->Number<int32_t>();
    turn.waker = TakeWho(words);
    std::vector<Taker> takers;
    while (words->More() && !words->wrong() && takers.size() < kTakersMax) {
      const Who who = TakeWho(words);
      takers.push_back({who, words->Ns()});
    }
    if (!words->Whole() || !IsPause(pause) || turn.cpu < 0 || turn.from_ns() < 0) return false;
    turn.pause = static_cast<Pause>(pause[0]);
    turn.first_taker = static_cast<uint32_t>(all_.takers.size());
    turn.takers = static_cast<uint32_t>(takers.size());
    all_.takers.insert(all_.takers.end(), takers.begin(), takers.end());
    all_.turns.push_back(turn);
    return true;
  }

  Scheduling all_;
};

void AppendWho(const Who& who, std::string* out) {
  switch (who.kind) {
    case Who::Kind::kUnknown:
      out->append(" -");
      return;
    case Who::Kind::kThread:
      absl::StrAppend(out, " t", who.index);
      return;
    case Who::Kind::kOther:
      absl::StrAppend(out, " o", who.index);
      return;
    case Who::Kind::kIdle:
      out->append(" i");
      return;
    case Who::Kind::kInterrupt:
      out->append(" x");
      return;
  }
}

}  // namespace

absl::StatusOr<Scheduling> ParseScheduling(std::string_view text) {
  return ParseText<SchedulingParser>(text, kSchedulingHead);
}

void AppendSchedulingHead(int64_t from_ns, std::string* out) {
  absl::StrAppend(out, kSchedulingHead, "\nB ", from_ns, "\n");
}

void Append(const ScheduledThread& thread, std::string* out) {
  absl::StrAppend(out, "T ", thread.process, " ", thread.tid, " ", thread.own_tid, " ");
  absl::StrAppend(out, Escaped(thread.name), "\n");
}

void Append(const OtherThread& other, std::string* out) {
  absl::StrAppend(out, "O ", other.pid, " ", other.tid, " ", Escaped(other.name), " ");
  absl::StrAppend(out, Escaped(other.process_name), "\n");
}

void Append(const Turn& turn, const std::vector<Taker>& takers, std::string* out) {
  absl::StrAppend(out, "r ", turn.thread, " ", turn.until_ns, " ", turn.ran_ns, " ");
  absl::StrAppend(out, turn.ready_ns, " ", turn.pause_ns, " ");
  out->push_back(static_cast<char>(turn.pause));
  absl::StrAppend(out, " ", turn.cpu);
  AppendWho(turn.waker, out);
  for (const Taker& taker : takers) {
    AppendWho(taker.who, out);
    absl::StrAppend(out, " ", taker.ns);
  }
  out->push_back('\n');
}

void Append(const SchedulingLoss& loss, std::string* out) {
  absl::StrAppend(out, "L ", loss.from_ns, " ", loss.until_ns, " ", loss.count, "\n");
}

}  // namespace syncline::evidence
