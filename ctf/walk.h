// SPDX-License-Identifier: Apache-2.0
// Walking the bytes of one scope along its nodes. The obvious decoder: it handles everything that
// CTF allows, bit by bit; what is faster (fast_path.h) must agree with it.
//
// A sink is told what is met, in preorder:
//   Integer(node, value)                 integers and enums; signed ones sign-extended
//   VariableInteger(node, value, bits)   the same of CTF 2's variable length, which had `bits`
//   Real(node, value)
//   Text(node, text)                     strings and character arrays, without the NUL
//   Bytes(node, bytes)                   blobs, and the uuid of a packet header
//   Compound(node, count)                struct, variant with `count` children to come
//   Array(node, count)                   array, sequence; returns what tells it from others, for
//                                        Shorten()
//   IsFull(taken)                        it wants no more of an array of which it has so many
//   Shorten(array, count)                and so gets so many of this one's
#ifndef SYNCLINE_CTF_WALK_H_
#define SYNCLINE_CTF_WALK_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "ctf/bits.h"
#include "ctf/layout.h"

namespace syncline::ctf {

// Where in a packet the walk stands.
struct WalkState {
  const uint8_t* base = nullptr;  // first byte of the packet
  uint64_t limit = 0;             // bits that may be read
  uint64_t position = 0;          // bits from the start of the packet
  uint64_t* slots = nullptr;      // values that other fields refer to
  uint64_t visits = 0;            // of nodes
  uint64_t empty_visits = 0;      // those of them in elements that took no bits

  bool Align(uint64_t alignment) {
    position = AlignUp(position, alignment);
    return position <= limit;
  }
  bool Has(uint64_t bits) const { return position <= limit && bits <= limit - position; }
};

struct NullSink {
  void Integer(const Node&, uint64_t) {}
  void VariableInteger(const Node&, uint64_t, uint32_t) {}
  void Real(const Node&, double) {}
  void Text(const Node&, std::string_view) {}
  void Bytes(const Node&, std::span<const uint8_t>) {}
  void Compound(const Node&, uint64_t) {}
  size_t Array(const Node&, uint64_t) { return 0; }
  static bool IsFull(uint64_t) { return false; }
  void Shorten(size_t, uint64_t) {}
};

// Elements that take no bits cannot be bounded by the packet's size; no tracer writes many of them.
// So many parts of such are walked in all: arrays of arrays of them multiply.
inline constexpr uint64_t kEmptyElementsMax = 1 << 16;

// False when the bytes end too early or do not fit the nodes.
template <class Sink>
class Walker {
 public:
  Walker(WalkState& state, Sink& sink) : state_(state), sink_(sink) {}

  bool Walk(const Node& node) {
    ++state_.visits;
    switch (node.kind) {
      case TypeKind::kInteger:
      case TypeKind::kEnum:
        return Integer(node);
      case TypeKind::kFloat:
        return Real(node);
      case TypeKind::kString:
        return String(node);
      case TypeKind::kStruct:
        if (!state_.Align(node.alignment)) return false;
        sink_.Compound(node, node.children.size());
        for (const Node& child : node.children) {
          if (!Walk(child)) return false;
        }
        return true;
      case TypeKind::kVariant:
        return Variant(node);
      case TypeKind::kArray:
        return Elements(node, node.length);
      case TypeKind::kSequence:
        return Elements(node, state_.slots[node.reference]);
      case TypeKind::kBlob:
        return Blob(node, node.length);
      case TypeKind::kSequenceBlob:
        return Blob(node, state_.slots[node.reference]);
    }
    return false;
  }

 private:
  bool Raw(const Node& node, uint64_t& value) {
    if (!state_.Align(node.alignment) || !state_.Has(node.size_bits)) return false;
    value = LoadInteger(state_.base, state_.position, node.size_bits, node.big);
    if (node.reversed_bits) value = ReverseBits(value, node.size_bits);
    state_.position += node.size_bits;
    return true;
  }

  // LEB128: seven bits a byte, the lowest first; the highest bit says that more follow.
  bool VariableInteger(const Node& node) {
    if (!state_.Align(8)) return false;
    uint64_t value = 0;
    uint32_t bits = 0;
    for (bool more = true; more; bits += 7) {
      if (bits >= 70 || !state_.Has(8)) return false;
      const uint8_t byte = state_.base[state_.position / 8];
      state_.position += 8;
      more = (byte & 0x80) != 0;
      if (bits < 64) value |= static_cast<uint64_t>(byte & 0x7f) << bits;
    }
    if (node.is_signed && bits < 64) value = static_cast<uint64_t>(SignExtend(value, bits));
    if (node.slot >= 0) state_.slots[node.slot] = value;
    sink_.VariableInteger(node, value, bits);
    return true;
  }

  bool Integer(const Node& node) {
    if (node.variable_length) return VariableInteger(node);
    uint64_t value;
    if (!Raw(node, value)) return false;
    if (node.is_signed) value = static_cast<uint64_t>(SignExtend(value, node.size_bits));
    if (node.slot >= 0) state_.slots[node.slot] = value;
    sink_.Integer(node, value);
    return true;
  }

  bool Real(const Node& node) {
    uint64_t bits;
    if (!Raw(node, bits)) return false;
    sink_.Real(node, RealFromBits(bits, node.size_bits));
    return true;
  }

