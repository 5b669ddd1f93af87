// SPDX-License-Identifier: Apache-2.0
#include <span>

#include "absl/strings/ascii.h"
#include "evidence/evidence.h"
#include "evidence/words.h"
#include "evidence/write.h"

namespace syncline::evidence {
namespace {

constexpr size_t kItemsMax = 1 << 20;  // processes, groups, threads: more are not sampled
constexpr size_t kNotesMax = 100;
constexpr int64_t kPageNsMax = 1'000'000;  // no page costs so much
constexpr size_t kAncestorsMax = 64;       // of a control group

class Parser {
 public:
  void Line(std::string_view line) {
    Words words(line);
    const std::string_view kind = words.Word();
    if (kind.size() != 1 || !Take(kind[0], &words)) ++evidence_.damaged_lines;
  }
  Evidence Finish() { return std::move(evidence_); }

 private:
  bool Take(char kind, Words* words) {
    switch (kind) {
      case 'P':
        return TakeProcess(words);
      case 'G':
        return TakeGroup(&evidence_.groups, words);
      case 'T':
        return TakeThread(words);
      case 'M':
        return TakeGroups(evidence_.groups, &Process::groups, words);
      case 'L':
        return TakeGroup(&evidence_.memory_groups, words);
      case 'B':
        return TakeGroups(evidence_.memory_groups, &Process::memory_groups, words);
      case 'm':
        return TakeMemorySample(words);
      case 't':
        return TakeThreadSample(words);
      case 'g':
        return TakeGroupSample(words);
      case 'p':
        return TakeProcessSample(/*recorded=*/false, words);
      case 'u':
        return TakeProcessSample(/*recorded=*/true, words);
      case 's':
        return TakeStealSample(words);
      case 'A':
        return TakeAllowed(words);
      case 'K':
        return TakePageCost(words);
      case 'H': {
        Gap gap;
        words->Bracket(&gap.begin_ns, &gap.end_ns);
        words->Keep(gap, &evidence_.gaps);
        return !words->wrong();
      }
      case 'R': {
        Rate rate{words->Ns(), words->Ns(), {}};
        rate.reason = words->Text();
        words->Keep(std::move(rate), &evidence_.rates);
        return !words->wrong();
      }
      case 'N': {
        std::string note = words->Text();
        if (words->wrong() || evidence_.notes.size() >= kNotesMax) return !words->wrong();
        words->Keep(std::move(note), &evidence_.notes);
        return !words->wrong();
      }
      case 'E':
        evidence_.ended |= !words->More();
        return !words->More();
      default:  // of a later version, perhaps: what is not known is left out
        return false;
    }
  }

  static bool TakeIndices(size_t known, Words* words, std::vector<uint32_t>* groups) {
    while (words->More() && !words->wrong() && groups->size() < kAncestorsMax) {
      groups->push_back(words->Index(known));
    }
    return !words->wrong() && !words->More();
  }

  // A damaged line of these still takes its number: others refer to those behind it.
  bool TakeProcess(Words* words) {
    if (evidence_.processes.size() >= kItemsMax) return false;
    Process& process = evidence_.processes.emplace_back();
    process.relation = static_cast<Relation>(words->Index(4));
    process.pid = words->Number<int32_t>();
    process.parent_pid = words->Number<int32_t>();
    process.start_ticks = words->Number<uint64_t>();
    process.pid_namespace_inode = words->Number<int64_t>();
    process.own_pid = words->Number<int32_t>();
    process.uid = words->Number<uint32_t>();
    process.name = words->Text();
    if (!words->wrong() && TakeIndices(evidence_.groups.size(), words, &process.groups))
      return true;
    process = Process{};
    return false;
  }

  static bool TakeGroup(std::vector<Group>* groups, Words* words) {
    if (groups->size() >= kItemsMax) return false;
    Group& group = groups->emplace_back();
    group.version = words->Number<int>();
    group.path = words->Text();
    return !words->wrong();
  }

  bool TakeThread(Words* words) {
    if (evidence_.threads.size() >= kItemsMax || evidence_.processes.empty()) return false;
    Thread& thread = evidence_.threads.emplace_back();
    thread.process = words->Index(evidence_.processes.size());
    thread.tid = words->Number<int32_t>();
    thread.own_tid = words->Number<int32_t>();
    thread.name = words->Text();
    if (!words->wrong()) return true;
    thread = Thread{};
    return false;
  }

