// SPDX-License-Identifier: Apache-2.0
// Test support: small traces in memory, laid out as LTTng-UST writes them.
#ifndef SYNCLINE_CTF_TEST_TRACE_H_
#define SYNCLINE_CTF_TEST_TRACE_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctf/bits.h"
#include "ctf/byte_source.h"
#include "ctf/layout.h"
#include "ctf/metadata.h"
#include "ctf/reader.h"

namespace syncline::ctf::testing {

// Event 0 "t:number" {u32 value}, event 1 "t:text" {string, u16 sequence}, event 2 "t:empty" {}.
inline constexpr std::string_view kMetadata = R"(/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
trace {
  major = 1; minor = 8; uuid = "00112233-4455-6677-8899-aabbccddeeff"; byte_order = le;
  packet.header := struct {
    uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id;
  };
};
env { tracer_name = "lttng-ust"; hostname = "h"; vpid = 12; };
clock { name = "monotonic"; freq = 1000000000; offset = 1795198221037990821; };
typealias integer { size = 32; align = 8; map = clock.monotonic.value; } := uint32_clock_t;
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := uint64_clock_t;
struct packet_context {
  uint64_clock_t timestamp_begin; uint64_clock_t timestamp_end; uint64_t content_size;
  uint64_t packet_size; uint64_t packet_seq_num; unsigned long events_discarded; uint32_t cpu_id;
};
struct event_header_large {
  enum : uint16_t { compact = 0 ... 65534, extended = 65535 } id;
  variant <id> {
    struct { uint32_clock_t timestamp; } compact;
    struct { uint32_t id; uint64_clock_t timestamp; } extended;
  } v;
} align(8);
stream {
  id = 0; event.header := struct event_header_large; packet.context := struct packet_context;
};
event { name = "t:number"; id = 0; stream_id = 0; loglevel = 13; fields := struct {
  uint32_t _value; }; };
event { name = "t:text"; id = 1; stream_id = 0; fields := struct {
  string _text; uint16_t __items_length; uint16_t _items[ __items_length ]; }; };
event { name = "t:empty"; id = 2; stream_id = 0; fields := struct { }; };
)";

