// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/testing/fake_job.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kPeriodNs = 50 * kMs;  // of samples
constexpr int32_t kDriverTid = 100;
constexpr char kExecutes[] = "dnnl::primitive::execute";
constexpr uint32_t kGroup = 7;               // of the collectives
constexpr int64_t kBeginNs = 1'000'000'000;  // as Clock has it
constexpr int64_t kFaultsAtOnce = 4;         // when it is blocked
constexpr int64_t kFaultNs = 1'000;          // one that needs no storage
constexpr int64_t kPageBytes = 4096;         // read for a page fault
constexpr uint32_t kThreads = 9;             // of a process, besides those on which it computes
constexpr int64_t kKhzJitter = 20'001;       // of clocks

// What it has of all operators; all else it has in one alone.
Trouble Everywhere(const Trouble* trouble) {
  if (trouble == nullptr) return {};
  return {.threads = trouble->threads, .work = trouble->work, .starved = trouble->starved};
}

template <class Value>
Value At(const std::map<size_t, Value>& by_rank, size_t rank) {
  const auto found = by_rank.find(rank);
  return found == by_rank.end() ? Value{} : found->second;
}

}  // namespace

NameId FakeJob::Name(std::string_view text) {
  const auto [found, is_new] =
      names_.try_emplace(std::string(text), static_cast<NameId>(input_.names.size()));
  if (is_new) input_.names.emplace_back(text);
  return found->second;
}

int64_t FakeJob::Jitter(int64_t ns) {
  return ns + static_cast<int64_t>(random_() % 1000) * ns / 50'000;  // up to 2 %
}

void FakeJob::Span(size_t rank, std::string_view name, std::string_view category, int64_t begin_ns,
                   uint16_t depth, NameId shape) {
  TaskSpan span;
  span.begin_ns = begin_ns;
  span.end_ns = clocks_[rank].now_ns;
  span.name = Name(name);
  span.category = Name(category);
  span.shape = shape;
  span.depth = depth;
  input_.ranks[rank].threads[0].spans.push_back(span);
}

void FakeJob::Run(size_t rank, int64_t ns) {
  Clock& clock = clocks_[rank];
  const auto slower_ns = static_cast<int64_t>(static_cast<double>(ns) * clock.slower);
  clock.on_cpu_ns += slower_ns;
  clock.now_ns += slower_ns;
}

void FakeJob::Compute(size_t rank, int64_t ns, const Trouble* trouble) {
  const Trouble all = Everywhere(trouble);
  const auto usual = static_cast<int64_t>(options_.threads);
  const int64_t threads = all.threads > 0 ? static_cast<int64_t>(all.threads) : usual;
  Clock& clock = clocks_[rank];
  const int64_t begin_ns = clock.now_ns;
  Run(rank, static_cast<int64_t>(static_cast<double>(ns) * all.work) * usual / threads);
  const int64_t length_ns = clock.now_ns - begin_ns;
  clock.helpers_ns += length_ns * (threads - 1);
  const auto starved_ns = static_cast<int64_t>(static_cast<double>(length_ns) * all.starved);
  clock.starved_ns += starved_ns;
  clock.on_cpu_ns += starved_ns;
  clock.now_ns += starved_ns;
}

int64_t FakeJob::HelpersNs(size_t rank) const {
  const Clock& clock = clocks_[rank];
  const auto since_ns = static_cast<double>(clock.now_ns - kBeginNs);
  const auto background_ns = static_cast<int64_t>(since_ns * At(options_.background, rank));
  if (!options_.spin) return clock.helpers_ns + background_ns;
  const int64_t spin_ns = (clock.now_ns - kBeginNs) * (static_cast<int64_t>(options_.threads) - 1);
  return spin_ns - clock.starved_ns + background_ns;
}

void FakeJob::Operator(size_t rank, std::string_view name, int64_t ns, const Trouble* trouble,
                       NameId shape) {
  Clock& clock = clocks_[rank];
  const int64_t begin_ns = clock.now_ns;
  Compute(rank, Jitter(ns), trouble);
  if (trouble != nullptr) {
    clock.now_ns += trouble->throttled_ns + trouble->queued_ns;
    clock.run_queue_ns += trouble->throttled_ns + trouble->queued_ns;
    clock.throttled_ns += trouble->throttled_ns;
    clock.periods += trouble->throttled_ns > 0 ? 1 : 0;
    Sleep(rank, trouble->asleep_ns, 'S');
    clock.minor_faults += trouble->page_faults;
    Run(rank, trouble->page_faults * kFaultNs);
    Sleep(rank, trouble->stolen_ns, 'R');
    clock.stolen_ns += trouble->stolen_ns;  // it is counted when it is over
  }
  Span(rank, name, "PyTorch", begin_ns, 2, shape);
  Sample(rank);
}

