// SPDX-License-Identifier: Apache-2.0
#include "export/ctf/stream_copy.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/status.h"
#include "ctf/clocks.h"
#include "ctf/event_header.h"
#include "ctf/walk.h"

namespace syncline::ctf_export {
namespace {

using ctf::FastHeader;
using ctf::Role;

constexpr size_t kPacketUnit = 4096;  // packets are padded to whole pages, as LTTng's are
// Of packets that are read together: what a second-level cache holds, but two if they fit
// kPairBytes.
constexpr size_t kRunBytes = size_t{1} << 19;
constexpr size_t kPairBytes = size_t{1} << 21;
constexpr size_t kMadeBytes = size_t{1} << 19;
constexpr int64_t kEpochMax = int64_t{1} << 61;  // of a ClockLine nothing overflows with it

constexpr size_t Padded(uint64_t bytes) {
  return static_cast<size_t>((bytes + kPacketUnit - 1) / kPacketUnit * kPacketUnit);
}

void Put(std::span<const uint8_t> bytes, std::ostream& out) {
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

// A packet that says to end behind the next one's begin is wrong, or that one's events would be.
std::optional<int64_t> EndOf(const ctf::Packet& packet) {
  if (!packet.end_ns || !packet.next_begin_ns) return packet.end_ns;
  return std::min(*packet.end_ns, *packet.next_begin_ns);
}

}  // namespace

absl::Status StreamCopy::Run(std::ostream& out) {
  for (bool more = true; more;) {
    SYNCLINE_ASSIGN_OR_RETURN(more, Collect());
    RewriteAll();
    for (Piece& piece : run_) SYNCLINE_RETURN_IF_ERROR(Write(piece, out));
    Flush(out);
  }
  return absl::OkStatus();
}

// Reads packets for a run; false when there are no more.
absl::StatusOr<bool> StreamCopy::Collect() {
  run_.clear();
  size_t used = 0;
  for (;;) {
    if (!next_) {
      SYNCLINE_ASSIGN_OR_RETURN(next_, walker_.Next());
    }
    if (!next_ || placement_.At(next_->begin_ns) >= options_.window.end) return false;
    const size_t room = Padded(next_->bytes);
    if (used > 0 && used + room > (run_.size() == 1 ? kPairBytes : kRunBytes)) return true;
    Piece& piece = run_.emplace_back(Piece{*std::exchange(next_, std::nullopt)});
    piece.end_ns = EndOf(piece.packet);
    piece.wanted = !piece.end_ns || placement_.At(*piece.end_ns) >= options_.window.begin;
    if (!piece.wanted) continue;
    piece.begin = used;
    used += room;
    SYNCLINE_RETURN_IF_ERROR(Read(piece));
  }
}

absl::Status StreamCopy::Read(Piece& piece) {
  const auto size = static_cast<size_t>(piece.packet.bytes);
  const size_t needed = std::max(piece.begin + Padded(size), kPairBytes);
  if (room_.size() < needed) {  // the run has no other packet then
    room_ = {};
    room_.resize(needed);
  }
  uint8_t* const packet = room_.data() + piece.begin;
  SYNCLINE_RETURN_IF_ERROR(source_.ReadPacketInto(piece.packet.offset, {packet, size}));
  piece.places = HeaderPlaces::Find(piece.packet.header.stream->nodes, {packet, size});
  if (!piece.places || piece.packet.header.header_bits % 8 != 0) {
    piece.places.reset();
    return absl::OkStatus();
  }
  for (const Role role :
       {Role::kTimestampBegin, Role::kTimestampEnd, Role::kContentSize, Role::kPacketSize}) {
    if (!piece.places->Writable(role)) {
      return absl::UnimplementedError("its packets' sizes and times are not whole bytes");
    }
  }
  MakeLane(piece);
  return absl::OkStatus();
}

bool StreamCopy::IsAllWanted(const ctf::Packet& packet) {
  const timeline::Interval& window = options_.window;
  if (!IsOpen() && placement_.At(packet.begin_ns) < window.begin) return false;
  if (window.end.ns == kUnknownHi) return true;
  const std::optional<int64_t> latest_ns = packet.latest_ns();
  return latest_ns && placement_.At(*latest_ns) < window.end;
}

// What is to be written where the trace's clock reads `clock`.
std::optional<clocksync::ClockLine> StreamCopy::LineAt(uint64_t clock) {
  const int64_t epoch_unix_ns = options_.epoch_unix_ns;
  if (epoch_unix_ns < -kEpochMax || epoch_unix_ns > kEpochMax) return std::nullopt;
  std::optional<clocksync::ClockLine> line = placement_.LineAt(static_cast<int64_t>(clock));
  if (line) line->y += epoch_unix_ns;
  return line;
}

void StreamCopy::MakeLane(Piece& piece) {
  const ctf::Packet& packet = piece.packet;
  const ctf::StreamLayout& stream = *packet.header.stream;
  const auto latest = static_cast<uint64_t>(packet.latest_ns().value_or(ctf::Packet::kLatestNs));
  if (stream.fast_header == FastHeader::kNone || !ctf::CountsTraceNs(stream.clock) ||
      packet.open_ended || !packet.header.begin_cycles || *packet.header.begin_cycles > latest ||
      !IsAllWanted(packet)) {
    return;
  }
  TimeLane& lane = piece.lane;
  lane.clock = *packet.header.begin_cycles;
  const auto line = LineAt(lane.clock);
  if (!line) return;
  lane.line = *line;
  lane.value = ValueOf(placement_.At(packet.begin_ns));
  lane.latest = latest;
  uint8_t* const bytes = room_.data() + piece.begin;
  lane.at = bytes + packet.header.header_bits / 8;
  lane.end = bytes + std::min(packet.bytes, packet.content_bits / 8);
  if (lane.at <= lane.end) lane.stream = &stream;
}

// Goes on behind what a lane stopped at; false: it is not for lanes, or the packet ends there.
bool StreamCopy::PassStop(TimeLane& lane) {
  if (RewriteTime(lane)) return true;
  const std::optional<uint64_t> clock = NextClock(lane);
  if (!clock || *clock > lane.latest || static_cast<int64_t>(*clock) <= lane.line.last) {
    return false;
  }
  const auto line = LineAt(*clock);
  if (!line) return false;
  lane.line = *line;
  return RewriteTime(lane);
}

void StreamCopy::RewriteAll() {
  std::array<TimeLane, kTimeLanes> lanes;
  std::array<TimeLane*, kTimeLanes> owners{};
  size_t count = 0;
  for (size_t next = 0;;) {
    for (; next < run_.size() && count < kTimeLanes; ++next) {
      TimeLane& lane = run_[next].lane;
      if (lane.stream == nullptr) continue;
      if (count > 0 && lane.stream != lanes[0].stream) break;
      owners[count] = &lane;
      lanes[count++] = lane;
    }
    if (count == 0) return;
    RewriteTimes({lanes.data(), count});
    for (size_t i = count; i-- > 0;) {
      if (PassStop(lanes[i])) continue;
      *owners[i] = lanes[i];
      --count;
      lanes[i] = lanes[count];
      owners[i] = owners[count];
    }
  }
}

void StreamCopy::Flush(std::ostream& out) {
  Put(std::span(room_).subspan(ready_begin_, ready_end_ - ready_begin_), out);
  ready_begin_ = ready_end_;
}

absl::Status StreamCopy::Write(const Piece& piece, std::ostream& out) {
  if (!piece.wanted) {
    last_ns_ = std::max(last_ns_, *piece.end_ns);
    clock_ = piece.packet.header.end_cycles.value_or(clock_);
    return absl::OkStatus();
  }
  if (!piece.places) return absl::OkStatus();
  const TimeLane& lane = piece.lane;
  const bool in_order = lane.stream != nullptr && piece.packet.begin_ns >= last_ns_;
  const bool whole = in_order && lane.at == lane.end && piece.packet.content_bits % 8 == 0;
  if (!whole) return WriteByEvent(piece, in_order, out);
  clock_ = lane.clock;
  if (LeavesOut(lane.events, placement_.At(piece.packet.begin_ns))) return absl::OkStatus();
  if (lane.events > 0) last_ns_ = static_cast<int64_t>(lane.clock);
  events_ += lane.events;
  value_ = lane.value;
  uint8_t* const packet = room_.data() + piece.begin;
  const auto content = static_cast<size_t>(lane.at - packet);
  const size_t size = Padded(content);
  std::fill_n(lane.at, size - content, uint8_t{0});
  SYNCLINE_RETURN_IF_ERROR(
      PutHeader(piece, {placement_.At(piece.packet.begin_ns), content * 8, size}, packet));
  if (piece.begin != ready_end_) {
    Flush(out);
    ready_begin_ = piece.begin;
  }
  ready_end_ = piece.begin + size;
  bytes_ += size;
  return absl::OkStatus();
}

absl::Status StreamCopy::PutHeader(const Piece& piece, const Extent& extent, uint8_t* header) {
  const uint64_t begin = ValueOf(extent.begin);
  uint64_t end = std::max(value_, begin);
  if (piece.end_ns && placement_.At(*piece.end_ns) < options_.window.end) {
    end = std::max(end, ValueOf(placement_.At(*piece.end_ns)));
  }
  const HeaderPlaces& places = *piece.places;
  if (!places.Holds(Role::kPacketSize, extent.bytes * 8) ||
      !places.Holds(Role::kContentSize, extent.content_bits)) {
    return absl::UnimplementedError(
        "one of its packets becomes larger than its size field can express");
  }
  places.Put(Role::kTimestampBegin, begin, header);
  places.Put(Role::kTimestampEnd, end, header);
  places.Put(Role::kContentSize, extent.content_bits, header);
  places.Put(Role::kPacketSize, extent.bytes * 8, header);
  places.PutUuid(uuid_, header);
  places.Put(Role::kMagic, ctf::kStreamMagic, header);  // they may be damaged, as the uuid may
  if (places.Writable(Role::kStreamId)) {
    places.Put(Role::kStreamId, piece.packet.header.stream->id, header);
  }
  last_ns_ = std::max(last_ns_, piece.end_ns.value_or(last_ns_));
  return absl::OkStatus();
}

// A packet that is not, or not from some event on, a matter of lanes.
absl::Status StreamCopy::WriteByEvent(const Piece& piece, bool in_order, std::ostream& out) {
  Flush(out);
  const ctf::Packet& packet = piece.packet;
  SYNCLINE_ASSIGN_OR_RETURN(const auto bytes,
                            source_.ReadPacket(packet.offset, static_cast<size_t>(packet.bytes)));
  const size_t header_bytes = packet.header.header_bits / 8;
  std::vector<uint8_t> header(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(header_bytes));
  const TimelineTime begin =
      std::max(placement_.At(std::max(packet.begin_ns, last_ns_)), options_.window.begin);
  decoder_.Begin(packet, bytes, clock_);
  value_ = ValueOf(begin);
  content_bits_ = packet.header.header_bits;
  made_ = header;
  made_begin_ = 0;
  const uint64_t events_before = events_;
  if (in_order && piece.lane.events > 0) TakeOver(piece, bytes, out);
  CopyEvents(packet, bytes, out);
  clock_ = decoder_.clock();
  if (LeavesOut(events_ - events_before, begin)) return absl::OkStatus();
  const size_t size = Padded(made_begin_ + made_.size());
  made_.resize(size - made_begin_);
  const Extent extent{begin, content_bits_, size};
  const bool all_here = made_begin_ == 0;
  SYNCLINE_RETURN_IF_ERROR(PutHeader(piece, extent, all_here ? made_.data() : header.data()));
  FlushMade(out);
  if (!all_here) {
    out.seekp(static_cast<std::streamoff>(bytes_));
    Put(header, out);
    out.seekp(0, std::ios::end);
  }
  bytes_ += size;
  return absl::OkStatus();
}

void StreamCopy::FlushMade(std::ostream& out) {
  Put(made_, out);
  made_begin_ += made_.size();
  made_.clear();
}

// What the lane wrote over stands.
void StreamCopy::TakeOver(const Piece& piece, std::span<const uint8_t> bytes, std::ostream& out) {
  const uint8_t* const packet = room_.data() + piece.begin;
  const auto content = static_cast<size_t>(piece.lane.at - packet);
  ctf::Lane lane;
  lane.base = bytes.data();
  lane.at = bytes.data() + content;
  lane.clock = piece.lane.clock;
  decoder_.Resume(lane);
  last_ns_ = static_cast<int64_t>(piece.lane.clock);
  value_ = piece.lane.value;
  events_ += piece.lane.events;
  content_bits_ = content * 8;
  made_.clear();
  made_begin_ = content;
  Put({packet, content}, out);
}

void StreamCopy::CopyEvents(const ctf::Packet& packet, std::span<const uint8_t> bytes,
                            std::ostream& out) {
  const ctf::StreamLayout& stream = *packet.header.stream;
  const int64_t latest_ns = packet.latest_ns().value_or(ctf::Packet::kLatestNs);
  ctf::FoundEvent event;
  while (decoder_.Next(&event) == ctf::Step::kEvent) {
    const int64_t time_ns = ctf::CyclesToNs(stream.clock, event.cycles);
    if (time_ns < last_ns_ || time_ns > latest_ns) {
      decoder_.RejectTime();
      continue;
    }
    last_ns_ = time_ns;
    const TimelineTime time = placement_.At(time_ns);
    if (time < options_.window.begin) continue;
    if (time >= options_.window.end) break;
    Emit(stream.fast_header, event, bytes, ValueOf(time));
    if (made_.size() >= kMadeBytes) FlushMade(out);
  }
}

// A short header stays short as long as its time can be told from the one before.
void StreamCopy::Emit(FastHeader kind, const ctf::FoundEvent& event,
                      std::span<const uint8_t> packet, uint64_t value) {
  const bool was_brief = event.body_bits - event.begin_bits < 8 * ctf::kLongEventHeaderBytes;
  const bool brief = was_brief && value - value_ < BriefSpan(kind);
  std::array<uint8_t, ctf::kEventHeaderBytesMax> header;
  const size_t header_bytes =
      ctf::WriteEventHeader(kind, brief, static_cast<uint32_t>(event.id), value, header.data());
  const auto body =
      packet.subspan(event.body_bits / 8, (event.end_bits + 7) / 8 - event.body_bits / 8);
  made_.insert(made_.end(), header.begin(), header.begin() + static_cast<ptrdiff_t>(header_bytes));
  content_bits_ = (made_begin_ + made_.size()) * 8 + (event.end_bits - event.body_bits);
  made_.insert(made_.end(), body.begin(), body.end());
  value_ = value;
  ++events_;
}

}  // namespace syncline::ctf_export