  bool TakeGroups(std::span<const Group> known, std::vector<uint32_t> Process::*groups,
                  Words* words) {
    const uint32_t process = words->Index(evidence_.processes.size());
    std::vector<uint32_t> of_process;
    if (words->wrong() || !TakeIndices(known.size(), words, &of_process)) return false;
    evidence_.processes[process].*groups = std::move(of_process);
    return true;
  }

  bool TakeThreadSample(Words* words) {
    ThreadSample sample;
    sample.thread = words->Index(evidence_.threads.size());
    words->Bracket(&sample.at_ns, &sample.until_ns);
    sample.on_cpu_ns = words->Ns();
    sample.run_queue_ns = words->Ns();
    sample.cpu = words->Number<int32_t>();
    if (words->More()) {  // not of all, and not in older files
      const std::string_view state = words->Word();
      sample.major_faults = words->Number<int64_t>();
      if (words->More()) {
        sample.minor_faults = words->Number<int64_t>();
        if (sample.minor_faults < 0) words->Fail();
      }
      if (words->More()) {
        sample.clock_khz = words->Number<int64_t>();
        if (sample.clock_khz <= 0) words->Fail();
      }
      if (!IsState(state) || sample.major_faults < 0) words->Fail();
      sample.state = IsState(state) ? state[0] : '\0';
    }
    words->Keep(sample, &evidence_.thread_samples);
    return !words->wrong();
  }

  bool TakeGroupSample(Words* words) {
    GroupSample sample;
    sample.group = words->Index(evidence_.groups.size());
    words->Bracket(&sample.at_ns, &sample.until_ns);
    sample.periods = words->Ns();
    sample.throttled_periods = words->Ns();
    sample.throttled_ns = words->Ns();
    sample.quota_ns = words->Number<int64_t>();
    sample.period_ns = words->Ns();
    words->Keep(sample, &evidence_.group_samples);
    return !words->wrong();
  }

  bool TakeMemorySample(Words* words) {
    MemorySample sample;
    sample.group = words->Index(evidence_.memory_groups.size());
    words->Bracket(&sample.at_ns, &sample.until_ns);
    sample.full = words->Ns();
    sample.limit_bytes = words->Number<int64_t>();
    if (sample.limit_bytes < -1) words->Fail();
    words->Keep(sample, &evidence_.memory_samples);
    return !words->wrong();
  }

  // Of one that is not recorded the CPU is said, of a recorded one how many threads it has and what
  // it read: lines of before that was written end without it.
  bool TakeProcessSample(bool recorded, Words* words) {
    ProcessSample sample;
    sample.process = words->Index(evidence_.processes.size());
    words->Bracket(&sample.at_ns, &sample.until_ns);
    sample.cpu_ns = words->Ns();
    if (!recorded) {
      sample.cpu = words->Number<int32_t>();
    } else if (words->More()) {
      sample.threads = words->Number<uint32_t>();
      if (words->More()) sample.read_bytes = words->Number<int64_t>();
      if (sample.read_bytes < -1) words->Fail();
    }
    words->Keep(sample, recorded ? &evidence_.recorded_samples : &evidence_.process_samples);
    return !words->wrong();
  }

  bool TakeStealSample(Words* words) {
    StealSample sample;
    sample.process = words->Index(evidence_.processes.size());
    words->Bracket(&sample.at_ns, &sample.until_ns);
    sample.busy_ns = words->Ns();
    sample.stolen_ns = words->Ns();
    words->Keep(sample, &evidence_.steal_samples);
    return !words->wrong();
  }

  bool TakeAllowed(Words* words) {
    const uint32_t process = words->Index(evidence_.processes.size());
    const auto count = words->Number<uint32_t>();
    std::string cpus = words->Text();
    if (words->wrong() || words->More()) return false;
    evidence_.processes[process].allowed_count = count;
    evidence_.processes[process].allowed_cpus = std::move(cpus);
    return true;
  }

  bool TakePageCost(Words* words) {
    const int64_t page_ns = words->Ns();
    if (words->wrong() || words->More() || page_ns > kPageNsMax) return false;
    evidence_.page_ns = page_ns;
    return true;
  }

  Evidence evidence_;
};

}  // namespace

bool IsState(std::string_view word) {
  return word.size() == 1 && absl::ascii_isalpha(static_cast<unsigned char>(word[0]));
}

absl::StatusOr<Evidence> ParseEvidence(std::string_view text) {
  return ParseText<Parser>(text, kHead);
}

}  // namespace syncline::evidence
