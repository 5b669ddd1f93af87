// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/testing/job_text.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "analysis/why/task_names.h"

namespace syncline::analysis::why {
namespace {

constexpr char kHead[] = "syncline-why-job 1";

std::string Quoted(std::string_view text) {
  // One word, never empty.
  std::string word = "_";
  for (const char c : text) {
    if (c == ' ' || c == '%' || c < ' ') {
      absl::StrAppend(&word, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      word.push_back(c);
    }
  }
  return word;
}

std::string Unquoted(std::string_view word) {
  std::string text;
  for (size_t i = 1; i < word.size(); ++i) {
    if (word[i] == '%' && i + 2 < word.size()) {
      text += absl::HexStringToBytes({word.data() + i + 1, 2});
      i += 2;
    } else {
      text.push_back(word[i]);
    }
  }
  return text;
}

void WriteEvidence(const evidence::Evidence& from, std::string* out) {
  absl::StrAppend(out, "evidence\n");
  if (from.page_ns > 0) absl::StrAppend(out, "K ", from.page_ns, "\n");
  for (const evidence::Process& one : from.processes) {
    absl::StrAppend(out, "P ", static_cast<int>(one.relation), " ", one.pid, " ", one.parent_pid,
                    " ", one.own_pid, " ", Quoted(one.name));
    for (const uint32_t group : one.groups) absl::StrAppend(out, " ", group);
    absl::StrAppend(out, "\n");
  }
  for (const evidence::Group& one : from.groups) {
    absl::StrAppend(out, "G ", one.version, " ", Quoted(one.path), "\n");
  }
  for (const evidence::Thread& one : from.threads) {
    absl::StrAppend(out, "T ", one.process, " ", one.tid, " ", one.own_tid, " ", Quoted(one.name),
                    "\n");
  }
  for (const evidence::ThreadSample& one : from.thread_samples) {
    absl::StrAppend(out, "t ", one.thread, " ", one.at_ns, " ", one.until_ns - one.at_ns, " ",
                    one.on_cpu_ns, " ", one.run_queue_ns, " ", one.cpu);
    if (one.state != 0) {
      absl::StrAppend(out, " ", std::string(1, one.state), " ", one.major_faults);
      if (one.minor_faults >= 0) absl::StrAppend(out, " ", one.minor_faults);
      if (one.clock_khz > 0) absl::StrAppend(out, " ", one.clock_khz);
    }
    absl::StrAppend(out, "\n");
  }
  for (const evidence::GroupSample& one : from.group_samples) {
    absl::StrAppend(out, "g ", one.group, " ", one.at_ns, " ", one.until_ns - one.at_ns, " ",
                    one.periods, " ", one.throttled_periods, " ", one.throttled_ns);
    absl::StrAppend(out, " ", one.quota_ns, " ", one.period_ns, "\n");
  }
  for (const evidence::ProcessSample& one : from.process_samples) {
    absl::StrAppend(out, "p ", one.process, " ", one.at_ns, " ", one.until_ns - one.at_ns, " ",
                    one.cpu_ns, " ", one.cpu, "\n");
  }
  for (const evidence::ProcessSample& one : from.recorded_samples) {
    absl::StrAppend(out, "u ", one.process, " ", one.at_ns, " ", one.until_ns - one.at_ns, " ",
                    one.cpu_ns);
    if (one.threads > 0 || one.read_bytes >= 0) absl::StrAppend(out, " ", one.threads);
    if (one.read_bytes >= 0) absl::StrAppend(out, " ", one.read_bytes);
    absl::StrAppend(out, "\n");
  }
  for (const evidence::StealSample& one : from.steal_samples) {
    absl::StrAppend(out, "s ", one.process, " ", one.at_ns, " ", one.until_ns - one.at_ns, " ",
                    one.busy_ns, " ", one.stolen_ns, "\n");
  }
  for (size_t i = 0; i < from.processes.size(); ++i) {
    const evidence::Process& one = from.processes[i];
    if (one.allowed_count == 0) continue;
    absl::StrAppend(out, "A ", i, " ", one.allowed_count, " ", Quoted(one.allowed_cpus), "\n");
  }
  for (const evidence::Rate& one : from.rates) {
    absl::StrAppend(out, "R ", one.at_ns, " ", one.period_ns, "\n");
  }
}

void WriteRank(const RankInput& rank, std::string* out) {
  absl::StrAppend(out, "rank ", rank.rank, " ", rank.pid, " ", Quoted(rank.node), " ",
                  Quoted(rank.command), "\n");
  absl::StrAppend(out, "window ", rank.window.begin_ns, " ", rank.window.end_ns, "\n");
  for (const std::string& one : rank.accelerators) {
    absl::StrAppend(out, "accelerator ", Quoted(one), "\n");
  }
  for (const OwnInterval& hole : rank.holes) {
    absl::StrAppend(out, "hole ", hole.begin_ns, " ", hole.end_ns, "\n");
  }
  for (const PlaceSample& one : rank.places) {
    absl::StrAppend(out, "stands ", one.at_ns, " ", one.tid, " ", one.name, "\n");
  }
  int64_t at_ns = 0;
  for (const CollectiveEntry& one : rank.collectives) {
    absl::StrAppend(out, "c ", one.group, " ", one.number, " ", one.name, " ",
                    one.entered_ns - at_ns);
    if (one.left_ns.has_value()) absl::StrAppend(out, " ", *one.left_ns - one.entered_ns);
    absl::StrAppend(out, "\n");
    if (one.timeline_ns.has_value()) {
      absl::StrAppend(out, "placed ", *one.timeline_ns - one.entered_ns, "\n");
    }
    at_ns = one.entered_ns;
  }
  for (const ThreadInput& thread : rank.threads) {
    absl::StrAppend(out, "thread ", thread.tid, "\n");
    at_ns = 0;
    for (const TaskSpan& span : thread.spans) {
      absl::StrAppend(out, span.begin_ns - at_ns, " ", span.end_ns - span.begin_ns, " ", span.name,
                      " ", span.category);
      if (span.shape != 0 || !span.whole) {
        absl::StrAppend(out, " ", span.shape, " ", span.whole ? 1 : 0);
      }
      absl::StrAppend(out, "\n");
      at_ns = span.begin_ns;
    }
  }
  if (rank.evidence == nullptr) return;
  if (rank.evidence_process.has_value()) {
    absl::StrAppend(out, "process ", *rank.evidence_process, "\n");
  }
  WriteEvidence(*rank.evidence, out);
}

// Reads line by line; the first wrong one ends it.
class Reader {
 public:
  absl::Status Line(std::string_view line) {
    words_ = absl::StrSplit(absl::string_view(line.data(), line.size()), ' ', absl::SkipEmpty());
    next_ = 0;
    wrong_ = false;
    if (words_.empty()) return absl::OkStatus();
    Take();
    return wrong_ ? absl::InvalidArgumentError("not a line of a job") : absl::OkStatus();
  }
  OwnedJob Finish() { return std::move(job_); }

 private:
  bool More() const { return next_ < words_.size(); }
  std::string_view Word() {
    if (!More()) {
      wrong_ = true;
      return "0";
    }
    const absl::string_view word = words_[next_++];
    return {word.data(), word.size()};
  }
  template <class T = int64_t>
  T Number() {
    const std::string_view word = Word();
    int64_t value = 0;
    wrong_ |= !absl::SimpleAtoi(absl::string_view(word.data(), word.size()), &value);
    return static_cast<T>(value);
  }
  std::string Text() { return Unquoted(Word()); }
  RankInput& Rank() {
    if (job_.input.ranks.empty()) {
      wrong_ = true;
      job_.input.ranks.emplace_back();
    }
    return job_.input.ranks.back();
  }
  evidence::Evidence& Evidence() {
    if (job_.evidence.empty()) {
      wrong_ = true;
      job_.evidence.emplace_back();
    }
    return job_.evidence.back();
  }

  void Take() {
    const std::string_view kind =
        words_[0].empty() ? "" : std::string_view(words_[0].data(), words_[0].size());
    if (kind[0] == '-' || (kind[0] >= '0' && kind[0] <= '9')) return TakeSpan();
    ++next_;
    if (kind.size() == 1 && kind != "c") return TakeSample(kind[0]);
    TakeFact(kind);
  }

  void TakeSpan() {
    TaskSpan span;
    span.begin_ns = at_ns_ += Number();
    span.end_ns = span.begin_ns + Number();
    span.name = Number<NameId>();
    span.category = Number<NameId>();
    if (More()) {
      span.shape = Number<NameId>();
      span.whole = Number() != 0;
    }
    const size_t names = job_.input.names.size();
    wrong_ |= span.name >= names || span.category >= names || span.shape >= names;
    if (Rank().threads.empty()) {
      wrong_ = true;
      return;
    }
    Rank().threads.back().spans.push_back(span);
  }

  void TakeFact(std::string_view kind) {
    if (kind == "name") {
      job_.input.names.push_back(Text());
    } else if (kind == "rank") {
      RankInput& rank = job_.input.ranks.emplace_back();
      rank.rank = Number<int32_t>();
      rank.pid = Number<int32_t>();
      rank.node = Text();
      rank.command = Text();
      at_ns_ = 0;
    } else if (kind == "window") {
      Rank().window = {Number(), 0};
      Rank().window.end_ns = Number();
    } else if (kind == "accelerator") {
      Rank().accelerators.push_back(Text());
    } else if (kind == "hole") {
      OwnInterval& hole = Rank().holes.emplace_back();
      hole.begin_ns = Number();
      hole.end_ns = Number();
    } else if (kind == "stands") {
      PlaceSample& place = Rank().places.emplace_back();
      place.at_ns = Number();
      place.tid = Number<int32_t>();
      place.name = Number<NameId>();
      wrong_ |= place.name >= job_.input.names.size();
    } else if (kind == "c") {
      CollectiveEntry& entry = Rank().collectives.emplace_back();
      entry.group = Number<uint32_t>();
      entry.number = Number<uint64_t>();
      entry.name = Number<NameId>();
      wrong_ |= entry.name >= job_.input.names.size();
      entry.entered_ns = at_ns_ += Number();
      if (More()) entry.left_ns = entry.entered_ns + Number();
    } else if (kind == "placed") {
      if (Rank().collectives.empty()) Rank().collectives.emplace_back();
      CollectiveEntry& entry = Rank().collectives.back();
      entry.timeline_ns = entry.entered_ns + Number();
    } else if (kind == "thread") {
      Rank().threads.push_back({Number<int32_t>(), {}});
      at_ns_ = 0;
    } else if (kind == "process") {
      Rank().evidence_process = Number<uint32_t>();
    } else if (kind == "evidence") {
      Rank().evidence = &job_.evidence.emplace_back();
    } else if (kind == "arrival") {
      Arrival& arrival = job_.input.arrivals.emplace_back();
      arrival.group = Number<uint32_t>();
      arrival.number = Number<uint64_t>();
      arrival.everybody_waits = Number() != 0;
      arrival.last = Number<size_t>();
      arrival.spread_ns = Number();
      arrival.level = static_cast<Level>(Number());
      if (More()) arrival.root = Number<size_t>();
    } else {
      wrong_ = true;
    }
  }

  char State() {
    const std::string_view state = Word();
    return state.size() == 1 ? state[0] : '\0';
  }

  void TakeThreadSample(evidence::Evidence* to) {
    evidence::ThreadSample& one = to->thread_samples.emplace_back();
    one.thread = Number<uint32_t>();
    one.at_ns = Number();
    one.until_ns = one.at_ns + Number();
    one.on_cpu_ns = Number();
    one.run_queue_ns = Number();
    one.cpu = Number<int32_t>();
    if (More()) {
      one.state = State();
      one.major_faults = Number();
      if (More()) one.minor_faults = Number();
      if (More()) one.clock_khz = Number();
    }
    wrong_ |= one.thread >= to->threads.size();
  }

  void TakeStealSample(evidence::Evidence* to) {
    evidence::StealSample& one = to->steal_samples.emplace_back();
    one.process = Number<uint32_t>();
    one.at_ns = Number();
    one.until_ns = one.at_ns + Number();
    one.busy_ns = Number();
    one.stolen_ns = Number();
    wrong_ |= one.process >= to->processes.size();
  }

  void TakeSample(char kind) {
    evidence::Evidence& to = Evidence();
    if (kind == 'P') {
      evidence::Process& one = to.processes.emplace_back();
      one.relation = static_cast<evidence::Relation>(Number());
      one.pid = Number<int32_t>();
      one.parent_pid = Number<int32_t>();
      one.own_pid = Number<int32_t>();
      one.name = Text();
      while (More()) one.groups.push_back(Number<uint32_t>());
    } else if (kind == 'K') {
      to.page_ns = Number();
    } else if (kind == 'G') {
      to.groups.push_back({Number<int>(), ""});
      to.groups.back().path = Text();
    } else if (kind == 'T') {
      evidence::Thread& one = to.threads.emplace_back();
      one.process = Number<uint32_t>();
      one.tid = Number<int32_t>();
      one.own_tid = Number<int32_t>();
      one.name = Text();
    } else if (kind == 't') {
      TakeThreadSample(&to);
    } else if (kind == 'g') {
      evidence::GroupSample& one = to.group_samples.emplace_back();
      one.group = Number<uint32_t>();
      one.at_ns = Number();
      one.until_ns = one.at_ns + Number();
      one.periods = Number();
      one.throttled_periods = Number();
      one.throttled_ns = Number();
      one.quota_ns = Number();
      one.period_ns = Number();
    } else if (kind == 'p' || kind == 'u') {
      auto& samples = kind == 'p' ? to.process_samples : to.recorded_samples;
      evidence::ProcessSample& one = samples.emplace_back();
      one.process = Number<uint32_t>();
      one.at_ns = Number();
      one.until_ns = one.at_ns + Number();
      one.cpu_ns = Number();
      if (kind == 'p') one.cpu = Number<int32_t>();
      if (kind == 'u' && More()) one.threads = Number<uint32_t>();
      if (kind == 'u' && More()) one.read_bytes = Number();
      wrong_ |= one.process >= to.processes.size();
    } else if (kind == 's') {
      TakeStealSample(&to);
    } else if (kind == 'A') {
      const auto process = Number<uint32_t>();
      wrong_ |= process >= to.processes.size();
      if (wrong_) return;
      to.processes[process].allowed_count = Number<uint32_t>();
      to.processes[process].allowed_cpus = Text();
    } else if (kind == 'R') {
      evidence::Rate& one = to.rates.emplace_back();
      one.at_ns = Number();
      one.period_ns = Number();
    } else {
      wrong_ = true;
    }
  }

  OwnedJob job_;
  std::vector<absl::string_view> words_;
  size_t next_ = 0;
  bool wrong_ = false;
  int64_t at_ns_ = 0;
};

// The end of the rank's `steps`-th optimizer step, on whichever thread.
int64_t EndOf(const RankInput& rank, const TaskNames& names, size_t steps) {
  std::vector<int64_t> ends;
  for (const ThreadInput& thread : rank.threads) {
    for (const TaskSpan& span : thread.spans) {
      if (names.Is(span.name, Role::kStep)) ends.push_back(span.end_ns);
    }
  }
  std::sort(ends.begin(), ends.end());
  return ends.size() > steps ? ends[steps] : INT64_MAX;
}

// Operators within operators, and all within what fetches a batch. Primitives stay: they tell
// shapes.
void DropInner(const TaskNames& names, std::vector<TaskSpan>* spans) {
  int64_t until_ns = INT64_MIN;
  int64_t loads_until_ns = INT64_MIN;
  std::erase_if(*spans, [&](const TaskSpan& span) {
    const bool loads = names.Is(span.name, Role::kLoader);
    if (span.begin_ns < loads_until_ns && !loads) return true;
    if (loads) loads_until_ns = std::max(loads_until_ns, span.end_ns);
    const bool inner = (span.begin_ns < until_ns && span.shape == 0 && names.Works(span)) ||
                       names.IsPreparation(span.category);
    if (names.Works(span)) until_ns = std::max(until_ns, span.end_ns);
    return inner;
  });
}

// Samples until a little behind `end_ns`.
evidence::Evidence Until(evidence::Evidence evidence, int64_t end_ns) {
  constexpr int64_t kBehindNs = 200'000'000;
  const auto late = [&](const auto& sample) { return sample.at_ns - kBehindNs > end_ns; };
  std::erase_if(evidence.thread_samples, late);
  std::erase_if(evidence.group_samples, late);
  std::erase_if(evidence.process_samples, late);
  std::erase_if(evidence.recorded_samples, late);
  std::erase_if(evidence.steal_samples, late);
  return evidence;
}

// Numbers the names that are used anew, from 1.
void DropNames(JobInput* job) {
  std::map<NameId, NameId> used = {{0, 0}};
  std::vector<std::string> names = {""};
  const auto renew = [&](NameId* name) {
    const auto [found, is_new] = used.try_emplace(*name, static_cast<NameId>(names.size()));
    if (is_new) names.push_back(job->names[*name]);
    *name = found->second;
  };
  for (RankInput& rank : job->ranks) {
    for (CollectiveEntry& entry : rank.collectives) renew(&entry.name);
    for (PlaceSample& place : rank.places) renew(&place.name);
    for (ThreadInput& thread : rank.threads) {
      thread.spans.Edit([&](std::vector<TaskSpan>* spans) {
        for (TaskSpan& span : *spans) {
          renew(&span.name);
          renew(&span.category);
          renew(&span.shape);
        }
      });
    }
  }
  job->names = std::move(names);
}

}  // namespace

std::string WriteJob(const JobInput& job) {
  std::string out = absl::StrCat(kHead, "\n");
  for (const std::string& name : job.names) absl::StrAppend(&out, "name ", Quoted(name), "\n");
  for (const RankInput& rank : job.ranks) WriteRank(rank, &out);
  for (const Arrival& one : job.arrivals) {
    absl::StrAppend(&out, "arrival ", one.group, " ", one.number, " ", one.everybody_waits ? 1 : 0,
                    " ", one.last, " ", one.spread_ns, " ");
    absl::StrAppend(&out, static_cast<int>(one.level));
    if (one.root.has_value()) absl::StrAppend(&out, " ", *one.root);
    absl::StrAppend(&out, "\n");
  }
  return out;
}

absl::StatusOr<OwnedJob> ReadJob(std::string_view text) {
  Reader reader;
  size_t number = 0;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    if (number == 1) {
      if (line != kHead) return absl::InvalidArgumentError("no job of a known version");
      continue;
    }
    const absl::Status status = reader.Line({line.data(), line.size()});
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
    }
  }
  return reader.Finish();
}

OwnedJob Reduced(const JobInput& job, size_t steps) {
  const TaskNames names(job.names);
  OwnedJob owned;
  owned.input = job;
  for (RankInput& rank : owned.input.ranks) {
    const int64_t end_ns = EndOf(rank, names, steps);
    for (ThreadInput& thread : rank.threads) {
      thread.spans.Edit([&](std::vector<TaskSpan>* spans) {
        std::erase_if(*spans, [&](const TaskSpan& span) { return span.end_ns > end_ns; });
        DropInner(names, spans);
      });
    }
    std::erase_if(rank.collectives,
                  [&](const CollectiveEntry& entry) { return entry.entered_ns >= end_ns; });
    std::erase_if(rank.places, [&](const PlaceSample& place) { return place.at_ns >= end_ns; });
    rank.window.end_ns = std::min(rank.window.end_ns, end_ns);
    if (rank.evidence != nullptr) {
      rank.evidence = &owned.evidence.emplace_back(Until(*rank.evidence, end_ns));
    }
  }
  DropNames(&owned.input);
  return owned;
}

}  // namespace syncline::analysis::why
