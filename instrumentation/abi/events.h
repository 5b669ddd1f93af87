// SPDX-License-Identifier: Apache-2.0
// Our events, one row each: the one list of what Syncline's libraries write into LTTng-UST. What
// the events mean, docs/event-schema.md says. The agent has recorded what is listed here, and
// nothing else of ours. instrumentation/tests/events_test.cc compares the rows with the tracepoint
// headers, which LTTng-UST reads several times and which are therefore not made from them, and with
// the document.
//
// No dependency: everybody may include it.
#ifndef SYNCLINE_ABI_EVENTS_H_
#define SYNCLINE_ABI_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syncline::abi {

// What an event means to those who read it. Events of one kind are read alike, by the names of
// their fields: a new event of a kind that there is needs nothing but its row.
enum class EventKind : uint8_t {
  kForeign,  // none of ours
  kCanary,
  kOn,
  kOff,
  kPause,
  kResume,
  kThread,
  kName,
  kTaskBegin,  // also _id, _fn, _text: the fields that they do not have read as 0
  kTaskEnd,
  kTaskBeginOverlapped,
  kTaskEndOverlapped,
  kMetadata,      // integers
  kMetadataF64,   // doubles; LTTng-UST has no such sequences: their bits travel as u64
  kMetadataText,  // a string
  kMetadataName,  // a string by id
  kMarker,
  kFrameBegin,
  kFrameEnd,
  kFrameSubmit,
  kCounter,
  kCounterMetadata,
  kEventStart,
  kEventEnd,
  kRelation,
  kSync,
  kConnection,
  kConnectionState,
  kSend,
  kReceive,
  kSendUnplaced,
  kReceiveUnplaced,
  kDoubt,
  // PyTorch's (syncline_torch)
  kTorchOperators,
  kTorchGroup,
  kTorchCollective,
  kTorchRoot,
  kTorchTransferBegin,
  kTorchTransferEnd,
  // What devices do (syncline_device)
  kDeviceLaunch,
  kDeviceWork,
  kDeviceCollectiveCall,
  kDeviceCollective,
  kDeviceTracing,
  kDeviceLost,
};
inline constexpr size_t kEventKinds = static_cast<size_t>(EventKind::kDeviceLost) + 1;

struct EventRow {
  std::string_view provider;
  std::string_view name;
  // As written, in this order: "thread, name u32, values i64[]". A type is that of all fields
  // before it that have none yet: u8 to u64, i8 to i64, f64, string; "[]": a sequence.
  std::string_view fields;
  EventKind kind = EventKind::kForeign;
};

