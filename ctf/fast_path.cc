// SPDX-License-Identifier: Apache-2.0
#include "ctf/fast_path.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "ctf/bits.h"
#include "ctf/layout.h"
#include "ctf/walk.h"

namespace syncline::ctf {
namespace {

bool IsNumber(const Node& node) {
  const bool number = node.kind == TypeKind::kInteger || node.kind == TypeKind::kEnum ||
                      node.kind == TypeKind::kFloat;
  const uint32_t size = node.size_bits;
  return number && node.alignment <= 8 && !node.reversed_bits && !node.variable_length &&
         (size == 8 || size == 16 || size == 32 || size == 64) &&
         (node.kind != TypeKind::kFloat || size >= 32);
}

inline uint64_t Load(const uint8_t* bytes, uint32_t width, bool big) {
  switch (width) {
    case 1:
      return *bytes;
    case 2:
      return LoadNumber<uint16_t>(bytes, big);
    case 4:
      return LoadNumber<uint32_t>(bytes, big);
    default:
      return LoadNumber<uint64_t>(bytes, big);
  }
}

inline void SetNumber(const FastField& field, bool real, uint64_t raw, FieldValue& value) {
  if (real) {
    value.d = RealFromBits(raw, field.width * 8u);
    return;
  }
  value.u = field.is_signed ? static_cast<uint64_t>(SignExtend(raw, field.width * 8u)) : raw;
  if (field.labels != nullptr) value.text = field.labels->Find(value.u);
}

inline FieldValue& Append(const FieldClass* field, std::vector<FieldValue>* values) {
  FieldValue& value = values->emplace_back();
  value.field = field;
  value.type = field->type;
  return value;
}

bool IsPlain(const Node& node, TypeKind kind, uint32_t size_bits, uint32_t alignment, Role role) {
  return node.kind == kind && node.size_bits == size_bits && node.alignment == alignment &&
         node.role == role && !node.is_signed && !node.big && !node.reversed_bits &&
         !node.variable_length;
}

bool IsExtended(const Node& node) {
  return node.kind == TypeKind::kStruct && node.alignment == 8 && node.children.size() == 2 &&
         IsPlain(node.children[0], TypeKind::kInteger, 32, 8, Role::kEventId) &&
         IsPlain(node.children[1], TypeKind::kInteger, 64, 8, Role::kTimestamp);
}

// Behind the NUL of the text that begins at `bytes`; null when there is none before `end`.
inline const uint8_t* SkipText(const uint8_t* bytes, const uint8_t* end) {
  const auto left = static_cast<size_t>(end - bytes);
#ifdef __SSE2__
  // Most texts are short, and of lengths that nobody can predict: no loop, no branch.
  if (left >= 32) {
    const auto nuls = [bytes](size_t at) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + at));
      return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_setzero_si128())));
    };
    const uint32_t found = nuls(0) | nuls(16) << 16;
    if (found != 0) return bytes + std::countr_zero(found) + 1;
  }
#endif
  const void* nul = left == 0 ? nullptr : std::memchr(bytes, 0, left);
  return nul == nullptr ? nullptr : static_cast<const uint8_t*>(nul) + 1;
}

}  // namespace

bool FastProgram::AddElements(const Node& node) {
  const bool sequence = node.kind == TypeKind::kSequence;
  FastField field;
  field.field = node.field;
  field.length = static_cast<uint32_t>(node.length);
  if (sequence) {
    // A length that stands in a header is not among these operations.
    const bool stored =
        std::any_of(fields_.begin(), fields_.end(), [&node](const FastField& earlier) {
          return earlier.op == FastOp::kInteger && earlier.store == node.reference;
        });
    if (!stored) return false;
    field.slot = static_cast<int8_t>(node.reference);
  } else if (node.length > UINT32_MAX / 8) {
    return false;
  }
  if (node.alignment > 8) return false;
  if (node.is_text) {
    field.op = sequence ? FastOp::kTextSequence : FastOp::kText;
    field.width = 1;
  } else {
    const Node& element = node.children[0];
    if (!IsNumber(element) || element.slot >= 0) return false;
    field.op = sequence ? FastOp::kSequence : FastOp::kArray;
    field.width = static_cast<uint8_t>(element.size_bits / 8);
    field.big = element.big;
    field.is_signed = element.is_signed;
    field.is_real = element.kind == TypeKind::kFloat;
    field.element = element.field;
    field.labels = element.labels.get();
  }
  fields_.push_back(field);
  return true;
}