class ByteWriter {
 public:
  template <class T>
  ByteWriter& Put(T value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  ByteWriter& Text(std::string_view text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    bytes_.push_back(0);
    return *this;
  }
  template <class T>
  void Patch(size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
  }
  size_t size() const { return bytes_.size(); }
  std::vector<uint8_t>& bytes() { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

// One packet of kMetadata's stream 0. Event times are ns; the packet's begin and end are given.
class PacketBuilder {
 public:
  static constexpr size_t kBeginAt = 32, kEndAt = 40, kContentAt = 48, kSizeAt = 56,
                          kSequenceAt = 64, kDiscardedAt = 72, kFirstEventAt = 84;

  PacketBuilder(uint64_t begin_ns, uint64_t end_ns, uint64_t sequence = 0, uint64_t discarded = 0) {
    out_.Put<uint32_t>(0xc1fc1fc1);
    for (int i = 0; i < 16; ++i) out_.Put<uint8_t>(static_cast<uint8_t>(i * 0x11));
    out_.Put<uint32_t>(0).Put<uint64_t>(1);
    out_.Put(begin_ns).Put(end_ns).Put<uint64_t>(0).Put<uint64_t>(0);
    out_.Put(sequence).Put(discarded).Put<uint32_t>(1);
  }
  PacketBuilder& Number(uint64_t time_ns, uint32_t value) {
    out_.Put<uint16_t>(0).Put(static_cast<uint32_t>(time_ns)).Put(value);
    return *this;
  }
  PacketBuilder& NumberExtended(uint64_t time_ns, uint32_t value) {
    out_.Put<uint16_t>(65535).Put<uint32_t>(0).Put(time_ns).Put(value);
    return *this;
  }
  PacketBuilder& Text(uint64_t time_ns, std::string_view text, std::vector<uint16_t> items = {}) {
    out_.Put<uint16_t>(1).Put(static_cast<uint32_t>(time_ns)).Text(text);
    out_.Put(static_cast<uint16_t>(items.size()));
    for (const uint16_t item : items) out_.Put(item);
    return *this;
  }
  PacketBuilder& Id(uint64_t time_ns, uint16_t id) {
    out_.Put(id).Put(static_cast<uint32_t>(time_ns));
    return *this;
  }
  // The packet's bytes, padded to a multiple of `unit`.
  std::vector<uint8_t> Close(size_t unit = 64) {
    out_.Patch<uint64_t>(kContentAt, out_.size() * 8);
    while (out_.size() % unit != 0) out_.Put<uint8_t>(0);
    out_.Patch<uint64_t>(kSizeAt, out_.size() * 8);
    return out_.bytes();
  }
  // As a tracer that died leaves it: sizes all ones, no end, zeros (or old bytes) behind.
  std::vector<uint8_t> LeaveOpen(size_t unit = 256) {
    out_.Patch<uint64_t>(kContentAt, ~uint64_t{0});
    out_.Patch<uint64_t>(kSizeAt, ~uint64_t{0});
    out_.Patch<uint64_t>(kEndAt, 0);
    while (out_.size() % unit != 0) out_.Put<uint8_t>(0);
    return out_.bytes();
  }

 private:
  ByteWriter out_;
};

inline std::vector<uint8_t> Join(std::vector<std::vector<uint8_t>> packets) {
  std::vector<uint8_t> bytes;
  for (const auto& packet : packets) bytes.insert(bytes.end(), packet.begin(), packet.end());
  return bytes;
}

// The packet index of a stream of such packets, as LTTng writes it (packet_index.h).
inline std::vector<uint8_t> IndexOf(const std::vector<std::vector<uint8_t>>& packets) {
  std::vector<uint8_t> index = {0xc1, 0xf1, 0xdc, 0xc1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 72};
  uint64_t offset = 0;
  for (const std::vector<uint8_t>& packet : packets) {
    const auto at = [&packet](size_t place) { return LoadBytes(&packet[place], 8, false); };
    for (const uint64_t field :
         {offset, at(PacketBuilder::kSizeAt), at(PacketBuilder::kContentAt),
          at(PacketBuilder::kBeginAt), at(PacketBuilder::kEndAt), at(PacketBuilder::kDiscardedAt),
          uint64_t{0}, uint64_t{1}, at(PacketBuilder::kSequenceAt)}) {
      for (int shift = 56; shift >= 0; shift -= 8) {
        index.push_back(static_cast<uint8_t>(field >> shift));
      }
    }
    offset += packet.size();
  }
  return index;
}

inline std::shared_ptr<const TraceLayout> LayoutOf(std::string_view metadata) {
  auto parsed = ParseMetadata(metadata);
  if (!parsed.ok()) return nullptr;
  auto layout = BuildLayout(*std::move(parsed));
  return layout.ok() ? *layout : nullptr;
}

struct ReadResult {
  std::vector<std::string> events;  // "time name field=value ..."
  std::vector<Loss> losses;
  bool failed = false;
};

inline std::string Render(const EventRecord& record, const std::vector<FieldValue>& values) {
  std::string line = std::to_string(record.time_ns) + " " + record.event_class->name;
  for (const FieldValue& value : values) {
    if (value.field->scope != FieldScope::kPayload) continue;
    line += " " + value.field->path + "=";
    switch (value.type) {
      case FieldType::kString:
      case FieldType::kBlob:
        line += value.text;
        break;
      case FieldType::kReal:
        line += std::to_string(value.d);
        break;
      case FieldType::kSigned:
        line += std::to_string(value.s);
        break;
      case FieldType::kEnum:
        line += std::to_string(value.s) + "(" + std::string(value.text) + ")";
        break;
      case FieldType::kStruct:
      case FieldType::kArray:
      case FieldType::kVariant:
        line += "#" + std::to_string(value.count);
        break;
      case FieldType::kUnsigned:
        line += std::to_string(value.u);
        break;
    }
  }
  return line;
}

inline ReadResult ReadAll(std::shared_ptr<const TraceLayout> layout, std::span<const uint8_t> bytes,
                          CursorRange range = {}) {
  StreamInfo info;
  info.name = "s";
  auto cursor = MakeCursor(std::move(layout), std::make_unique<MemorySource>(bytes), info, range);
  ReadResult result;
  std::vector<FieldValue> values;
  for (;;) {
    auto batch = cursor->NextBatch();
    if (!batch.ok()) {
      result.failed = true;
      break;
    }
    if (batch->empty()) break;
    for (const EventRecord& record : *batch) {
      const bool decoded = cursor->Decode(record, &values);
      result.events.push_back(decoded ? Render(record, values) : "undecodable");
    }
  }
  result.losses.assign(cursor->losses().begin(), cursor->losses().end());
  return result;
}

}  // namespace syncline::ctf::testing

#endif  // SYNCLINE_CTF_TEST_TRACE_H_