// Or stands still in another `state`. With the samples that come due meanwhile.
void FakeJob::Sleep(size_t rank, int64_t ns, char state) {
  Clock& clock = clocks_[rank];
  const int64_t until_ns = clock.now_ns + ns;
  while (options_.samples && clock.due_ns > clock.now_ns && clock.due_ns < until_ns) {
    clock.now_ns = clock.due_ns;
    Sample(rank, state);
  }
  clock.now_ns = until_ns;
}

void FakeJob::Sample(size_t rank, char state) {
  Clock& clock = clocks_[rank];
  if (!options_.samples || clock.now_ns < clock.due_ns) return;
  // As the sampler does it: not in step with the job.
  clock.due_ns = clock.now_ns + kPeriodNs / 2 + static_cast<int64_t>(pauses_() % kPeriodNs);
  evidence::Evidence& evidence = evidence_[rank];
  const int64_t at_ns = clock.now_ns - 3 * kUs;  // in what it does
  evidence.thread_samples.push_back(
      {0, at_ns, at_ns + 2 * kUs, clock.on_cpu_ns, clock.run_queue_ns, static_cast<int32_t>(rank)});
  if (options_.states) {
    evidence.thread_samples.back().state = state;
    evidence.thread_samples.back().major_faults = clock.major_faults;
    evidence.thread_samples.back().minor_faults = clock.minor_faults;
    if (options_.clock_khz > 0 && state == 'R' && evidence.thread_samples.size() % 5 == 0) {
      const auto khz = static_cast<double>(options_.clock_khz) / clock.slower;
      evidence.thread_samples.back().clock_khz = static_cast<int64_t>(khz) + at_ns % kKhzJitter;
    }
  }
  evidence.group_samples.push_back({0, at_ns + 20 * kUs, at_ns + 22 * kUs, clock.now_ns / 100 / kMs,
                                    static_cast<int64_t>(clock.periods), clock.throttled_ns,
                                    70 * kMs, 100 * kMs});
  const size_t fewer = At(options_.trouble, rank).threads;
  const auto threads = static_cast<uint32_t>(fewer > 0 ? fewer : options_.threads);
  evidence.recorded_samples.push_back({0, at_ns, at_ns + 2 * kUs, clock.on_cpu_ns + HelpersNs(rank),
                                       -1, kThreads + threads + At(options_.more_threads, rank),
                                       clock.major_faults * kPageBytes});
  if (options_.steal) {  // each rank has a CPU to itself
    evidence.steal_samples.push_back({0, at_ns, at_ns + 2 * kUs, clock.on_cpu_ns, clock.stolen_ns});
  }
  evidence.memory_samples.push_back({0, at_ns, at_ns + kUs, clock.full_memory, 300'000'000});
  evidence.memory_samples.push_back({1, at_ns, at_ns + kUs, clock.full_memory});
  if (options_.helper_sampled) {
    evidence.thread_samples.push_back({1, at_ns, at_ns + 2 * kUs,
                                       clock.now_ns - kBeginNs - clock.starved_ns, clock.starved_ns,
                                       -1});
  }
  // Somebody runs on the same processor while the rank waits without being throttled.
  evidence.process_samples.push_back({1, at_ns, at_ns + 30 * kUs,
                                      clock.run_queue_ns - clock.throttled_ns,
                                      static_cast<int32_t>(rank)});
}

void FakeJob::Convolve(size_t rank, const Trouble* trouble) {
  const bool more = trouble != nullptr && trouble->more_work;
  const int64_t longer_ns = more ? 4 * kMs : 0;
  const char* const batch = more ? "mb40" : "mb32";
  if (options_.set.empty()) {
    const Trouble all = Everywhere(trouble);
    return Operator(
        rank, "aten::conv2d", 5 * kMs + longer_ns, &all,
        Name(absl::StrCat("%s=cpu,convolution,jit,,src:f32::blocked:a::f0,,,", batch, ";")));
  }
  const bool other = trouble != nullptr && !trouble->set.empty();
  const std::string& set = other ? trouble->set : options_.set;
  Clock& clock = clocks_[rank];
  const int64_t begin_ns = clock.now_ns;
  for (int reorders = other ? 2 : 1; reorders > 0; --reorders) {
    const int64_t reorder_ns = clock.now_ns;
    Run(rank, 100 * kUs + (other && reorders == 1 ? trouble->reorder_ns : 0));
    Span(rank, "reorder", kExecutes, reorder_ns, 3,
         Name(absl::StrCat("%s=cpu,reorder,jit:uni,undef,src:f32::blocked:abcd::f0 "
                           "dst:f32::blocked:",
                           set, "::f0,,,32x3;")));
  }
  const int64_t work_ns = clock.now_ns;
  Run(rank, Jitter(5 * kMs + longer_ns + (other ? trouble->set_ns : 0)));
  Span(rank, "convolution", kExecutes, work_ns, 3,
       Name(absl::StrCat("%s=cpu,convolution,jit:", set, ",forward,src:f32::blocked:", set,
                         "::f0,,,", batch, ";")));
  Span(rank, "aten::conv2d", "PyTorch", begin_ns, 2);
  Sample(rank);
}

