#include "export/ctf/trace_copy.h"

#include <uuid/uuid.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "ctf/ctf18_words.h"
#include "ctf/decoder.h"
#include "ctf/event_header.h"
#include "ctf/metadata.h"
#include "ctf/packet_index.h"
#include "ctf/packet_walker.h"
#include "ctf/stream_summary.h"
#include "ctf/tsdl_writer.h"
#include "ctf/walk.h"

namespace syncline::ctf_export {
namespace {

using ctf::FastHeader;
using ctf::Role;

constexpr size_t kPacketUnit = 4096;  // packets are padded to whole pages, as LTTng's are

// A name-based uuid (RFC 9562, version 5) below a namespace of our own: the same name, the same
// uuid.
ctf::Uuid UuidOf(const std::string& name) {
  static constexpr uuid_t kNamespace = {0x8f, 0x2c, 0x51, 0x0e, 0x47, 0x1a, 0x4b, 0x63,
                                        0x9d, 0x35, 0x6e, 0x10, 0xc8, 0xf4, 0x72, 0xb9};
  ctf::Uuid uuid{};
  uuid_generate_sha1(uuid.data(), kNamespace, name.data(), name.size());
  return uuid;
}

// Where the numbers stand that a packet's header is corrected by; bits, 0: absent.
class HeaderPlaces : public ctf::NullSink {
 public:
  explicit HeaderPlaces(const ctf::WalkState& state) : state_(state) {}

  void Integer(const ctf::Node& node, uint64_t) {
    if (node.role == Role::kNone) return;
    places_[static_cast<size_t>(node.role)] = {state_.position - node.size_bits, node.size_bits,
                                               node.big};
  }
  void Bytes(const ctf::Node& node, std::span<const uint8_t> bytes) {
    if (node.role == Role::kUuid) uuid_bits_ = state_.position - bytes.size() * 8;
    has_uuid_ |= node.role == Role::kUuid;
  }

  // Only numbers of whole bytes can be written.
  bool Writable(Role role) const {
    const Place& place = At(role);
    return place.bits % 8 == 0 && place.position % 8 == 0;
  }
  void Put(Role role, uint64_t value, uint8_t* packet) const {
    const Place& place = At(role);
    const size_t size = place.bits / 8;
    for (size_t i = 0; i < size; ++i) {
      const size_t shift = 8 * (place.big ? size - 1 - i : i);
      packet[place.position / 8 + i] = static_cast<uint8_t>(value >> shift);
    }
  }
  void PutUuid(const ctf::Uuid& uuid, uint8_t* packet) const {
    if (has_uuid_) std::copy(uuid.begin(), uuid.end(), packet + uuid_bits_ / 8);
  }

 private:
  struct Place {
    uint64_t position = 0;
    uint32_t bits = 0;
    bool big = false;
  };
  const Place& At(Role role) const { return places_[static_cast<size_t>(role)]; }

  const ctf::WalkState& state_;
  Place places_[static_cast<size_t>(Role::kTimestamp) + 1];
  uint64_t uuid_bits_ = 0;
  bool has_uuid_ = false;
};

uint32_t AlignmentOf(const ctf::Node* node) {
  if (node == nullptr) return 1;
  uint32_t alignment = node->alignment;
  for (const ctf::Node& child : node->children)
    alignment = std::max(alignment, AlignmentOf(&child));
  return alignment;
}

absl::Status CheckLayout(const ctf::TraceLayout& layout) {
  for (const auto& stream : layout.streams) {
    if (stream->fast_header == FastHeader::kNone) {
      return absl::UnimplementedError("its events do not have LTTng's headers");
    }
    for (const auto& [id, event] : stream->events) {
      for (const ctf::Scope scope :
           {ctf::Scope::kStreamContext, ctf::Scope::kEventContext, ctf::Scope::kPayload}) {
        if (AlignmentOf(event->nodes.root(scope)) > 8) {
          return absl::UnimplementedError(absl::StrCat("the fields of its event \"",
                                                       event->event_class.name,
                                                       "\" are aligned to more than bytes"));
        }
      }
    }
  }
  return absl::OkStatus();
}

// One stream, packet by packet. `packet` is where they are made, and may be used again.
class StreamCopy {
 public:
  StreamCopy(const ctf::TraceLayout& layout, ctf::FileReader& source, const ctf::Uuid& uuid,
             timeline::Placement& placement, const CopyOptions& options, uint64_t begin_byte,
             std::vector<uint8_t>& packet)
      : source_(source),
        uuid_(uuid),
        placement_(placement),
        options_(options),
        walker_(layout, source, "", {.begin = begin_byte}),
        decoder_(layout),
        packet_(packet) {}

