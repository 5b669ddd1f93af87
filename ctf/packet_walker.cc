// SPDX-License-Identifier: Apache-2.0
#include "ctf/packet_walker.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/time.h"
#include "ctf/bits.h"
#include "ctf/clocks.h"

namespace syncline::ctf {
namespace {

constexpr size_t kHeaderBytes = 512;  // far more than LTTng's 84
constexpr size_t kHeaderBytesMax = size_t{1} << 20;
constexpr size_t kSearchChunk = size_t{1} << 18;
constexpr size_t kStrongSignature = 20;  // magic number and uuid

std::string Describe(HeaderState state) {
  switch (state) {
    case HeaderState::kTooShort:
      return "the bytes end inside a packet's header";
    case HeaderState::kBadMagic:
      return "no packet begins where one must (wrong magic number)";
    case HeaderState::kBadUuid:
      return "a packet of another trace (wrong uuid)";
    case HeaderState::kUnknownStream:
      return "a packet of another stream than this file's, or of none that is known (wrong id)";
    case HeaderState::kBadSizes:
      return "the packet's sizes contradict each other";
    case HeaderState::kOk:
      break;
  }
  return "";
}

// A run of packets of which the same is said is one loss.
void AddUncounted(Loss loss, std::vector<Loss>& losses) {
  const bool goes_on = !losses.empty() && losses.back().reason == loss.reason &&
                       !losses.back().count && losses.back().end_ns == loss.begin_ns;
  if (goes_on) {
    losses.back().end_ns = loss.end_ns;
  } else {
    losses.push_back(std::move(loss));
  }
}

// These took the time of a packet's end before those of the last events in it. Where another packet
// follows, its begin tells how late they can be.
bool EndsPacketsEarly(const std::map<std::string, std::string>& environment) {
  const auto number = [&environment](const char* key) {
    const auto found = environment.find(key);
    int value = -1;
    if (found == environment.end() || !absl::SimpleAtoi(found->second, &value)) return -1;
    return value;
  };
  const auto tracer = environment.find("tracer_name");
  if (tracer == environment.end()) return false;
  const std::tuple version(number("tracer_major"), number("tracer_minor"),
                           number("tracer_patchlevel"));
  if (std::get<0>(version) < 0 || std::get<1>(version) < 0) return false;
  if (tracer->second == "lttng-ust") return version < std::tuple(2, 11, -1);
  if (tracer->second != "lttng-modules") return false;
  return version < std::tuple(2, 9, 13) ||
         (version >= std::tuple(2, 10, -1) && version < std::tuple(2, 10, 10));
}

}  // namespace

PacketWalker::PacketWalker(const TraceLayout& layout, ByteSource& source, std::string name,
                           const PacketRange& range)
    : layout_(layout),
      source_(source),
      name_(std::move(name)),
      signature_(PacketSignature(layout)),
      offset_(range.begin),
      end_(range.end),
      elsewhere_(range.before.elsewhere) {
  if (!range.indexed.empty()) index_.emplace(range.indexed);
  early_ends_ = EndsPacketsEarly(layout.metadata->environment);
  if (range.begin != 0) return;  // what lies between is not known
  last_sequence_ = range.before.number;
  last_discarded_ = range.before.discarded;
  last_ns_ = range.before.end_ns;
}

absl::StatusOr<PacketWalker::Candidate> PacketWalker::HeaderAt(uint64_t offset) {
  Candidate candidate;
  const HeaderContext context{clock_, stream_};
  for (size_t length = kHeaderBytes;; length = kHeaderBytesMax) {
    SYNCLINE_ASSIGN_OR_RETURN(const auto bytes, source_.Read(offset, length));
    candidate.state = ReadPacketHeader(layout_, bytes, context, &candidate.header);
    const bool all = bytes.size() < length || length == kHeaderBytesMax;
    if (candidate.state != HeaderState::kTooShort || all) return candidate;
  }
}

// Tells `before` when the packet that follows it begins.
absl::StatusOr<bool> PacketWalker::PacketOrEndAt(uint64_t offset, Packet* before) {
  if (offset >= source_.size()) return offset == source_.size();
  SYNCLINE_ASSIGN_OR_RETURN(const Candidate next, HeaderAt(offset));
  if (before != nullptr && next.sound() && next.header.begin_cycles) {
    before->next_begin_ns = CyclesToNs(next.header.stream->clock, *next.header.begin_cycles);
  }
  return next.sound() || next.state == HeaderState::kBadSizes;
}

absl::StatusOr<std::optional<uint64_t>> PacketWalker::FindPacket(uint64_t from, uint64_t to) {
  if (signature_.empty()) return std::nullopt;
  const bool strong = signature_.size() >= kStrongSignature;
  while (from + signature_.size() <= to) {
    const auto length = static_cast<size_t>(std::min<uint64_t>(kSearchChunk, to - from));
    SYNCLINE_ASSIGN_OR_RETURN(const auto chunk, source_.Read(from, length));
    if (chunk.size() < signature_.size()) return std::nullopt;
    const void* hit = ::memmem(chunk.data(), chunk.size(), signature_.data(), signature_.size());
    if (hit == nullptr) {
      from += chunk.size() - (signature_.size() - 1);
      continue;
    }
    from += static_cast<uint64_t>(static_cast<const uint8_t*>(hit) - chunk.data());
    SYNCLINE_ASSIGN_OR_RETURN(const Candidate candidate, HeaderAt(from));
    if (candidate.sound() || (strong && candidate.state == HeaderState::kBadSizes)) return from;
    ++from;
  }
  return std::nullopt;
}

// A packet whose magic number, uuid or stream id alone is damaged, between sound neighbours. That
// it is not another trace's, or another stream's, its number must tell, where not all else does.
absl::StatusOr<bool> PacketWalker::FitsChain(const Candidate& candidate) {
  const bool identity_only = candidate.state == HeaderState::kBadMagic ||
                             candidate.state == HeaderState::kBadUuid ||
                             candidate.state == HeaderState::kUnknownStream;
  const PacketHeader& header = candidate.header;
  if (!identity_only || header.stream == nullptr || header.header_bits == 0) return false;
  if (!header.content_bits || !header.packet_bits || *header.content_bits < header.header_bits ||
      *header.content_bits > *header.packet_bits || *header.packet_bits % 8 != 0) {
    return false;
  }
  const uint64_t bytes = *header.packet_bits / 8;
  if (bytes > source_.size() - offset_) return false;
  if (header.names_another) {
    SYNCLINE_ASSIGN_OR_RETURN(const bool numbered, IsNextByNumber(header, offset_ + bytes));
    if (!numbered) return false;
  }
  return PacketOrEndAt(offset_ + bytes);
}

// Whether it follows the packet before, or is followed by the next one.
absl::StatusOr<bool> PacketWalker::IsNextByNumber(const PacketHeader& header, uint64_t next) {
  if (!header.sequence) return false;
  const uint64_t mask = LowBits(header.sequence_width);
  if (last_sequence_) return *header.sequence == ((*last_sequence_ + 1) & mask);
  if (next >= source_.size()) return false;
  SYNCLINE_ASSIGN_OR_RETURN(const Candidate behind, HeaderAt(next));
  return behind.sound() && behind.header.sequence == ((*header.sequence + 1) & mask);
}

// A file's packets are of one stream class. Where the first two say different ones, the third tells
// which of them is wrong.
absl::Status PacketWalker::ChooseStream() {
  const StreamLayout* said[3] = {};
  uint64_t offset = offset_;
  for (const StreamLayout*& one : said) {
    const bool agreed = said[1] != nullptr && said[0] == said[1];
    if (agreed || offset >= source_.size()) break;
    SYNCLINE_ASSIGN_OR_RETURN(const Candidate candidate, HeaderAt(offset));
    if (!candidate.sound() || !candidate.header.closed() || !candidate.header.has_sizes) break;
    one = candidate.header.stream;
    offset += *candidate.header.packet_bits / 8;
  }
  stream_ = said[2] != nullptr && said[1] == said[2] ? said[1] : said[0];
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Packet>> PacketWalker::Next() {
  if (stream_ == nullptr && layout_.streams.size() > 1) {
    SYNCLINE_RETURN_IF_ERROR(ChooseStream());
  }
  while (offset_ < source_.size() && offset_ < end_) {
    SYNCLINE_ASSIGN_OR_RETURN(const Candidate candidate, HeaderAt(offset_));
    bool usable = candidate.sound() || candidate.state == HeaderState::kBadSizes;
    if (!usable) {
      SYNCLINE_ASSIGN_OR_RETURN(usable, FitsChain(candidate));
    }
    if (!usable) {
      SYNCLINE_ASSIGN_OR_RETURN(const bool found, SkipDamage(candidate));
      if (!found) break;
      continue;
    }
    const size_t losses = losses_.size();
    SYNCLINE_ASSIGN_OR_RETURN(Packet packet, Measure(candidate));
    if (!candidate.sound() && candidate.state != HeaderState::kBadSizes) SayDamaged(candidate);
    offset_ += packet.bytes;
    if (IsElsewhere(packet.offset)) {
      losses_.resize(losses);  // whatever it lacks here
      PassOver(packet);
      continue;
    }
    Count(packet);
    return packet;
  }
  if (end_ >= source_.size()) SettleOddCount();
  offset_ = source_.size();
  SettlePending(kUnknownHi);
  return std::nullopt;
}

absl::StatusOr<bool> PacketWalker::SkipDamage(const Candidate& candidate) {
  closed_ = false;
  skipped_ = true;
  SYNCLINE_ASSIGN_OR_RETURN(const auto next, FindPacket(offset_ + 1, source_.size()));
  const uint64_t end = next.value_or(source_.size());
  const bool tail = candidate.state == HeaderState::kTooShort && !next;
  LoseBefore(tail ? LossReason::kTruncated : LossReason::kCorruptPacket,
             absl::StrCat(Describe(candidate.state), ": ", end - offset_, " bytes at byte ",
                          offset_, next ? " were skipped" : " to the end cannot be read"));
  offset_ = end;
  return next.has_value();
}

absl::StatusOr<Packet> PacketWalker::Measure(const Candidate& candidate) {
  Packet packet;
  packet.header = candidate.header;
  packet.offset = offset_;
  const ClockClass* clock = candidate.header.stream->clock;
  packet.begin_ns = CyclesToNs(clock, candidate.header.begin_cycles.value_or(clock_));
  if (candidate.header.end_cycles) {
    packet.end_ns = CyclesToNs(clock, *candidate.header.end_cycles);
  }
  const bool bad_sizes = candidate.state == HeaderState::kBadSizes;
  if (!candidate.header.has_sizes) {
    packet.bytes = source_.size() - offset_;  // one packet is the whole stream
    packet.content_bits = packet.bytes * 8;
  } else if (bad_sizes || !candidate.header.closed()) {
    SYNCLINE_RETURN_IF_ERROR(MeasureOpen(packet, bad_sizes));
  } else {
    SYNCLINE_RETURN_IF_ERROR(MeasureClosed(packet));
  }
  packet.end_is_early = early_ends_ && !packet.next_begin_ns;
  return packet;
}

absl::Status PacketWalker::MeasureOpen(Packet& packet, bool bad_sizes) {
  closed_ = false;
  SYNCLINE_ASSIGN_OR_RETURN(const auto next, FindPacket(offset_ + 1, source_.size()));
  packet.bytes = next.value_or(source_.size()) - offset_;
  packet.content_bits = packet.bytes * 8;
  packet.open_ended = true;
  packet.cut = true;
  LoseIn(packet, bad_sizes ? LossReason::kCorruptPacket : LossReason::kTruncated,
         bad_sizes ? Describe(HeaderState::kBadSizes)
                   : "the packet was never closed: its writer died or was still recording");
  return absl::OkStatus();
}

absl::Status PacketWalker::MeasureClosed(Packet& packet) {
  const uint64_t rest = source_.size() - offset_;
  const uint64_t content = *packet.header.content_bits;
  packet.bytes = *packet.header.packet_bits / 8;
  packet.content_bits = content;
  bool chained = packet.bytes <= rest;
  if (chained) {
    SYNCLINE_ASSIGN_OR_RETURN(chained, PacketOrEndAt(offset_ + packet.bytes, &packet));
  }
  // A size that is too large may hide packets. In a chain that holds they can only be in the
  // padding.
  const uint64_t search_begin = chained ? content / 8 : packet.header.header_bits / 8;
  const uint64_t search_end = std::min(rest, packet.bytes + (chained ? 0 : signature_.size()));
  std::optional<uint64_t> inside;
  if (search_begin < search_end) {
    SYNCLINE_ASSIGN_OR_RETURN(
        inside, FindPacket(offset_ + std::max<uint64_t>(1, search_begin), offset_ + search_end));
  }
  if (inside && *inside - offset_ >= packet.bytes) inside.reset();
  if (inside) packet.next_begin_ns.reset();
  if (inside) {
    packet.bytes = *inside - offset_;
    packet.content_bits = std::min(content, packet.bytes * 8);
    packet.cut = content > packet.content_bits;
    closed_ = false;
    LoseIn(packet, LossReason::kCorruptPacket,
           absl::StrCat("the packet says that it has ", *packet.header.packet_bits / 8,
                        " bytes, but another begins after ", packet.bytes));
  } else if (packet.bytes > rest) {
    packet.bytes = rest;
    packet.content_bits = std::min(content, rest * 8);
    packet.cut = content > packet.content_bits;
    closed_ = false;
    LoseIn(packet, LossReason::kTruncated,
           absl::StrCat("the file ends ", *packet.header.packet_bits / 8 - rest,
                        " bytes before its last packet does"));
  } else {
    CompareWithIndex(packet);
  }
  return absl::OkStatus();
}

// Which of the two is damaged nobody can tell; the packet is read as it says.
void PacketWalker::CompareWithIndex(Packet& packet) {
  if (!index_) return;
  const std::optional<uint64_t> said = index_->ContentOf(packet.offset, packet.header);
  if (!said || *said == packet.content_bits) return;
  closed_ = false;
  LoseIn(packet, LossReason::kCorruptPacket,
         absl::StrCat("the packet at byte ", packet.offset, " says that it holds ",
                      packet.content_bits / 8, " bytes, but its index says ", *said / 8));
}

// That its header is not what it was; nothing of its events is missing for that.
void PacketWalker::SayDamaged(const Candidate& candidate) {
  const ClockClass* const clock = candidate.header.stream->clock;
  const int64_t begin_ns = CyclesToNs(clock, candidate.header.begin_cycles.value_or(clock_));
  losses_.push_back({LossReason::kCorruptPacket, begin_ns,
                     CyclesToNs(clock, candidate.header.end_cycles.value_or(clock_)), 0, name_,
                     absl::StrCat(Describe(candidate.state), " at byte ", offset_,
                                  ", but all else of it fits its neighbours: it was read")});
}

bool PacketWalker::IsElsewhere(uint64_t offset) const {
  return elsewhere_ != nullptr &&
         std::binary_search(elsewhere_->begin(), elsewhere_->end(), offset);
}

void PacketWalker::PassOver(const Packet& packet) {
  SettlePending(packet.begin_ns);
  if (packet.header.sequence) last_sequence_ = packet.header.sequence;
  const std::optional<uint64_t>& discarded = packet.header.discarded;
  if (discarded && *discarded >> 63 == 0) {
    last_discarded_ = std::max(*discarded, last_discarded_.value_or(0));
  }
  GoOnBehind(packet);
}

void PacketWalker::Count(const Packet& packet) {
  SettlePending(packet.begin_ns);
  if (packet.loss && !packet.end_ns) pending_.push_back(*packet.loss);
  if (packet.header.early_end_cycles) {
    // Either may be the damaged one: in doubt is all that neither it nor the next packet excludes.
    const int64_t end_ns = CyclesToNs(packet.header.stream->clock, *packet.header.early_end_cycles);
    pending_.push_back(losses_.size());
    losses_.push_back({LossReason::kCorruptPacket, std::min(packet.begin_ns, end_ns), kUnknownHi,
                       std::nullopt, name_, "the packet says that it ends before it begins"});
  }
  CountSequence(packet);
  CountDiscarded(packet);
  ++packets_;
  GoOnBehind(packet);
}

void PacketWalker::GoOnBehind(const Packet& packet) {
  skipped_ = false;
  stream_ = packet.header.stream;
  clock_ = packet.header.end_cycles.value_or(packet.header.begin_cycles.value_or(clock_));
  last_ns_ = packet.end_ns.value_or(packet.begin_ns);
}

void PacketWalker::CountSequence(const Packet& packet) {
  if (!packet.header.sequence) return;
  const uint64_t mask = LowBits(packet.header.sequence_width);
  const uint64_t now = *packet.header.sequence;
  if (last_sequence_) {
    const uint64_t gap = (now - *last_sequence_ - 1) & mask;
    const bool backwards = gap > mask / 2;
    if (!backwards) sequence_gaps_ += gap;
    // The packets of a damaged stretch are reported as that already.
    if (gap != 0 && !skipped_) {
      Loss loss{LossReason::kLostPackets, last_ns_, packet.begin_ns, std::nullopt, name_, ""};
      if (!backwards) loss.count = gap;
      loss.detail = absl::StrCat("packet ", now, " follows packet ", *last_sequence_);
      losses_.push_back(std::move(loss));
    }
  }
  last_sequence_ = now;
}

// LTTng sometimes sets bit 63. What the other bits say is believed only where a later count bears
// it out, or none follows.
void PacketWalker::KeepOddCount(const Packet& packet) {
  discarded_valid_ = false;
  if (!odd_count_) {
    const bool first = packet.header.sequence.value_or(packets_) == 0;
    odd_count_ = OddCount{};  // clang 14 takes no emplace() of a nested class with initializers
    odd_count_->before = last_discarded_;
    if (first && !last_discarded_) odd_count_->before = 0;
    odd_count_->begin_ns = last_ns_ == kUnknownLo ? packet.begin_ns : last_ns_;
  }
  odd_count_->low_bits = *packet.header.discarded & LowBits(63);
  odd_count_->end_ns = std::max(odd_count_->begin_ns, packet.end_ns.value_or(packet.begin_ns));
}

void PacketWalker::SettleOddCount() {
  if (!odd_count_) return;
  const OddCount odd = *std::exchange(odd_count_, std::nullopt);
  if (!odd.before || odd.low_bits == *odd.before) return;
  Loss loss{LossReason::kDiscardedEvents,
            odd.begin_ns,
            odd.end_ns,
            std::nullopt,
            name_,
            absl::StrCat("the tracer's buffers were full; its count of lost events is damaged (bit "
                         "63 is set), and was ",
                         *odd.before, " before")};
  constexpr uint64_t kBelievable = uint64_t{1} << 40;  // a guess: days of a full buffer
  if (odd.low_bits > *odd.before && odd.low_bits - *odd.before < kBelievable) {
    loss.count = odd.low_bits - *odd.before;
    discarded_events_ += *loss.count;
  }
  losses_.push_back(std::move(loss));
}

void PacketWalker::CountDiscarded(const Packet& packet) {
  if (!packet.header.discarded) return;
  const uint32_t width = packet.header.discarded_width;
  const uint64_t now = *packet.header.discarded;
  if (width == 64 && now >> 63 != 0) return KeepOddCount(packet);
  const std::optional<OddCount> odd = std::exchange(odd_count_, std::nullopt);
  // The count begins with the stream, unless its first packets are elsewhere (rotation,
  // overwriting).
  const bool first = packet.header.sequence.value_or(packets_) == 0;
  const std::optional<uint64_t> before = odd               ? odd->before
                                         : last_discarded_ ? last_discarded_
                                         : first           ? std::optional<uint64_t>(0)
                                                           : std::nullopt;
  if (!before) {
    last_discarded_ = now;
    return;
  }
  const uint64_t grown = (now - *before) & LowBits(width);
  // What grew behind an odd count may have been lost before it.
  const int64_t begin_ns = odd                      ? odd->begin_ns
                           : last_ns_ == kUnknownLo ? packet.begin_ns
                                                    : last_ns_;
  const int64_t end_ns = packet.end_ns.value_or(packet.begin_ns);
  if (grown > LowBits(width) / 2) {
    // LTTng sometimes writes a single packet with a smaller count, often 0, and then goes on where
    // it was: keeping the largest so far counts no loss twice.
    discarded_valid_ = false;
    if (width == 64) return;
    // A narrow count goes around, and then this may be a great loss.
    AddUncounted(
        {LossReason::kDiscardedEvents, begin_ns, std::max(begin_ns, end_ns), std::nullopt, name_,
         absl::StrCat("the tracer's count of lost events went from ", *before, " to ", now,
                      ": it has gone around, or is damaged")},
        losses_);
    return;
  }
  last_discarded_ = now;
  if (grown == 0) return;
  discarded_events_ += grown;
  losses_.push_back({LossReason::kDiscardedEvents, begin_ns, end_ns, grown, name_,
                     "the tracer's buffers were full; larger or more sub-buffers avoid it"});
}

void PacketWalker::LoseBefore(LossReason reason, std::string detail) {
  pending_.push_back(losses_.size());
  losses_.push_back({reason, last_ns_, kUnknownHi, std::nullopt, name_, std::move(detail)});
}

void PacketWalker::LoseIn(Packet& packet, LossReason reason, std::string detail) {
  packet.loss = losses_.size();
  losses_.push_back({reason, packet.begin_ns, packet.end_ns.value_or(kUnknownHi), std::nullopt,
                     name_, std::move(detail)});
}

void PacketWalker::NarrowLoss(size_t index, int64_t begin_ns) {
  Loss& loss = losses_[index];
  loss.begin_ns = std::min(std::max(loss.begin_ns, begin_ns), loss.end_ns);
}

void PacketWalker::SettlePending(int64_t end_ns) {
  for (const size_t index : pending_) {
    losses_[index].end_ns = std::max(losses_[index].begin_ns, end_ns);
  }
  pending_.clear();
}

}  // namespace syncline::ctf