bool FastProgram::Add(const Node& node) {
  if (node.field == nullptr) return false;
  FastField field;
  field.field = node.field;
  switch (node.kind) {
    case TypeKind::kInteger:
    case TypeKind::kEnum:
    case TypeKind::kFloat:
      if (!IsNumber(node) || node.slot >= kSlots) return false;
      field.op = node.kind == TypeKind::kFloat ? FastOp::kReal : FastOp::kInteger;
      field.width = static_cast<uint8_t>(node.size_bits / 8);
      field.big = node.big;
      field.is_signed = node.is_signed;
      field.store = static_cast<int8_t>(node.slot);
      field.labels = node.labels.get();
      fields_.push_back(field);
      return true;
    case TypeKind::kString:
      field.op = FastOp::kString;
      fields_.push_back(field);
      return node.alignment == 8 && node.unit_bytes == 1;
    case TypeKind::kStruct:
      if (node.alignment > 8) return false;
      field.op = FastOp::kStruct;
      field.length = static_cast<uint32_t>(node.children.size());
      fields_.push_back(field);
      for (const Node& child : node.children) {
        if (!Add(child)) return false;
      }
      return true;
    case TypeKind::kArray:
    case TypeKind::kSequence:
      return AddElements(node);
    default:
      return false;
  }
}

std::optional<FastProgram> CompileFast(const ScopeNodes& nodes) {
  if (nodes.has_header_fields) return std::nullopt;
  FastProgram program;
  for (const Scope scope : {Scope::kStreamContext, Scope::kEventContext, Scope::kPayload}) {
    const Node* root = nodes.root(scope);
    if (root == nullptr) continue;
    if (root->alignment > 8) return std::nullopt;
    for (const Node& child : root->children) {
      if (!program.Add(child)) return std::nullopt;
    }
  }
  program.MakePrototype();
  program.MakeHops();
  uint64_t bytes = 0;
  for (const FastField& field : program.fields_) {
    switch (field.op) {
      case FastOp::kInteger:
      case FastOp::kReal:
        bytes += field.width;
        break;
      case FastOp::kText:
      case FastOp::kArray:
        bytes += uint64_t{field.length} * field.width;
        break;
      case FastOp::kStruct:
        break;
      case FastOp::kString:
      case FastOp::kTextSequence:
      case FastOp::kSequence:
        return program;  // its size varies
    }
    if (bytes > UINT32_MAX) return std::nullopt;
  }
  program.fixed_bytes_ = static_cast<uint32_t>(bytes);
  return program;
}

void FastProgram::MakePrototype() {
  for (const FastField& field : fields_) {
    const bool plain = field.op == FastOp::kInteger
                           ? field.store < 0 && field.labels == nullptr
                           : field.op == FastOp::kReal && field.width == sizeof(double);
    if (!plain || field.big || std::endian::native != std::endian::little) return;
    FieldValue value;
    value.field = field.field;
    value.type = field.field->type;
    prototype_.push_back(value);
    plain_.push_back(
        {prototype_bytes_, static_cast<uint8_t>(64 - 8 * field.width), field.is_signed});
    prototype_bytes_ += field.width;
  }
}

