// SPDX-License-Identifier: Apache-2.0
#include "clocksync/sample_file.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::clocksync {
namespace {

// Fixed records rather than deltas: a record can be appended without knowing the one before, and a
// damaged one does not spoil those after it.
//   header   8 bytes magic, u16 version, then per name: u16 length, bytes
//   sample   u8 source, 4 x i64 stamps, u8 check                          34 bytes
//   tuple    5 x i64 readings, i64 freq, i32 tick, i32 status, u8 check   57 bytes
constexpr std::string_view kSamplesMagic = "SYNCSMPL";
constexpr std::string_view kTuplesMagic = "SYNCTUPL";
constexpr uint16_t kVersion = 1;
constexpr size_t kSampleBytes = 34;
constexpr size_t kTupleBytes = 57;
constexpr size_t kNameBytesMax = 255;

template <class T>
void Put(T value, std::string* bytes) {
  auto bits = static_cast<std::make_unsigned_t<T>>(value);
  for (size_t i = 0; i < sizeof(T); ++i) bytes->push_back(static_cast<char>(bits >> (8 * i)));
}

template <class T>
T Get(std::string_view bytes, size_t at) {
  std::make_unsigned_t<T> bits = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    bits |= static_cast<std::make_unsigned_t<T>>(
        static_cast<std::make_unsigned_t<T>>(static_cast<uint8_t>(bytes[at + i])) << (8 * i));
  }
  return static_cast<T>(bits);
}

// Catches a record that was never written (zeros after a crash) and most damage. Never 0 for zeros.
uint8_t Check(std::string_view record) {
  uint32_t sum = 0x5a;
  for (char c : record) sum = (sum * 31 + static_cast<uint8_t>(c)) & 0xffffff;
  return static_cast<uint8_t>(sum ^ (sum >> 8) ^ (sum >> 16));
}

std::string Header(std::string_view magic, std::initializer_list<std::string_view> names) {
  std::string bytes(magic);
  Put<uint16_t>(kVersion, &bytes);
  for (std::string_view name : names) {
    name = name.substr(0, kNameBytesMax);
    Put<uint16_t>(static_cast<uint16_t>(name.size()), &bytes);
    bytes += name;
  }
  return bytes;
}

// Reads the header off the front of `bytes`; the names, in order.
absl::StatusOr<std::vector<std::string>> TakeHeader(std::string_view magic, const char* what,
                                                    size_t name_count, std::string_view* bytes) {
  const std::string_view all = *bytes;
  if (all.size() < magic.size() + 2 || all.substr(0, magic.size()) != magic) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a ", what, " file: it does not begin with \"", AbslView(magic), "\""));
  }
  const auto version = Get<uint16_t>(all, magic.size());
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("this ", what, " file has version ", version,
                                                   "; this program reads version ", kVersion));
  }
  size_t at = magic.size() + 2;
  std::vector<std::string> names;
  for (size_t i = 0; i < name_count; ++i) {
    const size_t length = at + 2 <= all.size() ? Get<uint16_t>(all, at) : 0;
    if (length == 0 || length > kNameBytesMax || length > all.size() - at - 2) {
      return absl::InvalidArgumentError(absl::StrCat("the header of this ", what,
                                                     " file is damaged: name ", i + 1, " at byte ",
                                                     at, " is empty, too long or cut off"));
    }
    names.emplace_back(all.substr(at + 2, length));
    at += 2 + length;
  }
  bytes->remove_prefix(at);
  return names;
}

bool IsSound(std::string_view record) {
  const size_t last = record.size() - 1;
  return Check(record.substr(0, last)) == static_cast<uint8_t>(record[last]);
}

// The check is one byte: behind damage, where records may have moved, one in 256 fits by chance.
// What is read there must also be near to what was read before it, in time.
constexpr uint64_t kGapNsMax = 86'400 * uint64_t{1'000'000'000};
bool IsNear(int64_t before_ns, int64_t now_ns) {
  const auto [low_ns, high_ns] = std::minmax(before_ns, now_ns);
  return static_cast<uint64_t>(high_ns) - static_cast<uint64_t>(low_ns) <= kGapNsMax;
}

// Reads records of one size and keeps those that are not damaged; the bytes that are left behind
// the last whole one. `read`: the value of a sound record, nullopt where it makes no sense.
// `time_ns`: of a value, where neighbours must not be far apart.
template <class Read, class TimeNs, class Value>
uint64_t ReadRecords(std::string_view bytes, size_t header_bytes, size_t record_bytes, Read read,
                     TimeNs time_ns, std::vector<Value>* values, Damage* damage) {
  bool behind_damage = false;
  size_t at = 0;
  for (; bytes.size() - at >= record_bytes; at += record_bytes) {
    const std::string_view record = bytes.substr(at, record_bytes);
    std::optional<Value> value;
    if (IsSound(record)) value = read(record);
    if (value && behind_damage && !values->empty() &&
        !IsNear(time_ns(values->back()), time_ns(*value))) {
      value.reset();
    }
    behind_damage = !value;
    if (value) {
      values->push_back(*value);
    } else if (damage->records++ == 0) {
      damage->first_byte = header_bytes + at;
    }
  }
  return bytes.size() - at;
}

