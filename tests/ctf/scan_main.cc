// SPDX-License-Identifier: Apache-2.0
// ctf_scan TRACE [THREADS]: decodes every field of every event, in any order, on one thread or so
// many, and prints how many events there were, the sum of all fields, and how long it took
// (the rate is per second of processor time, which neighbours disturb less; of threads together).
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "ctf/reader.h"

namespace {

struct Found {
  uint64_t events = 0;
  uint64_t sum = 0;
  size_t losses = 0;
};

class Summer : public syncline::ColumnSink {
 public:
  void OnNumbers(const syncline::FieldClass&, std::span<const uint64_t> numbers) override {
    sum_ = std::reduce(numbers.begin(), numbers.end(), sum_);
  }
  void OnTexts(const syncline::FieldClass&, std::span<const std::string_view> texts) override {
    for (const std::string_view text : texts) sum_ += text.size();
  }
  void OnArrays(const syncline::FieldClass&, std::span<const uint32_t>,
                std::span<const uint64_t> elements) override {
    sum_ = std::reduce(elements.begin(), elements.end(), sum_);
  }
  void OnShared(const syncline::FieldValue& value, size_t events) override {
    sum_ += events * (value.u + value.text.size());
  }

  void Add(std::span<const syncline::FieldValue> values) {
    for (const syncline::FieldValue& value : values) sum_ += value.u + value.text.size();
  }
  uint64_t sum() const { return sum_; }

 private:
  uint64_t sum_ = 0;
};

// What one thread finds.
class Worker {
 public:
  absl::Status operator()(syncline::EventCursor& cursor,
                          std::span<const syncline::EventRecord> records) {
    events_ += records.size();
    if (cursor.DecodeColumns(records, &summer_)) return absl::OkStatus();
    for (const syncline::EventRecord& record : records) {
      cursor.Decode(record, &values_);
      summer_.Add(values_);
    }
    return absl::OkStatus();
  }
  void AddTo(Found* found) const {
    found->events += events_;
    found->sum += summer_.sum();
  }

 private:
  uint64_t events_ = 0;
  Summer summer_;
  std::vector<syncline::FieldValue> values_;
};

absl::StatusOr<Found> Scan(syncline::TraceReader& reader, size_t threads) {
  std::vector<std::unique_ptr<Worker>> workers;  // apart, or they would share cache lines
  for (size_t i = 0; i < threads; ++i) workers.push_back(std::make_unique<Worker>());
  using Callable =
      std::function<absl::Status(syncline::EventCursor&, std::span<const syncline::EventRecord>)>;
  std::vector<Callable> callables;
  for (const auto& worker : workers) callables.emplace_back(std::ref(*worker));
  const std::vector<syncline::TraceReader::Visit> visits(callables.begin(), callables.end());
  const auto losses = reader.ScanShared(visits);
  if (!losses.ok()) return losses.status();
  Found found;
  for (const auto& worker : workers) worker->AddTo(&found);
  found.losses = losses->size();
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  const long threads = argc == 3 ? std::strtol(argv[2], nullptr, 10) : 1;
  if (argc < 2 || argc > 3 || threads < 1 || threads > 1024) {
    std::fprintf(stderr, "usage: %s TRACE [THREADS]\n", argv[0]);
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  auto reader = syncline::ctf::OpenTrace(argv[1]);
  const auto found = reader.ok() ? Scan(**reader, static_cast<size_t>(threads))
                                 : absl::StatusOr<Found>(reader.status());
  if (!found.ok()) {
    std::fprintf(stderr, "%s\n", std::string(found.status().message()).c_str());
    return 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double cpu = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  std::printf("events %" PRIu64 " sum %" PRIu64 " losses %zu seconds %.3f cpu %.3f rate %.1f M/s\n",
              found->events, found->sum, found->losses, took.count(), cpu,
              static_cast<double>(found->events) / cpu / 1e6);
  return found->losses == 0 ? 0 : 3;
}
