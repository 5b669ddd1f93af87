// SPDX-License-Identifier: Apache-2.0
// What a trace says about itself: its types, streams, events and clocks, as a plain tree.
//
// A front end fills it (TSDL of CTF 1.8 in tsdl_parser.cc, JSON of CTF 2 in ctf2_parser.cc);
// everything behind it is driven by this tree and knows of no tracer. Event ids differ between
// traces and between chunks of one trace, so a Metadata belongs to exactly one directory.
//
// Thread-safe once built: nothing changes afterwards.
#ifndef SYNCLINE_CTF_METADATA_H_
#define SYNCLINE_CTF_METADATA_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace syncline::ctf {

enum class ByteOrder : uint8_t { kNative, kLittle, kBig };  // kNative: the trace's own

enum class TypeKind : uint8_t {
  kInteger,
  kFloat,
  kEnum,
  kString,
  kStruct,
  kVariant,
  kArray,
  kSequence,
  kBlob,          // CTF 2: `length` bytes
  kSequenceBlob,  // CTF 2: bytes, counted by `reference`
};

// What a field is for. CTF 1.8 tells it by reserved names in the headers, CTF 2 by explicit roles.
enum class Role : uint8_t {
  kNone,
  kMagic,
  kUuid,
  kStreamId,
  kStreamInstanceId,
  kTimestampBegin,
  kTimestampEnd,
  kContentSize,
  kPacketSize,
  kSequenceNumber,
  kDiscardedEvents,
  kCpuId,
  kEventId,
  kTimestamp,
};

struct Type;
using TypePtr = std::shared_ptr<const Type>;
using Uuid = std::array<uint8_t, 16>;

// Values low..high carry `label`. For a signed container the bits are those of int64_t.
struct EnumMapping {
  std::string label;
  uint64_t low = 0;
  uint64_t high = 0;
};

struct Member {
  std::string name;  // as written, with CTF 1.8's leading "_"
  TypePtr type;
  // CTF 2, of an option: the tag's values that select it. CTF 1.8 goes by the tag's labels.
  std::vector<EnumMapping> selected_by;
};

// One type. Which members mean something depends on `kind`.
struct Type {
  TypeKind kind = TypeKind::kInteger;
  uint32_t depth = 1;      // see DepthOf()
  uint32_t alignment = 1;  // bits, a power of two
  ByteOrder byte_order = ByteOrder::kNative;
  uint32_t size_bits = 0;             // kInteger, kFloat, kEnum: 1..64
  uint32_t mantissa_bits = 0;         // kFloat: with the implicit bit, as TSDL counts
  bool is_signed = false;             // kInteger, kEnum
  bool is_text = false;               // kInteger: has a character encoding
  bool reversed_bits = false;         // CTF 2: bit order differs from the byte order's natural one
  bool variable_length = false;       // CTF 2, kInteger, kEnum: LEB128; size_bits is 64 then
  bool may_be_empty = false;          // CTF 2, kVariant: an optional; no option selected is right
  uint32_t unit_bytes = 1;            // kString: 2 or 4 make it a blob; the NUL is as long
  int base = 10;                      // kInteger, kEnum: for display
  std::string clock;                  // kInteger: name of the clock whose value it holds
  Role role = Role::kNone;            // CTF 2; CTF 1.8 goes by name
  std::vector<EnumMapping> mappings;  // kEnum
  std::vector<Member> members;        // kStruct, kVariant (options)
  TypePtr element;                    // kArray, kSequence
  uint64_t length = 0;                // kArray, kBlob
  std::string reference;              // kVariant: tag, kSequence: length; a dotted path
};

// How many types lie inside each other, `type` included, going by its parts' own depth. Deeper than
// any tracer writes is refused, also where names hide it: what walks types is recursive.
inline constexpr uint32_t kTypeDepthMax = 64;
uint32_t DepthOf(const Type& type);

struct ClockClass {
  std::string name;  // CTF 2: its id
  std::string description;
  std::string uuid;
  uint64_t frequency = 1'000'000'000;  // Hz
  int64_t offset_seconds = 0;          // from the origin to clock value 0
  int64_t offset_cycles = 0;
  bool absolute = false;  // the origin is the same for all clocks that say so
  std::string origin;     // CTF 2: another one, by its name
  int64_t shift_ns = 0;   // of its zero behind the trace's (clocks.h); not of the metadata
};

struct EventType {
  std::optional<uint64_t> id;
  uint64_t stream_id = 0;
  std::string name;
  std::map<std::string, std::string> attributes;
  TypePtr context;  // may be null
  TypePtr payload;  // may be null
};

struct StreamType {
  uint64_t id = 0;
  TypePtr packet_context;  // each may be null
  TypePtr event_header;
  TypePtr event_context;
  std::vector<EventType> events;
  std::string clock;  // CTF 2: id of the default clock; CTF 1.8: empty, found by mapping
};

struct Metadata {
  uint32_t major = 1;
  uint32_t minor = 8;
  std::optional<Uuid> uuid;
  ByteOrder byte_order = ByteOrder::kLittle;  // never kNative
  bool roles_by_name = true;                  // CTF 1.8
  TypePtr packet_header;                      // may be null
  std::map<std::string, std::string> environment;
  std::vector<ClockClass> clocks;
  std::vector<StreamType> streams;
  std::vector<std::string> warnings;  // what was cut or ignored, for people

  const ClockClass* FindClock(std::string_view name) const;
  const StreamType* FindStream(uint64_t id) const;
};

// The text of a metadata file: the contents of its packets, or the file itself when it is plain.
// A file that ends inside a packet, or is damaged behind its first one, yields what is there.
struct MetadataText {
  std::string text;
  std::string cut;  // why there is no more of it; empty: all is there
};
absl::StatusOr<MetadataText> UnpackMetadata(std::string_view file);

// Metadata from the bytes of a metadata file, packetized or plain. InvalidArgument with line and
// column for text that does not parse. Text that merely ends too early (the tracer died, or the
// copy was cut) yields what was complete before the cut, with a warning.
absl::StatusOr<std::shared_ptr<const Metadata>> ParseMetadata(std::string_view file);

// The metadata of a trace directory. NotFound: "not a CTF trace: no metadata file".
absl::StatusOr<std::shared_ptr<const Metadata>> LoadMetadata(const std::filesystem::path& trace);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_METADATA_H_
