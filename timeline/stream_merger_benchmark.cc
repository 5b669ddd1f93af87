// SPDX-License-Identifier: Apache-2.0
// How fast the events of K streams are put into one order. The streams interleave at random, which
// is the worst case. Nothing is read or decoded.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
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

// What others do, as well as it can be done: a loser tree (Knuth, TAOCP vol. 3, 5.4.1) without a
// branch for who wins, over the bare records. To be beaten.
void BM_LoserTree(benchmark::State& state) {
  const auto streams = MakeStreams(static_cast<size_t>(state.range(0)));
  const size_t leaves = std::bit_ceil(streams.size());
  constexpr int kStreamBits = 20;
  constexpr uint64_t kOver = std::numeric_limits<uint64_t>::max();
  struct Stream {
    const EventRecord* next = nullptr;
    const EventRecord* end = nullptr;
  };
  for (auto _ : state) {
    std::vector<Stream> inputs(leaves);
    std::vector<uint64_t> losers(leaves, kOver);
    const auto key = [&](size_t stream) {
      const Stream& input = inputs[stream];
      if (input.next == input.end) return kOver;
      return static_cast<uint64_t>(input.next->time_ns) << kStreamBits | stream;
    };
    std::vector<uint64_t> winners(2 * leaves);
    for (size_t i = 0; i < leaves; ++i) {
      if (i < streams.size()) {
        inputs[i] = {streams[i].data(), streams[i].data() + streams[i].size()};
      }
      winners[leaves + i] = key(i);
    }
    for (size_t node = leaves - 1; node > 0; --node) {
      losers[node] = std::max(winners[2 * node], winners[2 * node + 1]);
      winners[node] = std::min(winners[2 * node], winners[2 * node + 1]);
    }
    int64_t last_ns = 0;
    for (uint64_t winner = winners[1]; winner != kOver;) {
      const size_t stream = winner & ((uint64_t{1} << kStreamBits) - 1);
      const EventRecord& record = *inputs[stream].next++;
      if (record.time_ns < last_ns) state.SkipWithError("out of order");
      last_ns = record.time_ns;
      __builtin_prefetch(&record + 4);
      winner = key(stream);
      for (size_t node = (leaves + stream) / 2; node > 0; node /= 2) {
        const uint64_t other = losers[node];
        losers[node] = std::max(winner, other);
        winner = std::min(winner, other);
      }
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kEvents));
}
BENCHMARK(BM_LoserTree)
    ->ArgName("streams")
    ->Arg(2)
    ->Arg(16)
    ->Arg(128)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);

// The smaller batches are what the reader of CTF gives for so many streams.
BENCHMARK(BM_Order)
    ->ArgNames({"streams", "batch"})
    ->ArgsProduct({{1, 2, 16, 128, 1024}, {1024}})
    ->Args({128, 256})
    ->Args({1024, 32})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace syncline::timeline