std::vector<std::pair<const FieldClass*, FieldPlace>> FastProgram::Places() const {
  std::vector<std::pair<const FieldClass*, FieldPlace>> places;
  uint64_t offset = 0;
  for (const FastField& field : fields_) {
    if (offset > UINT32_MAX) break;
    FieldPlace place;
    place.width = field.width;
    place.big = field.big;
    place.offset = static_cast<uint32_t>(offset);
    switch (field.op) {
      case FastOp::kInteger:
        place.kind = field.is_signed ? FieldPlace::Kind::kSigned : FieldPlace::Kind::kUnsigned;
        places.emplace_back(field.field, place);
        offset += field.width;
        break;
      case FastOp::kReal:
        place.kind = FieldPlace::Kind::kReal;
        places.emplace_back(field.field, place);
        offset += field.width;
        break;
      case FastOp::kText:
      case FastOp::kArray:
        offset += uint64_t{field.length} * field.width;
        break;
      case FastOp::kStruct:
        break;
      case FastOp::kString:
        place.kind = FieldPlace::Kind::kText;
        places.emplace_back(field.field, place);
        return places;
      case FastOp::kTextSequence:
      case FastOp::kSequence:
        return places;
    }
  }
  return places;
}

void FastProgram::MakeHops() {
  uint64_t bytes = 0;
  const auto add = [&](Hop::To to, uint8_t width, uint8_t element, bool big, int8_t slot) {
    hops_.push_back({std::exchange(bytes, 0), to, width, element, big, slot});
  };
  for (const FastField& field : fields_) {
    switch (field.op) {
      case FastOp::kInteger:
      case FastOp::kReal:
        if (field.store < 0) {
          bytes += field.width;
        } else {
          add(Hop::To::kLength, field.width, 0, field.big, field.store);
        }
        break;
      case FastOp::kText:
      case FastOp::kArray:
        bytes += uint64_t{field.length} * field.width;
        break;
      case FastOp::kStruct:
        break;
      case FastOp::kString:
        add(Hop::To::kString, 0, 0, false, -1);
        break;
      case FastOp::kTextSequence:
      case FastOp::kSequence:
        // Most lengths stand right before what they are of.
        if (bytes == 0 && !hops_.empty() && hops_.back().to == Hop::To::kLength &&
            hops_.back().slot == field.slot) {
          hops_.back().to = Hop::To::kCounted;
          hops_.back().element = field.width;
        } else {
          add(Hop::To::kElements, 0, field.width, false, field.slot);
        }
        break;
    }
  }
  add(Hop::To::kEnd, 0, 0, false, -1);
}

const uint8_t* FastProgram::Skip(const uint8_t* bytes, const uint8_t* end) const {
  uint64_t slots[kSlots];
  for (const Hop* hop = hops_.data();; ++hop) {
    auto left = static_cast<uint64_t>(end - bytes);
    if (hop->bytes > left) return nullptr;
    bytes += hop->bytes;
    left -= hop->bytes;
    // Not a switch: processors predict these better than a jump through a table.
    if (hop->to == Hop::To::kEnd) return bytes;
    if (hop->to == Hop::To::kString) {
      bytes = SkipText(bytes, end);
      if (bytes == nullptr) return nullptr;
      continue;
    }
    if (hop->to != Hop::To::kElements) {
      if (hop->width > left) return nullptr;
      slots[hop->slot] = Load(bytes, hop->width, hop->big);
      bytes += hop->width;
      left -= hop->width;
    }
    if (hop->to != Hop::To::kLength) {
      const uint64_t length = slots[hop->slot];
      if (length > left || length * hop->element > left) return nullptr;
      bytes += length * hop->element;
    }
  }
}

// Reads up to seven bytes behind the last number.
void FastProgram::DecodePlain(const uint8_t* bytes, std::vector<FieldValue>* values) const {
  const size_t before = values->size();
  values->insert(values->end(), prototype_.begin(), prototype_.end());
  FieldValue* value = values->data() + before;
  for (const PlainNumber& plain : plain_) {
    uint64_t raw;
    std::memcpy(&raw, bytes + plain.offset, sizeof raw);
    raw <<= plain.shift;
    const auto extended = static_cast<uint64_t>(static_cast<int64_t>(raw) >> plain.shift);
    value->u = plain.is_signed ? extended : raw >> plain.shift;
    ++value;
  }
}

