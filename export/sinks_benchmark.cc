// SPDX-License-Identifier: Apache-2.0
// How fast spans are written, and how many bytes an event takes: a begin and an end are two events.
// The spans are those of a job: eight threads, steps with operators with kernels inside, two
// hundred names, durations that spread over three decades. Nothing is read or built; the bytes go
// nowhere, except for Parquet's, which a child writes into files.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "export/chrome/chrome_sink.h"
#include "export/parquet/parquet_sink.h"
#include "export/perfetto/perfetto_sink.h"
#include "export/vtune/vtune_sink.h"
#include "timeline/testing/two_node_job.h"

namespace syncline {
namespace {

constexpr uint32_t kThreads = 8;
constexpr uint32_t kFirstThread = 2;  // its track
constexpr timeline::TextId kNames = 200;
constexpr timeline::TextId kCategory = kNames + 1;

// What the builder would push, with nothing left to compute.
class Job {
 public:
  explicit Job(size_t spans) {
    for (size_t i = 0; spans_ < spans; ++i) Step(static_cast<uint32_t>(i % kThreads));
  }
  size_t events() const { return pushed_.size(); }
  size_t spans() const { return spans_; }

  void PushTo(timeline::TimelineSink* sink) const {
    for (timeline::TextId id = 1; id <= kNames; ++id) {
      sink->OnText(id, absl::StrCat("gradients/layer_", id, "/Conv2DBackpropFilter"));
    }
    sink->OnText(kCategory, "dnnl::primitive::execute");
    Track(0, timeline::kNoTrack, timeline::TrackKind::kNode, sink);
    Track(1, 0, timeline::TrackKind::kProcess, sink);
    for (uint32_t i = 0; i < kThreads; ++i) {
      Track(kFirstThread + i, 1, timeline::TrackKind::kThread, sink);
    }
    for (const auto& [begins, index] : pushed_) {
      begins ? sink->OnSpanBegin(all_[index]) : sink->OnSpanEnd(all_[index]);
    }
  }

 private:
  static void Track(uint32_t id, uint32_t parent, timeline::TrackKind kind,
                    timeline::TimelineSink* sink) {
    timeline::Track track;
    track.id = id;
    track.parent = parent;
    track.kind = kind;
    track.name = absl::StrCat("track ", id);
    track.process.pid = 7;
    track.tid = static_cast<int32_t>(100 + id);
    track.facts = {{"rank", "0"}};
    sink->OnTrack(track);
  }
  int64_t Duration(int64_t ns) {
    random_ = random_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<int64_t>(static_cast<double>(ns) *
                                std::exp2(static_cast<double>(random_ >> 40 & 0xffff) / 9000));
  }
  void Begin(uint32_t thread, uint16_t depth) {
    timeline::Span span;
    span.track = kFirstThread + thread;
    span.name = static_cast<timeline::TextId>(1 + (random_ >> 33) % kNames);
    span.category = kCategory;
    span.depth = depth;
    span.begin = {now_ns_[thread]};
    span.node_begin = {{0, ClockKind::kRaw},
                       timeline::testing::kJobZeroNs + now_ns_[thread] % 200'000'000};
    open_.push_back(all_.size());
    pushed_.emplace_back(true, all_.size());
    all_.push_back(span);
    ++spans_;
  }
  void End(uint32_t thread) {
    timeline::Span& span = all_[open_.back()];
    span.end = {now_ns_[thread]};
    span.node_end = {span.node_begin.clock,
                     timeline::testing::kJobZeroNs + span.end.ns % 200'000'000};
    span.self_ns = span.end.ns - span.begin.ns;
    pushed_.emplace_back(false, open_.back());
    open_.pop_back();
  }
  void Step(uint32_t thread) {
    Begin(thread, 0);
    for (int op = 0; op < 20; ++op) {
      now_ns_[thread] += Duration(100);
      Begin(thread, 1);
      for (int kernel = 0; kernel < 2; ++kernel) {
        now_ns_[thread] += Duration(50);
        Begin(thread, 2);
        now_ns_[thread] += Duration(1000);
        End(thread);
      }
      now_ns_[thread] += Duration(50);
      End(thread);
    }
    now_ns_[thread] += Duration(200);
    End(thread);
  }