  absl::Status Run(std::ostream& out) {
    for (;;) {
      SYNCLINE_ASSIGN_OR_RETURN(const auto packet, walker_.Next());
      if (!packet) return absl::OkStatus();
      if (placement_.At(packet->begin_ns) >= options_.window.end) return absl::OkStatus();
      const std::optional<int64_t> end_ns = EndOf(*packet);
      if (end_ns && placement_.At(*end_ns) < options_.window.begin) {
        last_ns_ = std::max(last_ns_, *end_ns);
        continue;
      }
      SYNCLINE_RETURN_IF_ERROR(CopyPacket(*packet));
      out.write(reinterpret_cast<const char*>(packet_.data()), static_cast<std::streamsize>(size_));
      bytes_ += size_;
    }
  }

  uint64_t events() const { return events_; }
  uint64_t bytes() const { return bytes_; }

 private:
  // A packet that says to end behind the next one's begin is wrong, or that one's events would be.
  static std::optional<int64_t> EndOf(const ctf::Packet& packet) {
    if (!packet.end_ns || !packet.next_begin_ns) return packet.end_ns;
    return std::min(*packet.end_ns, *packet.next_begin_ns);
  }

  // The corrected clock's value.
  uint64_t ValueOf(TimelineTime time) const {
    return static_cast<uint64_t>(time.ns + options_.epoch_unix_ns);
  }

  absl::Status CopyPacket(const ctf::Packet& packet) {
    size_ = 0;
    const auto bytes = static_cast<size_t>(packet.bytes);
    // Room for every event to grow to the longest header.
    const size_t room = bytes * 4 + kPacketUnit;
    if (packet_.size() < room) packet_.resize(room);
    SYNCLINE_RETURN_IF_ERROR(source_.ReadInto(packet.offset, std::span(packet_).first(bytes)));
    std::vector<uint64_t> slots(static_cast<size_t>(packet.header.stream->nodes.slots));
    ctf::WalkState state{packet_.data(), bytes * 8, 0, slots.data()};
    HeaderPlaces places(state);
    const ctf::ScopeNodes& nodes = packet.header.stream->nodes;
    const bool walked = WalkNode(nodes.root(ctf::Scope::kPacketHeader), state, places) &&
                        WalkNode(nodes.root(ctf::Scope::kPacketContext), state, places);
    if (!walked || packet.header.header_bits % 8 != 0) return absl::OkStatus();
    for (const Role role :
         {Role::kTimestampBegin, Role::kTimestampEnd, Role::kContentSize, Role::kPacketSize}) {
      if (!places.Writable(role)) {
        return absl::UnimplementedError("its packets' sizes and times are not whole bytes");
      }
    }
    at_ = packet.header.header_bits / 8;
    content_bits_ = packet.header.header_bits;
    const TimelineTime begin_time =
        std::max(placement_.At(std::max(packet.begin_ns, last_ns_)), options_.window.begin);
    const uint64_t begin = ValueOf(begin_time);
    value_ = begin;
    const uint64_t events_before = events_;
    SYNCLINE_RETURN_IF_ERROR(CopyEvents(packet));
    const bool whole = options_.window.begin.ns == kUnknownLo;
    if (events_ != events_before || whole) Finish(packet, places, begin);
    return absl::OkStatus();
  }

