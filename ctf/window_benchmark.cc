// SPDX-License-Identifier: Apache-2.0
// One second cut out of traces of 1 to 64 minutes: from opening the directory to the last event of
// the second. With its index the time hardly depends on the length of the trace; without, every
// packet's header is read. Counters: events found, packets in the trace.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "ctf/generator.h"
#include "ctf/reader.h"

namespace syncline::ctf {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

// Traces of 4 streams with 2,000 events a second each, in packets of 4 KiB; removed at the end.
class Traces {
 public:
  ~Traces() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  const std::filesystem::path& Get(int64_t minutes, bool with_index) {
    std::filesystem::path& path = made_[{minutes, with_index}];
    if (!path.empty()) return path;
    path = root_ / (std::to_string(minutes) + (with_index ? "i" : ""));
    const auto written =
        GenerateTrace(path, {.streams = 4,
                             .events_per_stream = static_cast<uint64_t>(minutes * 60 * 2000),
                             .packet_bytes = 4096,
                             .gap_ns_mean = 500'000,
                             .with_index = with_index});
    if (!written.ok()) std::abort();
    return path;
  }

 private:
  std::filesystem::path root_ = std::filesystem::temp_directory_path() /
                                ("syncline_window_benchmark_" + std::to_string(::getpid()));
  std::map<std::pair<int64_t, bool>, std::filesystem::path> made_;
};

void BM_OneSecond(benchmark::State& state) {
  static Traces traces;
  const std::filesystem::path& trace = traces.Get(state.range(0), state.range(1) != 0);
  // In the middle.
  const int64_t begin = kSecondNs + state.range(0) * 30 * kSecondNs;
  uint64_t events = 0;
  uint64_t packets = 0;
  for (auto _ : state) {
    events = packets = 0;
    const auto reader = OpenTrace(trace).value();
    for (const StreamInfo& stream : reader->streams()) {
      packets += stream.packets;
      const auto cursor = reader->Open(stream.index, begin, begin + kSecondNs).value();
      for (auto batch = *cursor->NextBatch(); !batch.empty(); batch = *cursor->NextBatch()) {
        events += batch.size();
      }
    }
    if (events < 7000) state.SkipWithError("events of the second are missing");
  }
  state.counters["events"] = static_cast<double>(events);
  state.counters["packets"] = static_cast<double>(packets);
}
BENCHMARK(BM_OneSecond)
    ->ArgNames({"minutes", "index"})
    ->ArgsProduct({{1, 4, 16, 64}, {1, 0}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace syncline::ctf
