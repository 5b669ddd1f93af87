// ctf_scan TRACE: decodes every field of every event, stream by stream, on one thread, and prints
// how many events there were, the sum of all fields, and how long it took
// (the rate is per second of processor time, which neighbours disturb less).
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "ctf/reader.h"

namespace {

struct Found {
  uint64_t events = 0;
  uint64_t sum = 0;
  size_t losses = 0;
};

absl::StatusOr<Found> Scan(syncline::TraceReader& reader) {
  Found found;
  std::vector<syncline::FieldValue> values;
  for (const syncline::StreamInfo& stream : reader.streams()) {
    auto cursor = reader.Open(stream.index);
    if (!cursor.ok()) return cursor.status();
    for (;;) {
      auto batch = (*cursor)->NextBatch();
      if (!batch.ok()) return batch.status();
      if (batch->empty()) break;
      found.events += batch->size();
      for (const syncline::EventRecord& record : *batch) {
        (*cursor)->Decode(record, &values);
        for (const syncline::FieldValue& value : values) found.sum += value.u + value.text.size();
      }
    }
    found.losses += (*cursor)->losses().size();
  }
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
