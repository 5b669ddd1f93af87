// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/task_spans.h"

#include <algorithm>
#include <bit>

namespace syncline::analysis::why {
namespace {

// Of a number in groups of 7 bits, the lowest first.
constexpr uint8_t kMore = 0x80;
constexpr size_t kNumbers = 3;    // of a task: its begin since the one before, its length, its kind
constexpr size_t kBytesMax = 10;  // of a number

void Put(uint64_t number, std::vector<uint8_t>* bytes) {
  for (; number >= kMore; number >>= 7) bytes->push_back(static_cast<uint8_t>(number) | kMore);
  bytes->push_back(static_cast<uint8_t>(number));
}

uint64_t Get(const uint8_t** at) {
  uint64_t number = 0;
  for (unsigned shift = 0;; shift += 7) {
    const uint8_t byte = *(*at)++;
    number |= static_cast<uint64_t>(byte & ~kMore) << shift;
    if (byte < kMore) return number;
  }
}

// Small numbers of either sign to small ones without; differences wrap around.
uint64_t WithoutSign(int64_t number) {
  return (static_cast<uint64_t>(number) << 1) ^ static_cast<uint64_t>(number >> 63);
}
int64_t WithSign(uint64_t number) {
  return static_cast<int64_t>(number >> 1) ^ -static_cast<int64_t>(number & 1);
}
int64_t Minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t Plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace

size_t TaskSpans::HashKind::operator()(const Kind& kind) const {
  constexpr uint64_t kPrime = 0x9e3779b97f4a7c15;
  uint64_t hash = 0;
  for (const uint64_t part : {uint64_t{kind.name}, uint64_t{kind.category}, uint64_t{kind.shape},
                              uint64_t{kind.depth} * 2 + (kind.whole ? 1 : 0)}) {
    hash = (std::rotl(hash, 23) ^ part) * kPrime;
  }
  return hash;
}

void TaskSpans::Iterator::Read() {
  next_ = at_;
  if (at_ == spans_->bytes_.data() + spans_->bytes_.size()) return;
  span_.begin_ns = Plus(span_.begin_ns, WithSign(Get(&next_)));
  span_.end_ns = Plus(span_.begin_ns, WithSign(Get(&next_)));
  const Kind& kind = spans_->kinds_[Get(&next_)];
  span_.name = kind.name;
  span_.category = kind.category;
  span_.shape = kind.shape;
  span_.depth = kind.depth;
  span_.whole = kind.whole;
}

TaskSpans::TaskSpans(std::initializer_list<TaskSpan> spans)
    : TaskSpans(std::vector<TaskSpan>(spans)) {}

TaskSpans::TaskSpans(const std::vector<TaskSpan>& spans) {
  for (const TaskSpan& span : spans) push_back(span);
  Close();
}

void TaskSpans::push_back(const TaskSpan& span) {
  const Kind kind{span.name, span.category, span.shape, span.depth, span.whole};
  const auto [found, is_new] = known_.try_emplace(kind, static_cast<uint32_t>(kinds_.size()));
  if (is_new) kinds_.push_back(kind);
  // Twice as much at a time would be too much of what a thousand ranks have.
  if (bytes_.capacity() - bytes_.size() < kNumbers * kBytesMax) {
    bytes_.reserve(bytes_.size() + std::max<size_t>(bytes_.size() / 4, 256));
  }
  Put(WithoutSign(Minus(span.begin_ns, last_begin_ns_)), &bytes_);
  Put(WithoutSign(Minus(span.end_ns, span.begin_ns)), &bytes_);
  Put(found->second, &bytes_);
  last_begin_ns_ = span.begin_ns;
  ++size_;
}

std::vector<TaskSpan> TaskSpans::Unpack(std::vector<TaskSpan> buffer) const {
  buffer.clear();
  buffer.reserve(size_);
  for (const TaskSpan& span : *this) buffer.push_back(span);
  return buffer;
}

void TaskSpans::MoveShapes(NameId more) {
  for (Kind& kind : kinds_) kind.shape += kind.shape == 0 ? 0 : more;
  known_.clear();  // what is added from now on has kinds of its own
}

void TaskSpans::Close() {
  bytes_.shrink_to_fit();
  kinds_.shrink_to_fit();
  known_ = {};
}

}  // namespace syncline::analysis::why
