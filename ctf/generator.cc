// SPDX-License-Identifier: Apache-2.0
#include "ctf/generator.h"

#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::ctf {
namespace {

constexpr uint32_t kPage = 4096;
constexpr uint32_t kEventBytesMax = 128;
constexpr uint64_t kFullTimestampGap = uint64_t{1}
                                       << 27;  // LTTng writes 64 bits after this silence

constexpr std::string_view kMetadata = R"(/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
trace {
  major = 1; minor = 8; uuid = "53594e43-4c49-4e45-8000-67656e657261"; byte_order = le;
  packet.header := struct {
    uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id;
  };
};
env { hostname = "generated"; domain = "ust"; tracer_name = "lttng-ust"; };
clock { name = "monotonic"; freq = 1000000000; offset = 1700000000000000000; };
typealias integer { size = 32; align = 8; map = clock.monotonic.value; } := uint32_clock_t;
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := uint64_clock_t;
stream {
  id = 0;
  event.header := struct {
    enum : uint16_t { compact = 0 ... 65534, extended = 65535 } id;
    variant <id> {
      struct { uint32_clock_t timestamp; } compact;
      struct { uint32_t id; uint64_clock_t timestamp; } extended;
    } v;
  } align(8);
  packet.context := struct {
    uint64_clock_t timestamp_begin; uint64_clock_t timestamp_end; uint64_t content_size;
    uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded; uint32_t cpu_id;
  };
  event.context := struct { int32_t _vpid; int32_t _vtid; };
};
event { name = "bench:begin"; id = 0; stream_id = 0; fields := struct {
  uint64_t _corr; uint32_t _kind; uint32_t _peer; uint64_t _bytes; }; };
event { name = "bench:end"; id = 1; stream_id = 0; fields := struct {
  uint64_t _corr; int32_t _status; }; };
event { name = "bench:named"; id = 2; stream_id = 0; fields := struct {
  string _name; uint64_t _corr; uint32_t __dims_length; uint32_t _dims[ __dims_length ];
  floating_point { exp_dig = 11; mant_dig = 53; align = 8; } _ratio; }; };
)";

class Random {  // SplitMix64: small, and the same everywhere
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

 private:
  uint64_t state_;
};

class StreamWriter {
 public:
  StreamWriter(const GeneratorOptions& options, uint32_t stream)
      : options_(options), stream_(stream), random_(options.seed * 1000003 + stream) {}

  GeneratedStream Run() {
    for (const uint32_t word : {0xc1f1dcc1u, 1u, 1u, 72u}) PutIndex(word);
    uint64_t time = 1'000'000'000 + random_.Next() % 1000;
    BeginPacket(time);
    for (uint64_t i = 0; i < options_.events_per_stream; ++i) {
      const uint64_t gap = random_.Next() % (2 * options_.gap_ns_mean + 1);
      if (out_.bytes.size() - packet_ + kEventBytesMax > options_.packet_bytes) {
        EndPacket(time);
        BeginPacket(time);
      }
      time += gap;
      Event(time);
    }
    EndPacket(time);
    out_.events = options_.events_per_stream;
    return std::move(out_);
  }

 private:
  template <class T>
  void Put(T value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    out_.bytes.insert(out_.bytes.end(), bytes, bytes + sizeof value);
  }
  template <class T>
  void Field(T value) {
    Put(value);
    out_.sum += static_cast<uint64_t>(static_cast<int64_t>(value));
  }

  template <class T>
  void PutIndex(T value) {
    for (size_t i = sizeof value; i-- > 0;) {
      out_.index.push_back(static_cast<uint8_t>(uint64_t{value} >> (8 * i)));
    }
  }

  void BeginPacket(uint64_t time) {
    packet_ = out_.bytes.size();
    packet_begin_ = time;
    Put<uint32_t>(0xc1fc1fc1);
    for (const char c : std::string_view("SYNCLINE\x80\0genera", 16)) Put(c);
    Put<uint32_t>(0);
    Put<uint64_t>(stream_);
    Put(time);
    for (int i = 0; i < 3; ++i) Put<uint64_t>(0);
    Put(sequence_++);
    Put<uint64_t>(0);
    Put(stream_);
    first_ = true;
  }