  size_t spans_ = 0;
  uint64_t random_ = 1;
  std::vector<int64_t> now_ns_ = std::vector<int64_t>(kThreads, 0);
  std::vector<size_t> open_;
  std::vector<timeline::Span> all_;
  std::vector<std::pair<bool, size_t>> pushed_;  // begins, index in all_
};

const Job& TheJob() {
  static const Job job(500'000);
  return job;
}

class Nowhere final : public std::streambuf {
 public:
  uint64_t bytes = 0;

 protected:
  std::streamsize xsputn(const char*, std::streamsize n) override {
    bytes += static_cast<uint64_t>(n);
    return n;
  }
  int overflow(int c) override {
    ++bytes;
    return c;
  }
};

void Report(benchmark::State& state, uint64_t bytes) {
  const auto events = static_cast<double>(TheJob().events());
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(TheJob().events()));
  state.counters["bytes/event"] = static_cast<double>(bytes) / events;
}

uint64_t BytesBelow(const std::filesystem::path& directory) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

void BM_Perfetto(benchmark::State& state) {
  uint64_t bytes = 0;
  TheJob();
  for (auto _ : state) {
    Nowhere nowhere;
    std::ostream out(&nowhere);
    perfetto::PerfettoSink sink(&out, {.epoch_unix_ns = 1'700'000'000'000'000'000});
    TheJob().PushTo(&sink);
    if (!sink.Finish().ok()) state.SkipWithError("cannot write");
    bytes = nowhere.bytes;
  }
  Report(state, bytes);
}
BENCHMARK(BM_Perfetto)->Unit(benchmark::kMillisecond);

// Below the temporary directory, which should be memory.
template <class Write>
void Files(benchmark::State& state, Write write) {
  std::string name = (std::filesystem::temp_directory_path() / "syncline-bench-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) return state.SkipWithError("no temporary directory");
  uint64_t bytes = 0;
  TheJob();
  for (auto _ : state) {
    const absl::Status written = write(name);
    if (!written.ok()) state.SkipWithError(std::string(written.message()).c_str());
    state.PauseTiming();
    bytes = BytesBelow(name);
    std::filesystem::remove_all(name);
    state.ResumeTiming();
  }
  Report(state, bytes);
}

void BM_Chrome(benchmark::State& state) {
  Files(state, [](const std::string& directory) {
    chrome::ChromeSink sink({.directory = directory, .epoch_unix_ns = 1'700'000'000'000'000'000});
    TheJob().PushTo(&sink);
    return sink.Finish();
  });
}
BENCHMARK(BM_Chrome)->Unit(benchmark::kMillisecond);

void BM_Vtune(benchmark::State& state) {
  Files(state, [](const std::string& directory) {
    vtune::VtuneSink sink(directory, {{"n", "h", vtune::Node::Clock::kMonotonicRaw,
                                       [](TimelineTime time) { return time.ns; }}});
    TheJob().PushTo(&sink);
    return sink.Finish();
  });
}
BENCHMARK(BM_Vtune)->Unit(benchmark::kMillisecond);

// Of this process and of those it has waited for.
double ProcessorSeconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
      seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    }
  }
  return seconds;
}

// Argument: threads that write. Starting Python is left out of the time, but not of the processor
// time, which is also the child's. SYNCLINE_KEEP_PARQUET names a directory for what was written.
void BM_Parquet(benchmark::State& state) {
  constexpr int64_t kPushes = 16;
  const char* const python = std::getenv("SYNCLINE_PYTHON");
  const char* const keep = std::getenv("SYNCLINE_KEEP_PARQUET");
  double processor_s = 0;
  const clocksync::ClockModel model = timeline::testing::TwoNodeModel();
  Files(state, [&](const std::string& directory) {
    state.PauseTiming();
    auto writer = parquet::TableWriter::Start(
        {directory, {python != nullptr ? python : "python3"}, static_cast<int>(state.range(0))});
    state.ResumeTiming();
    if (!writer.ok()) return writer.status();
    parquet::Options options;
    options.nodes = {"n"};
    options.model = &model;
    parquet::ParquetSink sink(std::move(options), writer->get());
    const double begin_s = ProcessorSeconds();
    for (int64_t i = 0; i < kPushes; ++i) TheJob().PushTo(&sink);
    absl::Status status = sink.Finish();
    if (status.ok()) status = (*writer)->Finish();
    processor_s += ProcessorSeconds() - begin_s;
    if (keep != nullptr) {
      std::filesystem::remove_all(keep);
      std::filesystem::copy(directory, keep, std::filesystem::copy_options::recursive);
    }
    return status;
  });
  const int64_t rows = kPushes * state.iterations() * static_cast<int64_t>(TheJob().spans());
  state.SetItemsProcessed(rows);
  state.counters["rows/cpu_s"] = static_cast<double>(rows) / processor_s;
  state.counters["bytes/event"] = state.counters["bytes/event"] / kPushes;
}
BENCHMARK(BM_Parquet)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace syncline
