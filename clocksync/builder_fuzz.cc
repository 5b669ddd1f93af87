// SPDX-License-Identifier: Apache-2.0
// Whatever samples and tuples say, building a model neither crashes nor hangs, and what comes out
// is a model: lo <= est <= hi, and its file reads back.
//
// Input: records of 5 bytes (what, and a number scaled over all magnitudes) that make up samples of
// two edges and tuples of two nodes.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "clocksync/builder.h"

namespace {

// Some 100 samples, enough for every kind of break and loop.
constexpr size_t kInputBytesMax = 1024;
// Writing the file and reading it takes as long as building and asking the model.
constexpr size_t kReadBackOneIn = 4;

class Numbers {
 public:
  Numbers(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ >= size_; }
  uint8_t Byte() { return at_ < size_ ? data_[at_++] : 0; }
  // Near `base`, or anything.
  int64_t Near(int64_t base) {
    const int shift = Byte() % 62;
    const auto value = static_cast<int64_t>(uint64_t{Byte()} << 8 | Byte());
    return static_cast<int64_t>(static_cast<uint64_t>(base) +
                                (static_cast<uint64_t>(value - 32768) << shift >> 8));
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace cs = syncline::clocksync;
  using syncline::ClockKind;
  if (size > kInputBytesMax) return 0;
  Numbers numbers(data, size);
  cs::BuildInput input{.nodes = {"a", "b"}};
  input.edges = {{.local = "a", .remote = "b"},
                 {.local = "coordinator", .remote = "b"},
                 {.local = "coordinator", .remote = "a"}};
  input.hosts = {{.node = "a"}, {.node = "b"}};
  int64_t now = 1'000'000'000;
  while (!numbers.empty()) {
    const uint8_t what = numbers.Byte();
    now = numbers.Near(now + 1'000'000);
    if (what % 8 == 7) {
      cs::ClockTuple tuple{now,
                           numbers.Near(now),
                           numbers.Near(now),
                           numbers.Near(now),
                           now,
                           what / 16 * 65536,
                           10'000,
                           0};
      tuple.raw_after_ns = numbers.Near(now);
      input.hosts[what / 8 % 2].tuples.push_back(tuple);
    } else {
      input.edges[what % 3].samples.push_back(
          {now, numbers.Near(now), numbers.Near(now), numbers.Near(now), cs::StampSource::kGrpc});
    }
  }
  const auto result =
      cs::BuildModel(input, {.reference = "a", .zero_reference_raw_ns = now, .audit = true});
  if (!result.ok()) return 0;
  for (int64_t t : {INT64_MIN, int64_t{0}, now, INT64_MAX}) {
    for (ClockKind kind : {ClockKind::kRaw, ClockKind::kMonotonic, ClockKind::kRealtime}) {
      const auto at = result->model.Locate({{1, kind}, t});
      if (at.lo > at.est || at.est > at.hi) std::abort();
      const auto d = result->model.Difference({{0, kind}, now}, {{1, kind}, t});
      if (d.lo_ns > d.est_ns || d.est_ns > d.hi_ns) std::abort();
    }
  }
  if (size % kReadBackOneIn != 0) return 0;
  const auto again = cs::ClockModel::FromJson(result->model.ToJson());
  if (!again.ok()) {
    std::fprintf(stderr, "%s\n", again.status().ToString().c_str());
    std::abort();
  }
  return 0;
}