  void EndPacket(uint64_t time) {
    const uint64_t content = out_.bytes.size() - packet_;
    out_.bytes.resize(packet_ + (content + kPage - 1) / kPage * kPage);
    const uint64_t sizes[] = {time, content * 8, (out_.bytes.size() - packet_) * 8};
    std::memcpy(out_.bytes.data() + packet_ + 40, sizes, sizeof sizes);
    for (const uint64_t field : {uint64_t{packet_}, sizes[2], sizes[1], packet_begin_, time,
                                 uint64_t{0}, uint64_t{0}, uint64_t{stream_}, sequence_ - 1}) {
      PutIndex(field);
    }
  }

  void Header(uint16_t id, uint64_t time) {
    if (first_ || time - last_ >= kFullTimestampGap) {
      Put<uint16_t>(65535);
      Put<uint32_t>(id);
      Put(time);
    } else {
      Put(id);
      Put(static_cast<uint32_t>(time));
    }
    first_ = false;
    last_ = time;
    Field<int32_t>(4000 + static_cast<int32_t>(stream_ % 64));
    Field<int32_t>(5000 + static_cast<int32_t>(stream_));
    out_.sum += stream_;  // cpu_id, of the packet context
  }

  void Event(uint64_t time) {
    const uint64_t choice = random_.Next() % 100;
    const uint64_t value = random_.Next() >> 20;
    Header(choice < 45 ? 0 : choice < 90 ? 1 : 2, time);
    if (choice < 45) {
      Field(value);
      Field<uint32_t>(static_cast<uint32_t>(choice));
      Field<uint32_t>(static_cast<uint32_t>(value & 1023));
      Field<uint64_t>(value >> 10);
    } else if (choice < 90) {
      Field(value);
      Field<int32_t>(-static_cast<int32_t>(choice));
    } else {
      const std::string_view name = std::string_view("all_reduce_gradients").substr(choice - 90);
      out_.bytes.insert(out_.bytes.end(), name.begin(), name.end());
      Put<uint8_t>(0);
      out_.sum += name.size();
      Field(value);
      Field<uint32_t>(static_cast<uint32_t>(choice % 4));
      for (uint32_t i = 0; i < choice % 4; ++i) Field<uint32_t>(128 << i);
      const double ratio = static_cast<double>(value & 255) / 4;
      uint64_t bits;
      std::memcpy(&bits, &ratio, sizeof bits);
      Put(bits);
      out_.sum += bits;
    }
  }

  GeneratorOptions options_;
  uint32_t stream_;
  Random random_;
  GeneratedStream out_;
  size_t packet_ = 0;
  uint64_t packet_begin_ = 0;
  uint64_t sequence_ = 0;
  uint64_t last_ = 0;
  bool first_ = true;
};

}  // namespace

std::string GeneratedMetadata() { return std::string(kMetadata); }

GeneratedStream GenerateStream(const GeneratorOptions& options, uint32_t stream) {
  return StreamWriter(options, stream).Run();
}

absl::StatusOr<GeneratedTrace> GenerateTrace(const std::filesystem::path& directory,
                                             const GeneratorOptions& options) {
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(directory));
  SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(directory / "metadata", kMetadata));
  const std::filesystem::path indexes = directory / "index";
  if (options.with_index) SYNCLINE_RETURN_IF_ERROR(MakeDirectories(indexes));
  const auto view = [](const std::vector<uint8_t>& bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  GeneratedTrace trace;
  for (uint32_t i = 0; i < options.streams; ++i) {
    const GeneratedStream stream = GenerateStream(options, i);
    const std::string name = absl::StrCat("channel0_", i);
    SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(directory / name, view(stream.bytes)));
    if (options.with_index) {
      SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(indexes / (name + ".idx"), view(stream.index)));
    }
    trace.bytes += stream.bytes.size();
    trace.events += stream.events;
    trace.sum += stream.sum;
  }
  return trace;
}

}  // namespace syncline::ctf
