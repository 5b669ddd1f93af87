// SPDX-License-Identifier: Apache-2.0
// Straight-line programs for the layouts that matter for speed, made from the metadata at load
// time.
//
// An event qualifies when everything in it lies on byte boundaries, numbers have 8, 16, 32 or 64
// bits, arrays hold plain numbers, and there is no variant: what LTTng-UST writes on x86. Its
// fields become a list of operations without nesting or alignment, and if no field's size varies,
// the event's size is a constant. An event header qualifies when it is LTTng's "large" or "compact"
// one. Everything else goes through the obvious decoder (walk.h), with which this one must agree.
#ifndef SYNCLINE_CTF_FAST_PATH_H_
#define SYNCLINE_CTF_FAST_PATH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/event_cursor.h"

namespace syncline::ctf {

struct Node;
struct ScopeNodes;
class EnumLabels;

enum class FastHeader : uint8_t {
  kNone,
  kLarge,    // u16 id, u32 time; id 65535: u32 id, u64 time follow
  kCompact,  // 5 bits id, 27 bits time; id 31: u32 id, u64 time follow from the next byte
};

enum class FastOp : uint8_t {
  kInteger,  // `width` bytes
  kReal,
  kString,        // up to its NUL
  kText,          // `length` characters
  kTextSequence,  // slot `slot` characters
  kStruct,        // no bytes; `length` members follow
  kArray,         // `length` numbers of `element`
  kSequence,      // slot `slot` numbers of `element`
};

struct FastField {
  FastOp op = FastOp::kInteger;
  uint8_t width = 0;  // bytes of a number
  bool big = false;
  bool is_signed = false;
  bool is_real = false;  // kArray, kSequence: the elements
  int8_t store = -1;     // kInteger: the slot that keeps the value
  int8_t slot = -1;
  uint32_t length = 0;
  const FieldClass* field = nullptr;
  const FieldClass* element = nullptr;  // kArray, kSequence
  const EnumLabels* labels = nullptr;   // kInteger, or of the elements
};

class FastProgram {
 public:
  static constexpr int kSlots = 16;

  // Bytes of the contexts and payload together; 0 when they vary.
  uint32_t fixed_bytes() const { return fixed_bytes_; }

  std::span<const FastField> fields() const { return fields_; }

  // Where the event ends whose contexts begin at `bytes`; null when it does not end before `end`.
  const uint8_t* Skip(const uint8_t* bytes, const uint8_t* end) const;

  // Where fields lie that nothing of varying size precedes.
  std::vector<std::pair<const FieldClass*, FieldPlace>> Places() const;

  // Appends the fields' values. False when the bytes end too early.
  bool Decode(const uint8_t* bytes, const uint8_t* end, std::vector<FieldValue>* values) const;

 private:
  friend std::optional<FastProgram> CompileFast(const ScopeNodes& nodes);
  bool Add(const Node& node);
  bool AddElements(const Node& node);
  void MakeHops();
  void MakePrototype();
  void DecodePlain(const uint8_t* bytes, std::vector<FieldValue>* values) const;

  std::vector<FastField> fields_;
  uint32_t fixed_bytes_ = 0;
  // What it takes to find the end: `bytes` of no interest, then something that is.
  struct Hop {
    enum class To : uint8_t { kEnd, kString, kLength, kElements, kCounted };
    uint64_t bytes = 0;
    To to = To::kEnd;
    uint8_t width = 0;    // kLength, kCounted: of the number that goes to `slot`
    uint8_t element = 0;  // kElements; kCounted, which is both: bytes of each
    bool big = false;
    int8_t slot = -1;
  };
  std::vector<Hop> hops_;  // the last one is kEnd
  // Plain little-endian numbers at the start, which most events consist of: their values, ready but
  // for the numbers. Each is cut out of eight bytes by two shifts, so that fields of different
  // widths cost no branch.
  struct PlainNumber {
    uint32_t offset = 0;
    uint8_t shift = 0;  // bits beyond it
    bool is_signed = false;
  };
  std::vector<PlainNumber> plain_;
  std::vector<FieldValue> prototype_;  // beside plain_
  uint32_t prototype_bytes_ = 0;
};

// The program of an event's stream context, event context and payload; nullopt when it does not
// qualify.
std::optional<FastProgram> CompileFast(const ScopeNodes& nodes);

FastHeader ClassifyHeader(const ScopeNodes& nodes);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_FAST_PATH_H_
