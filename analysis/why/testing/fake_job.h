// SPDX-License-Identifier: Apache-2.0
// A made-up data-parallel job, for tests: ranks of which each fetches a batch, runs a forward and a
// backward pass, launches all-reduces, waits for the last of them and steps its optimizer. What
// disturbs a rank is put in on purpose, so that the truth is known. Deterministic.
#ifndef SYNCLINE_ANALYSIS_WHY_TESTING_FAKE_JOB_H_
#define SYNCLINE_ANALYSIS_WHY_TESTING_FAKE_JOB_H_

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/why/model.h"

namespace syncline::analysis::why {

// What happens to one rank in each step; ns.
struct Trouble {
  int64_t throttled_ns = 0;  // stands still in an operator, by its group's quota
  int64_t queued_ns = 0;     // stands still in an operator, since somebody else runs
  int64_t input_ns = 0;      // the batch takes longer
  int64_t garbage_ns = 0;    // Python collects
  int64_t asleep_ns = 0;     // an operator sleeps: no counter shows it
  int64_t blocked_ns = 0;    // the program's own code is blocked in the kernel
  int64_t full_memory = 0;   // with it: how often the memory of the rank's group is full
  int64_t page_faults = 0;   // its operator gets so many pages of memory anew
  int64_t stolen_ns = 0;     // a hypervisor takes the rank's CPU from it, in an operator
  bool more_work = false;    // one operator of another shape, that takes 4 ms longer
  // With FakeJobOptions::set: the same convolution by another instruction set, which takes so much
  // longer and reorders more.
  std::string set;
  int64_t set_ns = 0;
  int64_t reorder_ns = 0;  // with `set`: a reorder takes so much longer
  size_t threads = 0;      // computes on so many; 0: as the others do
  int64_t hole_ns = 0;     // at the step's begin: nothing is known of it
  double work = 1;         // its operators do so much more, of which their shapes say nothing
  double slower = 1;       // its processor, in all that it does
  int64_t host_ns = 0;     // the program's own code takes longer
  // With FakeJobOptions::spin: of what it computes, so much longer one of its threads waits for a
  // CPU, and the others for that thread.
  double starved = 0;
};

struct FakeJobOptions {
  size_t ranks = 2;
  size_t steps = 80;
  uint64_t seed = 1;
  std::map<size_t, Trouble> trouble;  // by rank
  size_t every = 1;                   // the trouble comes in each so many-th step
  bool samples = true;
  bool states = true;             // samples also say in which state the driver is
  size_t threads = 1;             // on which operators run
  std::string set;                // "avx512_core": oneDNN's, of a primitive in the convolution
  bool marks = false;             // the program marks its steps itself
  std::vector<int64_t> clock_ns;  // of each rank's clock: its difference from the truth
  int64_t page_ns = 0;            // what nodes say that a page costs; 0: nothing. It is 1 µs
  bool spin = false;              // threads beside the driver wait for work actively
  bool helper_sampled = false;    // one of them, by itself
  bool steal = true;              // nodes say what a hypervisor took
  int64_t clock_khz = 0;          // of processors that are not slower; 0: nodes do not say it
  // By rank: threads that its process has besides, and how many CPUs these keep busy.
  std::map<size_t, uint32_t> more_threads;
  std::map<size_t, double> background;
  // After each so many-th step rank 0 evaluates so long, on so many threads, and all meet in a
  // barrier behind it. 0: never.
  size_t evaluates_every = 0;
  int64_t evaluates_ns = 0;
  int64_t evaluates_threads = 1;
};

class FakeJob {
 public:
  explicit FakeJob(FakeJobOptions options);

  // `evidence` lives as long as this.
  JobInput& input() { return input_; }
  // Of a rank, all steps: what was put in.
  int64_t wait_ns(size_t rank) const { return wait_ns_[rank]; }
  // Of a rank: when the program's own code ran.
  const std::vector<OwnInterval>& own_code(size_t rank) const { return own_code_[rank]; }

 private:
  struct Clock {  // of a rank: the truth, and what its counters show
    int64_t now_ns = 1'000'000'000;
    int64_t run_queue_ns = 0;
    int64_t throttled_ns = 0;
    int64_t on_cpu_ns = 0;
    int64_t helpers_ns = 0;  // processor time of other threads
    int64_t starved_ns = 0;
    double slower = 1;
    int64_t due_ns = 1'000'000'000;  // the next sample
    uint64_t periods = 0;
    int64_t major_faults = 0;
    int64_t minor_faults = 0;
    int64_t full_memory = 0;
    int64_t stolen_ns = 0;
  };

  NameId Name(std::string_view text);
  void Span(size_t rank, std::string_view name, std::string_view category, int64_t begin_ns,
            uint16_t depth, NameId shape = 0);
  void Run(size_t rank, int64_t ns);
  // What takes so long on FakeJobOptions::threads.
  void Compute(size_t rank, int64_t ns, const Trouble* trouble);
  void Operator(size_t rank, std::string_view name, int64_t ns, const Trouble* trouble,
                NameId shape = 0);
  void Convolve(size_t rank, const Trouble* trouble);
  void Step(size_t step);
  void Evaluate();
  void WorkUntilLaunch(size_t rank, const Trouble* trouble);
  void Launch(size_t rank, std::string_view collective);
  void Meet();  // all wait for the last one
  void Sleep(size_t rank, int64_t ns, char state);
  void Sample(size_t rank, char state = 'R');
  int64_t HelpersNs(size_t rank) const;        // processor time of all threads but the driver
  void SetClock(size_t rank, int64_t off_ns);  // of what is made of it
  int64_t Jitter(int64_t ns);

  FakeJobOptions options_;
  std::mt19937_64 random_;
  std::mt19937_64 pauses_{7};  // between samples
  std::map<std::string, NameId, std::less<>> names_;
  JobInput input_;
  std::deque<evidence::Evidence> evidence_;
  std::vector<Clock> clocks_;
  std::vector<int64_t> wait_ns_;
  std::vector<std::vector<OwnInterval>> own_code_;
  uint64_t collectives_ = 0;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_TESTING_FAKE_JOB_H_