void FakeJob::WorkUntilLaunch(size_t rank, const Trouble* trouble) {
  Clock& clock = clocks_[rank];
  if (trouble != nullptr && trouble->hole_ns > 0) {
    input_.ranks[rank].holes.push_back({clock.now_ns, clock.now_ns + trouble->hole_ns});
    clock.now_ns += trouble->hole_ns;
  }
  const int64_t load_ns = clock.now_ns;
  Run(rank, Jitter(kMs));
  if (trouble != nullptr) clock.now_ns += trouble->input_ns;
  Span(rank, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "PyTorch", load_ns, 0);
  const int64_t forward_ns = clock.now_ns;
  const Trouble all = Everywhere(trouble);
  Convolve(rank, trouble);
  Operator(rank, "aten::relu", kMs, &all);
  Span(rank, "DistributedDataParallel.forward", "PyTorch", forward_ns, 0);
  if (trouble != nullptr && trouble->garbage_ns > 0) {
    const int64_t begin_ns = clock.now_ns;
    Run(rank, trouble->garbage_ns);
    Span(rank, "garbage collection", "python", begin_ns, 0);
  }
  const int64_t own_ns = clock.now_ns;
  Run(rank, 200 * kUs + (trouble != nullptr ? trouble->host_ns : 0));
  own_code_[rank].push_back({own_ns, clock.now_ns});
  if (trouble != nullptr && trouble->blocked_ns > 0) {
    clock.major_faults += kFaultsAtOnce;
    clock.full_memory += trouble->full_memory;
    Sleep(rank, trouble->blocked_ns, 'D');
  }
  Operator(rank, "ConvolutionBackward0", 6 * kMs, trouble);
  Launch(rank, "allreduce");
}

void FakeJob::Launch(size_t rank, std::string_view collective) {
  const int64_t launch_ns = clocks_[rank].now_ns;
  Run(rank, 50 * kUs);
  Span(rank, absl::StrCat("c10d::", std::string(collective), "_"), "PyTorch", launch_ns, 0);
  input_.ranks[rank].collectives.push_back(
      {kGroup, collectives_, Name(collective), launch_ns, {}, launch_ns});
}

void FakeJob::Step(size_t step) {
  for (size_t rank = 0; rank < options_.ranks; ++rank) {
    const auto trouble = options_.trouble.find(rank);
    const bool now = trouble != options_.trouble.end() && step % options_.every == 0;
    WorkUntilLaunch(rank, now ? &trouble->second : nullptr);
  }
  Meet();
  for (size_t rank = 0; rank < options_.ranks; ++rank) {
    const int64_t begin_ns = clocks_[rank].now_ns;
    Operator(rank, "aten::add_", 300 * kUs, nullptr);
    Span(rank, "Optimizer.step#SGD.step", "PyTorch", begin_ns, 0);
  }
  const size_t every = options_.evaluates_every;
  if (every > 0 && step % every == every - 1) Evaluate();
}

void FakeJob::Evaluate() {
  Clock& clock = clocks_[0];
  const int64_t begin_ns = clock.now_ns;
  Run(0, options_.evaluates_ns);
  clock.helpers_ns += (clock.now_ns - begin_ns) * (options_.evaluates_threads - 1);
  Span(0, "aten::conv2d", "PyTorch", begin_ns, 0);
  Sample(0);
  for (size_t rank = 0; rank < options_.ranks; ++rank) Launch(rank, "barrier");
  Meet();
}