std::optional<ProbeSample> ReadSample(std::string_view record) {
  const auto source = Get<uint8_t>(record, 0);
  if (source > static_cast<uint8_t>(StampSource::kGrpc)) return std::nullopt;
  return ProbeSample{.t1_local_ns = Get<int64_t>(record, 1),
                     .t2_remote_ns = Get<int64_t>(record, 9),
                     .t3_remote_ns = Get<int64_t>(record, 17),
                     .t4_local_ns = Get<int64_t>(record, 25),
                     .source = static_cast<StampSource>(source)};
}

std::optional<ClockTuple> ReadTuple(std::string_view record) {
  return ClockTuple{.raw_before_ns = Get<int64_t>(record, 0),
                    .monotonic_ns = Get<int64_t>(record, 8),
                    .realtime_ns = Get<int64_t>(record, 16),
                    .boottime_ns = Get<int64_t>(record, 24),
                    .raw_after_ns = Get<int64_t>(record, 32),
                    .adjtimex_freq = Get<int64_t>(record, 40),
                    .adjtimex_tick_us = Get<int32_t>(record, 48),
                    .adjtimex_status = Get<int32_t>(record, 52)};
}

}  // namespace

std::string EncodeSamplesHeader(std::string_view local, std::string_view remote) {
  return Header(kSamplesMagic, {local, remote});
}

void AppendSample(const ProbeSample& sample, std::string* bytes) {
  const size_t begin = bytes->size();
  Put<uint8_t>(static_cast<uint8_t>(sample.source), bytes);
  Put<int64_t>(sample.t1_local_ns, bytes);
  Put<int64_t>(sample.t2_remote_ns, bytes);
  Put<int64_t>(sample.t3_remote_ns, bytes);
  Put<int64_t>(sample.t4_local_ns, bytes);
  Put<uint8_t>(Check(std::string_view(*bytes).substr(begin)), bytes);
}

absl::StatusOr<Edge> DecodeSamples(std::string_view bytes) {
  const size_t size = bytes.size();
  SYNCLINE_ASSIGN_OR_RETURN(auto names, TakeHeader(kSamplesMagic, "samples", 2, &bytes));
  Edge edge{.local = std::move(names[0]), .remote = std::move(names[1])};
  edge.samples.reserve(bytes.size() / kSampleBytes);
  edge.truncated_bytes = ReadRecords(
      bytes, size - bytes.size(), kSampleBytes, ReadSample,
      [](const ProbeSample& sample) { return sample.local_ns(); }, &edge.samples, &edge.damage);
  return edge;
}

uint64_t SamplesInFile(std::string_view local, std::string_view remote, uint64_t file_bytes) {
  const uint64_t header_bytes = EncodeSamplesHeader(local, remote).size();
  return file_bytes < header_bytes ? 0 : (file_bytes - header_bytes) / kSampleBytes;
}

std::string EncodeTuplesHeader(std::string_view node) { return Header(kTuplesMagic, {node}); }

void AppendTuple(const ClockTuple& tuple, std::string* bytes) {
  const size_t begin = bytes->size();
  for (int64_t reading : {tuple.raw_before_ns, tuple.monotonic_ns, tuple.realtime_ns,
                          tuple.boottime_ns, tuple.raw_after_ns, tuple.adjtimex_freq}) {
    Put<int64_t>(reading, bytes);
  }
  Put<int32_t>(tuple.adjtimex_tick_us, bytes);
  Put<int32_t>(tuple.adjtimex_status, bytes);
  Put<uint8_t>(Check(std::string_view(*bytes).substr(begin)), bytes);
}

absl::StatusOr<HostClocks> DecodeTuples(std::string_view bytes) {
  const size_t size = bytes.size();
  SYNCLINE_ASSIGN_OR_RETURN(auto names, TakeHeader(kTuplesMagic, "tuples", 1, &bytes));
  HostClocks host{.node = std::move(names[0])};
  host.tuples.reserve(bytes.size() / kTupleBytes);
  host.truncated_bytes = ReadRecords(
      bytes, size - bytes.size(), kTupleBytes, ReadTuple,
      [](const ClockTuple& tuple) { return tuple.raw_before_ns; }, &host.tuples, &host.damage);
  return host;
}

}  // namespace syncline::clocksync
