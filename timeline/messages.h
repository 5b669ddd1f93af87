// SPDX-License-Identifier: Apache-2.0
// Messages between processes: what one end of a TCP connection sent and the other received.
//
// Concepts. An *end* is a connection as one process recorded it (events syncline_net:*). Two ends
// are the same connection when their addresses mirror each other and they were in use at the same
// time; addresses that were translated on the way (NAT) do not mirror, and such ends stay alone. A
// *message* is one call that sent the bytes [a, b) of the stream; the other end received byte a in
// one call and byte b - 1 in the same or a later one.
//
// What is certain of it: the call that sent byte a began before the call that received byte a
// returned. Nothing else is: a receive may return before the send does.
//
// Example: sent [0, 10) since 100, [10, 40) since 120; received [0, 25) until 150, [25, 40) until
// 160. Messages: [0, 10) taken from 150 to 150; [10, 40) from 150 to 160.
//
// Memory: 40 bytes for each transfer that may find its other end, up to a limit; what is beyond it
// is counted only.
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_MESSAGES_H_
#define SYNCLINE_TIMELINE_MESSAGES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/time.h"
#include "timeline/sink.h"

namespace syncline::timeline {

struct Message {
  uint64_t bytes = 0;
  int64_t sent_ns = 0;   // the call that sent it began after this: MessageStream::sender_clock
  int64_t first_ns = 0;  // the call that took its first byte had returned: receiver_clock
  int64_t last_ns = 0;   // the same of its last byte
  TimelineTime sent;
  TimelineTime first;
  TimelineTime last;
  TrackId from = kNoTrack;
  TrackId to = kNoTrack;
};

// One direction of a connection of which both ends were recorded.
struct MessageStream {
  uint32_t send_node = 0;
  uint32_t receive_node = 0;
  std::string sender;    // its process's name
  std::string receiver;  // likewise
  std::string from;      // "10.77.0.1:41234"
  std::string to;
  ClockId sender_clock;
  ClockId receiver_clock;
  uint64_t sent_bytes = 0;      // all that the end recorded
  uint64_t received_bytes = 0;  // likewise
  uint64_t matched_bytes = 0;   // recorded by both
  uint64_t unplaced_bytes = 0;  // of all these, without a position
  uint64_t unmatched = 0;       // calls that sent what the other end did not record as a whole
  std::optional<uint32_t> retransmits;  // segments that were sent again while it was recorded
  std::vector<Message> messages;        // by position
  uint64_t drawable = 0;                // of those, in what the timeline shows
  uint64_t drawn = 0;                   // of those, with an arrow
};

// What became of one node's ends.
struct MessageEnds {
  uint64_t connections = 0;  // of which both ends were recorded; counted at one of them
  uint64_t alone = 0;        // ends whose other end was not recorded, or is not to be told apart
  uint64_t alone_bytes = 0;
  uint64_t doubted = 0;   // directions of which bytes went by unseen: positions before that are out
  uint64_t left_out = 0;  // transfers beyond the limit of memory
};

class MessageMatcher {
 public:
  struct Options {
    // Ends of the same connection overlap in time, give or take this; they begin and end to record
    // at different times. kUnknownHi: places on the timeline say nothing.
    int64_t margin_ns = 2'000'000'000;
    uint64_t transfers_max = 4u << 20;
  };
  explicit MessageMatcher(const Options& options) : options_(options) {}

  struct Place {
    int64_t ns = 0;
    TimelineTime timeline;
  };
  struct Address {
    std::string_view text;
    uint16_t port = 0;
  };

  // An end; the same number for the same three. `clock`: of its times.
  uint32_t EndOf(uint32_t node, uint32_t process, uint64_t connection, ClockId clock);
  void SetProcess(uint32_t end, std::string_view name);
  void OnConnection(uint32_t end, Address local, Address remote);
  void OnRetransmits(uint32_t end, uint32_t retransmits);
  // `at`: of a send, an instant before it began; of a receive, one after it returned. In order of
  // time for each end and direction.
  void OnSend(uint32_t end, uint64_t begin, uint64_t bytes, Place at, TrackId track);
  void OnReceive(uint32_t end, uint64_t begin, uint64_t bytes, Place at, TrackId track);
  void OnUnplaced(uint32_t end, bool receive, uint64_t bytes);
  // Positions of that direction were wrong until now. And what follows is believed only as far as
  // the kernel was asked again.
  void OnDoubt(uint32_t end, bool receive);

  struct Result {
    std::vector<MessageStream> streams;  // by nodes, processes, addresses
    std::vector<MessageEnds> nodes;      // by node index; shorter when the last ones have none
  };
  // Once, after everything was given.
  Result Match();

 private:
  struct Transfer {
    uint64_t begin = 0;
    uint64_t bytes = 0;
    Place at;
    TrackId track = kNoTrack;
  };
  struct Direction {
    std::vector<Transfer> transfers;
    uint64_t bytes = 0;
    uint64_t unplaced_bytes = 0;
    uint64_t left_out = 0;
    bool doubted = false;
  };
  struct End {
    uint32_t node = 0;
    ClockId clock;
    std::string process;
    std::string local;  // "10.77.0.1:41234"; empty: not announced
    std::string remote;
    bool loopback = false;
    std::optional<uint32_t> first_retransmits;
    std::optional<uint32_t> last_retransmits;
    std::optional<TimelineTime> begin;  // in use
    TimelineTime end;
    Direction sent;
    Direction received;
  };

  void Add(End* end, Direction* direction, const Transfer& transfer);
  static void DropUnchecked(Direction* direction);
  std::optional<uint32_t> PartnerOf(uint32_t end) const;
  static uint64_t Overlap(const End& a, const End& b);
  static MessageStream MatchDirection(const End& sender, const End& receiver);

  Options options_;
  uint64_t transfers_ = 0;
  std::vector<End> ends_;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, uint32_t> end_numbers_;
  std::multimap<std::pair<std::string, std::string>, uint32_t> by_addresses_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_MESSAGES_H_
