// How fast the events of K streams are put into one order. The streams interleave at random, which
// is the worst case. Nothing is read or decoded.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "timeline/stream_merger.h"

namespace syncline::timeline {
namespace {

constexpr size_t kEvents = 1 << 22;

class ReadyCursor final : public EventCursor {
 public:
  // The first batch is shorter than the others: streams do not run dry together.
  ReadyCursor(std::span<const EventRecord> records, size_t first_batch, size_t batch)
      : records_(records), next_batch_(first_batch), batch_(batch) {}
  const StreamInfo& stream() const override { return info_; }
  absl::StatusOr<std::span<const EventRecord>> NextBatch() override {
    const auto batch =
        records_.first(std::min(std::exchange(next_batch_, batch_), records_.size()));
    records_ = records_.subspan(batch.size());
    return batch;
  }
  absl::StatusOr<Stretch> NextBefore(int64_t until_ns) override {
    size_t count = 0;
    const size_t most = std::min(next_batch_, records_.size());
    while (count < most && records_[count].time_ns < until_ns) ++count;
    next_batch_ = batch_;
    Stretch stretch{records_.first(count)};
    records_ = records_.subspan(count);
    if (!records_.empty()) stretch.next_ns = records_.front().time_ns;
    return stretch;
  }
  void Prefetch() const override {
    for (size_t i = 0; i < 16; i += 2) __builtin_prefetch(records_.data() + i);
  }
  bool Decode(const EventRecord&, std::vector<FieldValue>*) override { return false; }
  std::span<const Loss> losses() const override { return {}; }

 private:
  StreamInfo info_;
  std::span<const EventRecord> records_;
  size_t next_batch_;
  size_t batch_;
};

std::vector<std::vector<EventRecord>> MakeStreams(size_t count) {
  std::vector<std::vector<EventRecord>> streams(count);
  uint64_t random = 1;
  for (auto& stream : streams) {
    int64_t time_ns = 0;
    for (size_t i = 0; i < kEvents / count; ++i) {
      random = random * 6364136223846793005 + 1442695040888963407;
      time_ns += static_cast<int64_t>((random >> 33) % (500 * count));
      stream.push_back({time_ns, nullptr, nullptr, 0});
    }
  }
  return streams;
}

void BM_Order(benchmark::State& state) {
  const auto streams = MakeStreams(static_cast<size_t>(state.range(0)));
  const auto placement = ShiftPlacement({}, 1000);
  const auto batch = static_cast<size_t>(state.range(1));
  for (auto _ : state) {
    StreamMerger merger;
    for (const auto& stream : streams) {
      const size_t first_batch = 1 + merger.size() * 389 % batch;
      merger.Add(std::make_unique<ReadyCursor>(stream, first_batch, batch), placement.get());
    }
    int64_t last_ns = 0;
    for (auto head = merger.Next(); *head != nullptr; head = merger.Next()) {
      if ((*head)->time.ns < last_ns) state.SkipWithError("out of order");
      last_ns = (*head)->time.ns;
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kEvents));
}
// The smaller batches are what the reader of CTF gives for so many streams.
BENCHMARK(BM_Order)
    ->ArgNames({"streams", "batch"})
    ->ArgsProduct({{1, 2, 16, 128, 1024}, {1024}})
    ->Args({128, 256})
    ->Args({1024, 32})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace syncline::timeline