  // A string of wider characters, which ends with one that is zero: given as bytes.
  bool WideString(const Node& node) {
    const uint8_t* begin = state_.base + state_.position / 8;
    const uint64_t left = (state_.limit - state_.position) / 8;
    const uint64_t unit = node.unit_bytes;
    for (uint64_t length = 0; unit <= left - length; length += unit) {
      const uint8_t* character = begin + length;
      if (std::any_of(character, character + unit, [](uint8_t byte) { return byte != 0; })) {
        continue;
      }
      sink_.Bytes(node, {begin, static_cast<size_t>(length)});
      state_.position += (length + unit) * 8;
      return true;
    }
    return false;
  }

  bool String(const Node& node) {
    if (!state_.Align(node.alignment)) return false;
    if (node.unit_bytes != 1) return WideString(node);
    const auto* begin = reinterpret_cast<const char*>(state_.base + state_.position / 8);
    const size_t left = static_cast<size_t>((state_.limit - state_.position) / 8);
    const void* end = left == 0 ? nullptr : std::memchr(begin, 0, left);
    if (end == nullptr) return false;
    const auto length = static_cast<size_t>(static_cast<const char*>(end) - begin);
    sink_.Text(node, {begin, length});
    state_.position += (length + 1) * 8;
    return true;
  }

  bool Blob(const Node& node, uint64_t length) {
    if (!state_.Align(8) || length > state_.limit / 8 || !state_.Has(length * 8)) return false;
    sink_.Bytes(node, {state_.base + state_.position / 8, static_cast<size_t>(length)});
    state_.position += length * 8;
    return true;
  }

  bool Variant(const Node& node) {
    const uint64_t tag = state_.slots[node.reference];
    for (const VariantCase& one : node.cases) {
      const bool inside = node.tag_is_signed
                              ? static_cast<int64_t>(one.low) <= static_cast<int64_t>(tag) &&
                                    static_cast<int64_t>(tag) <= static_cast<int64_t>(one.high)
                              : one.low <= tag && tag <= one.high;
      if (!inside) continue;
      sink_.Compound(node, 1);
      return Walk(node.children[one.option]);
    }
    if (!node.may_be_empty) return false;
    sink_.Compound(node, 0);
    return true;
  }

  bool Elements(const Node& node, uint64_t length) {
    if (!state_.Align(node.alignment)) return false;
    if (node.is_text || node.role == Role::kUuid) {
      if (length > state_.limit / 8 || !state_.Has(length * 8)) return false;
      const uint8_t* begin = state_.base + state_.position / 8;
      const auto size = static_cast<size_t>(length);
      state_.position += length * 8;
      if (node.role == Role::kUuid) {
        sink_.Bytes(node, {begin, size});
      } else {
        const std::string_view text(reinterpret_cast<const char*>(begin), size);
        sink_.Text(node, text.substr(0, text.find('\0')));
      }
      return true;
    }
    // A length that the packet cannot hold is refused before a sink counts on it.
    if (length > state_.limit - state_.position && length > kEmptyElementsMax) return false;
    const size_t array = sink_.Array(node, length);
    bool full = false;
    for (uint64_t i = 0; i < length; ++i) {
      const uint64_t begin = state_.position;
      const uint64_t visits = state_.visits;
      if (!full && sink_.IsFull(i)) {
        full = true;
        sink_.Shorten(array, i);
      }
      if (!(full ? Skip(node.children[0]) : Walk(node.children[0]))) return false;
      if (state_.position != begin) continue;
      state_.empty_visits += state_.visits - visits;
      if (state_.empty_visits > kEmptyElementsMax) return false;
    }
    return true;
  }

  bool Skip(const Node& node) {
    NullSink nobody;
    return Walker<NullSink>(state_, nobody).Walk(node);
  }

  WalkState& state_;
  Sink& sink_;
};

template <class Sink>
bool WalkNode(const Node* node, WalkState& state, Sink& sink) {
  return node == nullptr || Walker<Sink>(state, sink).Walk(*node);
}

// Skipping elements one by one visits every bit; good enough for the obvious decoder.
inline bool SkipNode(const Node* node, WalkState& state) {
  NullSink sink;
  return WalkNode(node, state, sink);
}

// The reserved values that packet headers, packet contexts and event headers carry.
class RoleSink : public NullSink {
 public:
  void Integer(const Node& node, uint64_t value) {
    if (node.role == Role::kNone) return;
    const auto i = static_cast<size_t>(node.role);
    values_[i] = value;
    bits_[i] = static_cast<uint8_t>(node.size_bits);
  }
  void VariableInteger(const Node& node, uint64_t value, uint32_t bits) {
    Integer(node, value);
    if (node.role != Role::kNone) {
      bits_[static_cast<size_t>(node.role)] = static_cast<uint8_t>(std::min(bits, 64u));
    }
  }
  void Bytes(const Node& node, std::span<const uint8_t> bytes) {
    if (node.role == Role::kUuid) uuid_ = bytes;
  }

  bool has(Role role) const { return bits_[static_cast<size_t>(role)] != 0; }
  uint64_t value(Role role) const { return values_[static_cast<size_t>(role)]; }
  uint32_t bits(Role role) const { return bits_[static_cast<size_t>(role)]; }
  std::span<const uint8_t> uuid() const { return uuid_; }  // empty: none

 private:
  static constexpr size_t kRoles = static_cast<size_t>(Role::kTimestamp) + 1;
  uint64_t values_[kRoles] = {};
  uint8_t bits_[kRoles] = {};  // 0: absent
  std::span<const uint8_t> uuid_;
};

// A clock value of `bits` bits read after `previous`: the first value at or after it that ends so.
inline uint64_t ExtendClock(uint64_t previous, uint64_t value, uint32_t bits) {
  if (bits >= 64) return value;
  return previous + ((value - previous) & LowBits(bits));
}

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_WALK_H_