inline constexpr EventRow kEvents[] = {
    {"syncline", "on", "generation, process u32, pid i32, pidns, start_ticks u64", EventKind::kOn},
    {"syncline", "off", "generation, process u32, events, lost, cost_ns u64", EventKind::kOff},
    {"syncline", "pause", "thread u32", EventKind::kPause},
    {"syncline", "resume", "thread u32", EventKind::kResume},
    {"syncline", "thread", "thread, process u32, tid i32, name string", EventKind::kThread},
    {"syncline", "name", "process, id u32, kind u8, text string", EventKind::kName},
    {"syncline", "canary", "nonce u64", EventKind::kCanary},

    {"syncline_itt", "task_begin", "thread, domain, name u32, depth, number u16",
     EventKind::kTaskBegin},
    {"syncline_itt", "task_begin_id",
     "thread, domain, name u32, depth, number u16, d1, d2, d3, p1, p2, p3 u64",
     EventKind::kTaskBegin},
    {"syncline_itt", "task_begin_fn",
     "thread, domain, name u32, depth, number u16, fn, d1, d2, d3, p1, p2, p3 u64",
     EventKind::kTaskBegin},
    {"syncline_itt", "task_begin_text", "thread, domain u32, depth, number u16, name string",
     EventKind::kTaskBegin},
    {"syncline_itt", "task_end", "thread, domain, name u32, depth, number u16",
     EventKind::kTaskEnd},
    {"syncline_itt", "task_begin_overlapped",
     "thread, domain, name u32, d1, d2, d3, p1, p2, p3 u64", EventKind::kTaskBeginOverlapped},
    {"syncline_itt", "task_end_overlapped", "thread, domain, name u32, d1, d2, d3 u64",
     EventKind::kTaskEndOverlapped},
    {"syncline_itt", "metadata_i64",
     "thread, domain, key u32, depth u16, d1, d2, d3 u64, values i64[]", EventKind::kMetadata},
    {"syncline_itt", "metadata_u64",
     "thread, domain, key u32, depth u16, d1, d2, d3 u64, values u64[]", EventKind::kMetadata},
    {"syncline_itt", "metadata_f64",
     "thread, domain, key u32, depth u16, d1, d2, d3 u64, values u64[]", EventKind::kMetadataF64},
    {"syncline_itt", "metadata_text",
     "thread, domain, key u32, depth u16, d1, d2, d3 u64, text string", EventKind::kMetadataText},
    {"syncline_itt", "metadata_name",
     "thread, domain, key u32, depth u16, d1, d2, d3 u64, text u32", EventKind::kMetadataName},
    {"syncline_itt", "marker", "thread, domain, name u32, scope u8, d1, d2, d3 u64",
     EventKind::kMarker},
    {"syncline_itt", "frame_begin", "thread, domain u32, d1, d2, d3 u64", EventKind::kFrameBegin},
    {"syncline_itt", "frame_end", "thread, domain u32, d1, d2, d3 u64", EventKind::kFrameEnd},
    {"syncline_itt", "frame_submit", "thread, domain u32, d1, d2, d3, begin, end u64",
     EventKind::kFrameSubmit},
    {"syncline_itt", "counter_i64", "thread, domain, name u32, value i64", EventKind::kCounter},
    {"syncline_itt", "counter_u64", "thread, domain, name u32, value u64", EventKind::kCounter},
    {"syncline_itt", "counter_f64", "thread, domain, name u32, value f64", EventKind::kCounter},
    {"syncline_itt", "counter_metadata", "thread, domain, name u32, kind u8, text u32, value u64",
     EventKind::kCounterMetadata},
    {"syncline_itt", "event_start", "thread, name u32", EventKind::kEventStart},
    {"syncline_itt", "event_end", "thread, name u32", EventKind::kEventEnd},
    {"syncline_itt", "relation", "thread, domain u32, kind u8, d1, d2, d3, e1, e2, e3 u64",
     EventKind::kRelation},
    {"syncline_itt", "sync", "thread u32, kind u8, object u64, name u32", EventKind::kSync},

    {"syncline_net", "connection",
     "thread u32, connection, sent, received u64, retransmits, rtt_us u32, local_port, remote_port "
     "u16, local, remote string",
     EventKind::kConnection},
    {"syncline_net", "state", "thread u32, connection, sent, received u64, retransmits, rtt_us u32",
     EventKind::kConnectionState},
    {"syncline_net", "send", "thread u32, connection, begin, bytes, since u64", EventKind::kSend},
    {"syncline_net", "receive", "thread u32, connection, begin, bytes, since u64",
     EventKind::kReceive},
    {"syncline_net", "send_unplaced", "thread u32, connection, bytes, since u64",
     EventKind::kSendUnplaced},
    {"syncline_net", "receive_unplaced", "thread u32, connection, bytes, since u64",
     EventKind::kReceiveUnplaced},
    {"syncline_net", "doubt", "thread u32, connection u64, direction u8, expected, found u64",
     EventKind::kDoubt},

    {"syncline_torch", "operators", "thread u32, on u8", EventKind::kTorchOperators},
    {"syncline_torch", "group",
     "thread, group, description, ranks u32, rank i32, size u32, sequence u64",
     EventKind::kTorchGroup},
    {"syncline_torch", "collective", "thread, group, name u32, sequence, bytes u64",
     EventKind::kTorchCollective},
    {"syncline_torch", "root", "thread, group u32, root i32", EventKind::kTorchRoot},
    {"syncline_torch", "transfer_begin",
     "thread u32, d1 u64, group, name u32, peer, tag i32, bytes u64",
     EventKind::kTorchTransferBegin},
    {"syncline_torch", "transfer_end", "thread u32, d1 u64, peer i32, waited u64",
     EventKind::kTorchTransferEnd},

    {"syncline_device", "launch", "thread u32, launch u64, name u32", EventKind::kDeviceLaunch},
    {"syncline_device", "work",
     "thread, device, queue, name u32, kind u8, launch, begin, end, bound, bytes u64",
     EventKind::kDeviceWork},
    {"syncline_device", "collective_call", "thread u32, launch u64, name u32",
     EventKind::kDeviceCollectiveCall},
    {"syncline_device", "collective",
     "thread u32, launch, communicator u64, size, rank, name, description u32, sequence u64, peer "
     "u32, bytes, since, begin, end u64, ahead i64, waited u64",
     EventKind::kDeviceCollective},
    {"syncline_device", "tracing", "thread, source u32, state u8", EventKind::kDeviceTracing},
    {"syncline_device", "lost", "thread, source u32, count u64", EventKind::kDeviceLost},
};

// "name" of each, without the types.
inline std::vector<std::string> FieldNames(const EventRow& row) {
  std::vector<std::string> names;
  for (size_t at = 0; at < row.fields.size();) {
    const size_t end = row.fields.find_first_of(" ,", at);
    names.emplace_back(row.fields.substr(at, end - at));
    const size_t comma = row.fields.find(", ", end);
    if (comma == std::string_view::npos) break;
    at = comma + 2;
  }
  return names;
}

// For LTTng: "PROVIDER:*" of each provider, in the order of the rows.
inline std::vector<std::string> EventPatterns() {
  std::vector<std::string> patterns;
  std::string_view last;
  for (const EventRow& row : kEvents) {
    if (row.provider != last) patterns.push_back(std::string(row.provider) + ":*");
    last = row.provider;
  }
  return patterns;
}

}  // namespace syncline::abi

#endif  // SYNCLINE_ABI_EVENTS_H_