  absl::Status CopyEvents(const ctf::Packet& packet) {
    const ctf::ClockClass* clock = packet.header.stream->clock;
    const int64_t latest_ns = packet.latest_ns().value_or(kUnknownHi);
    decoder_.Begin(packet, packet_, decoder_.clock());
    const FastHeader kind = packet.header.stream->fast_header;
    PatchEvents(kind, latest_ns);
    if (decoder_.AtEnd()) return absl::OkStatus();
    // What is written event by event may reach beyond where it was read.
    SYNCLINE_ASSIGN_OR_RETURN(const auto bytes,
                              source_.Read(packet.offset, static_cast<size_t>(packet.bytes)));
    decoder_.MoveTo(bytes);
    ctf::FoundEvent event;
    while (decoder_.Next(&event) == ctf::Step::kEvent) {
      const int64_t time_ns = ctf::CyclesToNs(clock, event.cycles);
      if (time_ns < last_ns_ || time_ns > latest_ns) {
        decoder_.RejectTime();
        continue;
      }
      last_ns_ = time_ns;
      const TimelineTime time = placement_.At(time_ns);
      if (time < options_.window.begin) continue;
      if (time >= options_.window.end) break;
      Emit(kind, event, bytes.data(), ValueOf(time));
    }
    return absl::OkStatus();
  }

  // The packet was read to where it is made; as long as every event of it is wanted and fits where
  // it stood, only the times are written over. What this stops at is for Emit() and the rest too.
  void PatchEvents(FastHeader kind, int64_t latest_ns) {
    std::optional<ctf::Lane> lane = decoder_.AsLane();
    if (!lane) return;
    size_t patched = 0;
    do {
      if (kind == FastHeader::kLarge) {
        patched = PatchFound<FastHeader::kLarge>(FindEvents<FastHeader::kLarge>(*lane, latest_ns));
      } else {
        patched =
            PatchFound<FastHeader::kCompact>(FindEvents<FastHeader::kCompact>(*lane, latest_ns));
      }
      if (patched == 0) break;
      last_ns_ = times_ns_[patched - 1];
      lane->clock = static_cast<uint64_t>(last_ns_);
      lane->at = headers_[patched];
      events_ += patched;
    } while (patched == kPatchEvents);
    if (!decoder_.Resume(*lane)) return;
    at_ = static_cast<size_t>(lane->at - lane->base);
    content_bits_ = at_ * 8;
  }

  // Where the next events begin and when they were, up to one that the ordinary way has to look at;
  // how many. Apart from all that is done with them: where an event begins is only known when the
  // size of the one before it is, so this waits for memory as it is.
  template <FastHeader kKind>
  size_t FindEvents(const ctf::Lane& lane, int64_t latest_ns) {
    const ctf::StreamLayout& stream = *lane.stream;
    const std::span<const ctf::BriefEvent> brief = stream.brief_events;
    const uint8_t* const end = lane.end;
    const uint8_t* at = lane.at;
    uint64_t clock = lane.clock;
    int64_t earliest_ns = last_ns_;
    size_t count = 0;
    for (headers_[0] = at; count < kPatchEvents; headers_[count] = at) {
      at = ctf::PassFastEvent<kKind>(stream, brief, at, end, clock);
      const auto time_ns = static_cast<int64_t>(clock);
      if (at == nullptr || time_ns < earliest_ns || time_ns > latest_ns) break;
      times_ns_[count++] = earliest_ns = time_ns;
    }
    return count;
  }

  // Writes over the times of the first `found` of them, as long as they are wanted and fit; how
  // many.
  template <FastHeader kKind>
  size_t PatchFound(size_t found) {
    std::copy_n(times_ns_.begin(), found, placed_ns_.begin());
    placement_.PlaceAll(std::span(placed_ns_).first(found));
    // What is written could be anything, for all the compiler knows, but not these.
    const timeline::Interval window = options_.window;
    const int64_t epoch_unix_ns = options_.epoch_unix_ns;
    uint8_t* const base = packet_.data();
    uint64_t before = value_;
    size_t i = 0;
    for (; i < found; ++i) {
      const TimelineTime time{placed_ns_[i]};
      if (time < window.begin || time >= window.end) break;
      uint8_t* const header = base + (headers_[i] - base);
      const auto value = static_cast<uint64_t>(time.ns + epoch_unix_ns);
      if (value - before >= BriefSpan(kKind) && ctf::IsBriefEventHeader(kKind, header)) break;
      ctf::RewriteEventTime(kKind, value, header);
      before = value;
    }
    value_ = before;
    return i;
  }

