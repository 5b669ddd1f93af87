// Protocol buffer wire format, written by hand: varints, fixed 64-bit numbers and length-delimited
// bytes. The Perfetto trace is a few messages repeated millions of times; a general library is
// slower here and would make the bytes depend on its version.
#ifndef SYNCLINE_EXPORT_PERFETTO_PROTO_WRITER_H_
#define SYNCLINE_EXPORT_PERFETTO_PROTO_WRITER_H_

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace syncline::perfetto {

class ProtoWriter {
 public:
  void Varint(uint32_t field, uint64_t value) {
    Raw(field << 3);
    Raw(value);
  }
  void Fixed64(uint32_t field, uint64_t value) {
    Raw(field << 3 | 1);
    for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>(value >> shift));
  }
  void Double(uint32_t field, double value) { Fixed64(field, std::bit_cast<uint64_t>(value)); }
  void Bytes(uint32_t field, std::string_view value) {
    Raw(field << 3 | 2);
    Raw(value.size());
    bytes_.append(value);
  }
  void Message(uint32_t field, const ProtoWriter& message) { Bytes(field, message.bytes_); }

  const std::string& bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }
  void Clear() { bytes_.clear(); }

 private:
  void Raw(uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace syncline::perfetto

#endif  // SYNCLINE_EXPORT_PERFETTO_PROTO_WRITER_H_
