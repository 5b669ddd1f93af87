// SPDX-License-Identifier: Apache-2.0
// How fast a profile is read, beside its JSON parser alone on the same bytes, which is the floor.
//
// The profile is made up as Kineto lays it out (330 bytes an event), or is the file that
// SYNCLINE_BENCHMARK_PROFILE names, unpacked.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kineto/trace.h"

namespace syncline::kineto {
namespace {

constexpr int kOperators = 40'000;  // each with a launch, a kernel and two ends of an arrow

// The parser's events, thrown away.
class Nothing final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }
};

std::string MadeUp() {
  std::string text =
      "{\n  \"schemaVersion\": 1,\n  \"baseTimeNanoseconds\": 1790857026000000000,\n"
      "  \"traceEvents\": [\n";
  for (int i = 0; i < kOperators; ++i) {
    const double at_us = 4800093491723.842 + 25.0 * i;
    absl::StrAppendFormat(
        &text,
        "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::op%d\", \"pid\": 533, "
        "\"tid\": 533,\n    \"ts\": %.3f, \"dur\": 21.933,\n    \"args\": {\n      "
        "\"External id\": %d,\"Record function id\": 0, \"Concrete Inputs\": [\"\", \"\"], "
        "\"Input type\": [\"float\", \"float\"], \"Input Strides\": [[256, 1], [1, 256]], "
        "\"Input Dims\": [[64, 256], [256, 256]], \"Ev Idx\": %d\n    }\n  },\n",
        i % 50, at_us, i, i);
    absl::StrAppendFormat(
        &text,
        "  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", "
        "\"pid\": 533, \"tid\": 533,\n    \"ts\": %.3f, \"dur\": 3.268,\n    \"args\": {\n      "
        "\"External id\": %d, \"cbid\": 211, \"correlation\": %d\n    }\n  },\n",
        at_us + 9, i, i + 1);
    absl::StrAppendFormat(
        &text,
        "  {\n    \"ph\": \"s\", \"id\": %d, \"pid\": 533, \"tid\": 533, \"ts\": %.3f,\n    "
        "\"cat\": \"ac2g\", \"name\": \"ac2g\"\n  },\n",
        i + 1, at_us + 9);
    absl::StrAppendFormat(
        &text,
        "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void "
        "at::native::vectorized_elementwise_kernel<4, at::native::Functor%d<float>, "
        "std::array<char*, 3ul> >(int, at::native::Functor%d<float>, std::array<char*, 3ul>)\", "
        "\"pid\": 0, \"tid\": 7,\n    \"ts\": %.3f, \"dur\": 8.368,\n    \"args\": {\n      "
        "\"External id\": %d,\n      \"queued\": 0, \"device\": 0, \"context\": 1,\n      "
        "\"stream\": 7, \"correlation\": %d,\n      \"registers per thread\": 32,\n      "
        "\"shared memory\": 0,\n      \"blocks per SM\": 1.939394,\n      \"warps per SM\": "
        "7.757576,\n      \"grid\": [256, 1, 1],\n      \"block\": [128, 1, 1],\n      \"est. "
        "achieved occupancy %%\": 12\n    }\n  },\n",
        i % 20, i % 20, at_us + 14, i, i + 1);
    absl::StrAppendFormat(
        &text,
        "  {\n    \"ph\": \"f\", \"id\": %d, \"pid\": 0, \"tid\": 7, \"ts\": %.3f,\n    "
        "\"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  },\n",
        i + 1, at_us + 14);
  }
  text.resize(text.size() - 2);
  return text + "\n  ]\n}\n";
}

const std::string& Text() {
  static const std::string* const text = [] {
    const char* const path = std::getenv("SYNCLINE_BENCHMARK_PROFILE");
    if (path == nullptr) return new std::string(MadeUp());
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    return new std::string(content.str());
  }();
  return *text;
}

void SetBytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(Text().size()));
}

void BM_ParserAlone(benchmark::State& state) {
  for (auto unused : state) {
    Nothing nothing;
    benchmark::DoNotOptimize(nlohmann::json::sax_parse(Text().begin(), Text().end(), &nothing));
  }
  SetBytes(state);
}
BENCHMARK(BM_ParserAlone)->Unit(benchmark::kMillisecond);

void BM_Profile(benchmark::State& state) {
  uint64_t events = 0;
  for (auto unused : state) events = Trace::Of(Text(), "made up")->events();
  state.counters["events"] = static_cast<double>(events);
  SetBytes(state);
}
BENCHMARK(BM_Profile)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace syncline::kineto