void FakeJob::Meet() {
  const size_t ranks = options_.ranks;
  int64_t last_ns = 0;
  int64_t first_ns = INT64_MAX;
  size_t last = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const int64_t entered_ns = input_.ranks[rank].collectives.back().entered_ns;
    first_ns = std::min(first_ns, entered_ns);
    if (entered_ns > last_ns) last = rank;
    last_ns = std::max(last_ns, entered_ns);
  }
  input_.arrivals.push_back(
      {kGroup, collectives_++, true, std::nullopt, last, last_ns - first_ns, Level::kProven});
  const int64_t left_ns = last_ns + 2 * kMs;
  for (size_t rank = 0; rank < ranks; ++rank) {
    Clock& clock = clocks_[rank];
    input_.ranks[rank].collectives.back().left_ns = left_ns;
    const int64_t released_ns = std::max(clock.now_ns, left_ns + 40 * kUs);
    wait_ns_[rank] += released_ns - clock.now_ns;
    Sleep(rank, released_ns - clock.now_ns, 'S');
  }
}

void FakeJob::SetClock(size_t rank, int64_t off_ns) {
  RankInput& input = input_.ranks[rank];
  input.threads[0].spans.Edit([off_ns](std::vector<TaskSpan>* spans) {
    for (TaskSpan& span : *spans) span.begin_ns += off_ns, span.end_ns += off_ns;
  });
  for (CollectiveEntry& entry : input.collectives) {
    entry.entered_ns += off_ns;
    *entry.left_ns += off_ns;
  }
  for (OwnInterval& hole : input.holes) hole.begin_ns += off_ns, hole.end_ns += off_ns;
  input.window = {input.window.begin_ns + off_ns, input.window.end_ns + off_ns};
  const auto shift = [&](auto& samples) {
    for (auto& sample : samples) sample.at_ns += off_ns, sample.until_ns += off_ns;
  };
  evidence::Evidence& evidence = evidence_[rank];
  shift(evidence.thread_samples);
  shift(evidence.group_samples);
  shift(evidence.process_samples);
  shift(evidence.recorded_samples);
  shift(evidence.steal_samples);
}

FakeJob::FakeJob(FakeJobOptions options) : options_(std::move(options)), random_(options_.seed) {
  Name("");
  const size_t ranks = options_.ranks;
  clocks_.resize(ranks);
  wait_ns_.resize(ranks, 0);
  own_code_.resize(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    RankInput& input = input_.ranks.emplace_back();
    input.rank = static_cast<int32_t>(rank);
    input.node = "node-" + std::to_string(rank);
    input.pid = 1000 + static_cast<int32_t>(rank);
    input.command = "train.py";
    input.threads.push_back({kDriverTid, {}});
    evidence::Evidence& evidence = evidence_.emplace_back();
    evidence.processes = {
        {evidence::Relation::kRecorded, input.pid, 1, 5, 1, input.pid, 0, "python", {0}},
        {evidence::Relation::kOther, 77, 1, 6, 0, 0, 0, "stress", {}}};
    evidence.groups = {{1, "/job/rank" + std::to_string(rank)}};
    evidence.memory_groups = {{2, "/job"}, {2, "/"}};
    evidence.processes[0].memory_groups = {0, 1};
    evidence.threads = {{0, kDriverTid, kDriverTid, "python"}};
    if (options_.helper_sampled) {
      evidence.threads.push_back({0, kDriverTid + 1, kDriverTid + 1, "python"});
    }
    evidence.rates = {{0, kPeriodNs, ""}};
    evidence.page_ns = options_.page_ns;
    evidence.ended = true;
    if (options_.samples) {
      input.evidence = &evidence;
      input.evidence_process = 0;
    }
  }
  // The optimizer's step before the first: where steps begin.
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (options_.trouble.contains(rank)) clocks_[rank].slower = options_.trouble[rank].slower;
    const int64_t begin_ns = clocks_[rank].now_ns;
    Operator(rank, "aten::add_", 300 * kUs, nullptr);
    Span(rank, "Optimizer.step#SGD.step", "PyTorch", begin_ns, 0);
  }
  for (size_t step = 0; step < options_.steps; ++step) Step(step);
  for (size_t rank = 0; rank < ranks; ++rank) {
    RankInput& input = input_.ranks[rank];
    std::vector<TaskSpan> spans = input.threads[0].spans.Unpack();
    std::stable_sort(spans.begin(), spans.end(), [](const TaskSpan& a, const TaskSpan& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
    });
    if (options_.marks) {
      TaskSpan mark;
      mark.begin_ns = spans.front().begin_ns;
      mark.end_ns = spans.back().end_ns;
      mark.name = Name("training");
      mark.category = Name("mine");
      spans.insert(spans.begin(), mark);
    }
    input.window = {spans.front().begin_ns, spans.back().end_ns};
    input.threads[0].spans = TaskSpans(spans);
    if (rank < options_.clock_ns.size()) SetClock(rank, options_.clock_ns[rank]);
  }
}

}  // namespace syncline::analysis::why