  // How far apart two events may be for the later one to have a short header, ns.
  static uint64_t BriefSpan(FastHeader kind) {
    return uint64_t{1} << (kind == FastHeader::kCompact ? 27 : 32);
  }

  // A short header stays short as long as its time can be told from the one before.
  void Emit(FastHeader kind, const ctf::FoundEvent& event, const uint8_t* packet, uint64_t value) {
    const bool was_brief = event.body_bits - event.begin_bits < 8 * ctf::kLongEventHeaderBytes;
    const bool brief = was_brief && value - value_ < BriefSpan(kind);
    at_ += ctf::WriteEventHeader(kind, brief, static_cast<uint32_t>(event.id), value,
                                 packet_.data() + at_);
    const size_t body = event.body_bits / 8;
    const size_t body_bytes = (event.end_bits + 7) / 8 - body;
    std::copy_n(packet + body, body_bytes, packet_.data() + at_);
    content_bits_ = at_ * 8 + (event.end_bits - event.body_bits);
    at_ += body_bytes;
    value_ = value;
    ++events_;
  }

  void Finish(const ctf::Packet& packet, const HeaderPlaces& places, uint64_t begin) {
    uint64_t end = std::max(value_, begin);
    const std::optional<int64_t> end_ns = EndOf(packet);
    if (end_ns && placement_.At(*end_ns) < options_.window.end) {
      end = std::max(end, ValueOf(placement_.At(*end_ns)));
    }
    size_ = (at_ + kPacketUnit - 1) / kPacketUnit * kPacketUnit;
    std::fill_n(packet_.data() + at_, size_ - at_, uint8_t{0});
    places.Put(Role::kTimestampBegin, begin, packet_.data());
    places.Put(Role::kTimestampEnd, end, packet_.data());
    places.Put(Role::kContentSize, content_bits_, packet_.data());
    places.Put(Role::kPacketSize, size_ * 8, packet_.data());
    places.PutUuid(uuid_, packet_.data());
    last_ns_ = std::max(last_ns_, end_ns.value_or(last_ns_));
  }

  ctf::FileReader& source_;
  const ctf::Uuid& uuid_;
  timeline::Placement& placement_;
  const CopyOptions& options_;
  ctf::PacketWalker walker_;
  ctf::PacketDecoder decoder_;
  std::vector<uint8_t>& packet_;  // being written
  size_t at_ = 0;                 // in it
  size_t size_ = 0;               // of it when it is finished; 0: nothing of it is wanted
  uint64_t content_bits_ = 0;
  uint64_t value_ = 0;            // of the event before, corrected
  int64_t last_ns_ = kUnknownLo;  // the same, by the trace's clock
  uint64_t events_ = 0;
  uint64_t bytes_ = 0;
  // Events found and not yet patched: as many as lie in the nearest cache.
  static constexpr size_t kPatchEvents = 256;
  std::array<const uint8_t*, kPatchEvents + 1> headers_;  // the last one: where they end
  std::array<int64_t, kPatchEvents> times_ns_;
  std::array<int64_t, kPatchEvents> placed_ns_;
};

// What the copy says of itself.
ctf::Metadata Corrected(const ctf::Metadata& metadata, const ctf::Uuid& uuid,
                        const CopyOptions& options) {
  ctf::Metadata corrected = metadata;
  corrected.uuid = uuid;
  corrected.environment["hostname"] = options.node;
  for (ctf::ClockClass& clock : corrected.clocks) {
    clock.uuid = ctf::UuidText(UuidOf(absl::StrCat("timeline ", options.epoch_unix_ns)));
    clock.description = "Syncline's timeline, ns since 1970";
    clock.frequency = 1'000'000'000;
    clock.offset_seconds = 0;
    clock.offset_cycles = 0;
  }
  return corrected;
}

// A clock value whose time lies before `begin`; kUnknownLo: nothing is known to.
int64_t BeforeWindow(timeline::Placement& placement, TimelineTime begin) {
  constexpr int64_t kSlackNs = 1000;  // the way back from the timeline rounds
  if (begin.ns == kUnknownLo) return kUnknownLo;
  int64_t clock_ns = 0;
  if (__builtin_sub_overflow(placement.ClockNs(begin), kSlackNs, &clock_ns)) return kUnknownLo;
  return placement.At(clock_ns) < begin ? clock_ns : kUnknownLo;
}

// The streams of one trace, several at a time.
class StreamCopier {
 public:
  // All outlive it.
  StreamCopier(const ctf::TraceLayout& layout, const ctf::Uuid& uuid, const CopyOptions& options,
               const std::filesystem::path& out)
      : layout_(layout), uuid_(uuid), options_(options), out_(out) {}