bool FastProgram::Decode(const uint8_t* bytes, const uint8_t* end,
                         std::vector<FieldValue>* values) const {
  size_t first = 0;
  if (static_cast<size_t>(end - bytes) >= prototype_bytes_ + sizeof(uint64_t)) {
    DecodePlain(bytes, values);
    bytes += prototype_bytes_;
    first = prototype_.size();
  }
  uint64_t slots[kSlots];
  for (size_t i = first; i < fields_.size(); ++i) {
    const FastField& field = fields_[i];
    FieldValue& value = Append(field.field, values);
    const auto left = static_cast<uint64_t>(end - bytes);
    switch (field.op) {
      case FastOp::kInteger:
      case FastOp::kReal:
        if (field.width > left) return false;
        SetNumber(field, field.op == FastOp::kReal, Load(bytes, field.width, field.big), value);
        if (field.store >= 0) slots[field.store] = value.u;
        bytes += field.width;
        break;
      case FastOp::kStruct:
        value.count = field.length;
        break;
      case FastOp::kString: {
        const auto* text = reinterpret_cast<const char*>(bytes);
        const void* nul = left == 0 ? nullptr : std::memchr(bytes, 0, left);
        if (nul == nullptr) return false;
        value.text = {text, static_cast<size_t>(static_cast<const char*>(nul) - text)};
        bytes += value.text.size() + 1;
        break;
      }
      case FastOp::kText:
      case FastOp::kTextSequence: {
        const uint64_t length = field.op == FastOp::kText ? field.length : slots[field.slot];
        if (length > left) return false;
        const std::string_view text(reinterpret_cast<const char*>(bytes), length);
        value.text = text.substr(0, text.find('\0'));
        bytes += length;
        break;
      }
      case FastOp::kArray:
      case FastOp::kSequence: {
        const uint64_t length = field.op == FastOp::kArray ? field.length : slots[field.slot];
        if (length > left / field.width) return false;
        const size_t room = kEventValuesMax - std::min(kEventValuesMax, values->size());
        const uint64_t taken = std::min<uint64_t>(length, std::max(room, kShortArray));
        value.count = static_cast<uint32_t>(taken);
        value.u = length;
        for (uint64_t n = 0; n < taken; ++n) {
          SetNumber(field, field.is_real, Load(bytes + n * field.width, field.width, field.big),
                    Append(field.element, values));
        }
        bytes += length * field.width;
        break;
      }
    }
  }
  return true;
}

FastHeader ClassifyHeader(const ScopeNodes& nodes) {
  const Node* root = nodes.root(Scope::kEventHeader);
  if (root == nullptr || root->alignment != 8 || root->children.size() != 2) {
    return FastHeader::kNone;
  }
  const Node& id = root->children[0];
  const Node& variant = root->children[1];
  if (variant.kind != TypeKind::kVariant || variant.reference != id.slot ||
      variant.children.size() != 2 || variant.cases.size() != 2 ||
      variant.children[0].kind != TypeKind::kStruct || variant.children[0].children.size() != 1 ||
      !IsExtended(variant.children[1])) {
    return FastHeader::kNone;
  }
  const Node& time = variant.children[0].children[0];
  const VariantCase& compact = variant.cases[0];
  const VariantCase& extended = variant.cases[1];
  const auto splits_at = [&](uint64_t last) {
    return compact.low == 0 && compact.high == last - 1 && compact.option == 0 &&
           extended.low == last && extended.high == last && extended.option == 1;
  };
  if (IsPlain(id, TypeKind::kEnum, 16, 8, Role::kEventId) && splits_at(65535) &&
      IsPlain(time, TypeKind::kInteger, 32, 8, Role::kTimestamp) &&
      variant.children[0].alignment == 8) {
    return FastHeader::kLarge;
  }
  if (IsPlain(id, TypeKind::kEnum, 5, 1, Role::kEventId) && splits_at(31) &&
      IsPlain(time, TypeKind::kInteger, 27, 1, Role::kTimestamp) &&
      variant.children[0].alignment == 1) {
    return FastHeader::kCompact;
  }
  return FastHeader::kNone;
}

}  // namespace syncline::ctf
