// ctf_scan TRACE: decodes every field of every event, in any order, on one thread, and prints
// how many events there were, the sum of all fields, and how long it took
// (the rate is per second of processor time, which neighbours disturb less).
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <ctime>
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
    sum_ = std::accumulate(numbers.begin(), numbers.end(), sum_);
  }
  void OnTexts(const syncline::FieldClass&, std::span<const std::string_view> texts) override {
    for (const std::string_view text : texts) sum_ += text.size();
  }
  void OnArrays(const syncline::FieldClass&, std::span<const uint32_t>,
                std::span<const uint64_t> elements) override {
    sum_ = std::accumulate(elements.begin(), elements.end(), sum_);
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

absl::StatusOr<Found> Scan(syncline::TraceReader& reader) {
  Found found;
  Summer summer;
  std::vector<syncline::FieldValue> values;
  const auto losses = reader.Scan(
      [&](syncline::EventCursor& cursor, std::span<const syncline::EventRecord> records) {
        found.events += records.size();
        if (cursor.DecodeColumns(records, &summer)) return absl::OkStatus();
        for (const syncline::EventRecord& record : records) {
          cursor.Decode(record, &values);
          summer.Add(values);
        }
        return absl::OkStatus();
      });
  if (!losses.ok()) return losses.status();
  found.sum = summer.sum();
  found.losses = losses->size();
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s TRACE\n", argv[0]);
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  auto reader = syncline::ctf::OpenTrace(argv[1]);
  const auto found = reader.ok() ? Scan(**reader) : absl::StatusOr<Found>(reader.status());
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