  // What became of each of `files`.
  std::vector<absl::StatusOr<CopyResult>> CopyAll(std::span<const std::filesystem::path> files,
                                                  timeline::Placement& placement) const {
    std::vector<absl::StatusOr<CopyResult>> copied(files.size(), CopyResult{});
    std::atomic<size_t> next = 0;
    const auto work = [&](timeline::Placement& own) {
      std::vector<uint8_t> packet;
      for (size_t i = next++; i < files.size(); i = next++) {
        copied[i] = Copy(files[i], own, packet);
        if (!copied[i].ok()) next = files.size();  // what has begun is finished
      }
    };
    std::vector<std::unique_ptr<timeline::Placement>> placements;
    std::vector<std::jthread> others;
    while (placements.size() + 1 < std::min<size_t>(options_.threads, files.size())) {
      placements.push_back(placement.Clone());
      if (placements.back() == nullptr) break;
      others.emplace_back(work, std::ref(*placements.back()));
    }
    work(placement);
    for (std::jthread& other : others) other.join();
    return copied;
  }

 private:
  absl::StatusOr<CopyResult> Copy(const std::filesystem::path& file, timeline::Placement& placement,
                                  std::vector<uint8_t>& packet) const {
    auto source = ctf::FileReader::Open(file);
    if (!source.ok()) return CopyResult{};  // the reader has said so
    std::ofstream to(out_ / file.filename(), std::ios::binary | std::ios::trunc);
    SYNCLINE_ASSIGN_OR_RETURN(
        const uint64_t begin_byte,
        ctf::SeekStream(layout_, file, BeforeWindow(placement, options_.window.begin)));
    StreamCopy copy(layout_, **source, uuid_, placement, options_, begin_byte, packet);
    SYNCLINE_RETURN_IF_ERROR(copy.Run(to));
    to.close();
    if (to.fail()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot write ", (out_ / file.filename()).string(), ": is the disk full?"));
    }
    return CopyResult{1, copy.events(), copy.bytes()};
  }

  const ctf::TraceLayout& layout_;
  const ctf::Uuid& uuid_;
  const CopyOptions& options_;
  const std::filesystem::path& out_;
};

}  // namespace

absl::StatusOr<CopyResult> CopyTrace(const std::filesystem::path& trace,
                                     const std::filesystem::path& out,
                                     timeline::Placement& placement, const CopyOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(auto metadata, ctf::LoadMetadata(trace));
  const auto context = [&trace](absl::Status status) {
    return WithContext(std::move(status), absl::StrCat("cannot copy \"", trace.string(), "\""));
  };
  auto in_words = ctf::InCtf18Words(metadata);  // what we write is CTF 1.8
  if (!in_words.ok()) return context(in_words.status());
  metadata = *std::move(in_words);
  const ctf::Uuid uuid = UuidOf(
      absl::StrCat(metadata->uuid ? ctf::UuidText(*metadata->uuid) : "none", " ", options.label));
  SYNCLINE_ASSIGN_OR_RETURN(const auto layout, ctf::BuildLayout(metadata));
  if (absl::Status status = CheckLayout(*layout); !status.ok()) return context(status);
  SYNCLINE_ASSIGN_OR_RETURN(const std::string text,
                            ctf::WriteTsdl(Corrected(*metadata, uuid, options)));
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(out));
  SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(out / "metadata", text));
  const std::vector<std::filesystem::path> files = ctf::ListStreamFiles(trace);
  const StreamCopier copier(*layout, uuid, options, out);
  CopyResult result;
  for (const absl::StatusOr<CopyResult>& copied : copier.CopyAll(files, placement)) {
    if (!copied.ok()) return context(copied.status());
    result.streams += copied->streams;
    result.events += copied->events;
    result.bytes += copied->bytes;
  }
  return result;
}

}  // namespace syncline::ctf_export
