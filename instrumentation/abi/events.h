// SPDX-License-Identifier: Apache-2.0
// Our events, one row each: the one list of what Syncline's libraries write into LTTng-UST. What
// the events mean, docs/event-schema.md says. The agent has recorded what is listed here, and
// nothing else of ours. instrumentation/tests/events_test.cc compares the rows with the tracepoint
// headers, which LTTng-UST reads several times and which are therefore not made from them, with the
// document, and with what timeline/ knows.
//
// No dependency: everybody may include it.
#ifndef SYNCLINE_ABI_EVENTS_H_
#define SYNCLINE_ABI_EVENTS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace syncline::abi {

struct EventRow {
  std::string_view provider;
  std::string_view name;
  // As written, in this order: "thread, name u32, values i64[]". A type is that of all fields
  // before it that have none yet: u8 to u64, i8 to i64, f64, string; "[]": a sequence.
  std::string_view fields;
};

inline constexpr EventRow kEvents[] = {
    {"syncline", "on", "generation, process u32, pid i32, pidns, start_ticks u64"},
    {"syncline", "off", "generation, process u32, events, lost, cost_ns u64"},
    {"syncline", "pause", "thread u32"},
    {"syncline", "resume", "thread u32"},
    {"syncline", "thread", "thread, process u32, tid i32, name string"},
    {"syncline", "name", "process, id u32, kind u8, text string"},
    {"syncline", "canary", "nonce u64"},

    {"syncline_itt", "task_begin", "thread, domain, name u32, depth, number u16"},
    {"syncline_itt", "task_begin_id",
     "thread, domain, name u32, depth, number u16, d1, d2, d3, p1, p2, p3 u64"},
    {"syncline_itt", "task_begin_fn",
     "thread, domain, name u32, depth, number u16, fn, d1, d2, d3, p1, p2, p3 u64"},
    {"syncline_itt", "task_begin_text", "thread, domain u32, depth, number u16, name string"},
    {"syncline_itt", "task_end", "thread, domain, name u32, depth, number u16"},
    {"syncline_itt", "task_begin_overlapped",
     "thread, domain, name u32, d1, d2, d3, p1, p2, p3 u64"},
    {"syncline_itt", "task_end_overlapped", "thread, domain, name u32, d1, d2, d3 u64"},
    {"syncline_itt", "metadata_i64",
     "thread, domain, key u32, depth u16, d1, d2, d3 u64, values i64[]"},
    {"syncline_itt", "metadata_u64",
     "thread, domain, key u32, depth u16, d1, d2, d3 u64, values u64[]"},
    {"syncline_itt", "metadata_f64",
     "thread, domain, key u32, depth u16, d1, d2, d3 u64, values u64[]"},
    {"syncline_itt", "metadata_text",
     "thread, domain, key u32, depth u16, d1, d2, d3 u64, text string"},
    {"syncline_itt", "metadata_name",
     "thread, domain, key u32, depth u16, d1, d2, d3 u64, text u32"},
    {"syncline_itt", "marker", "thread, domain, name u32, scope u8, d1, d2, d3 u64"},
    {"syncline_itt", "frame_begin", "thread, domain u32, d1, d2, d3 u64"},
    {"syncline_itt", "frame_end", "thread, domain u32, d1, d2, d3 u64"},
    {"syncline_itt", "frame_submit", "thread, domain u32, d1, d2, d3, begin, end u64"},
    {"syncline_itt", "counter_i64", "thread, domain, name u32, value i64"},
    {"syncline_itt", "counter_u64", "thread, domain, name u32, value u64"},
    {"syncline_itt", "counter_f64", "thread, domain, name u32, value f64"},
    {"syncline_itt", "event_start", "thread, name u32"},
    {"syncline_itt", "event_end", "thread, name u32"},
    {"syncline_itt", "relation", "thread, domain u32, kind u8, d1, d2, d3, e1, e2, e3 u64"},
    {"syncline_itt", "sync", "thread u32, kind u8, object u64, name u32"},

    {"syncline_net", "connection",
     "thread u32, connection, sent, received u64, retransmits, rtt_us u32, local_port, remote_port "
     "u16, local, remote string"},
    {"syncline_net", "state",
     "thread u32, connection, sent, received u64, retransmits, rtt_us u32"},
    {"syncline_net", "send", "thread u32, connection, begin, bytes, since u64"},
    {"syncline_net", "receive", "thread u32, connection, begin, bytes, since u64"},
    {"syncline_net", "send_unplaced", "thread u32, connection, bytes, since u64"},
    {"syncline_net", "receive_unplaced", "thread u32, connection, bytes, since u64"},
    {"syncline_net", "doubt", "thread u32, connection u64, direction u8, expected, found u64"},

    {"syncline_torch", "operators", "thread u32, on u8"},
    {"syncline_torch", "group",
     "thread, group, description, ranks u32, rank i32, size u32, sequence u64"},
    {"syncline_torch", "collective", "thread, group, name u32, sequence, bytes u64"},
    {"syncline_torch", "transfer_begin",
     "thread u32, d1 u64, group, name u32, peer, tag i32, bytes u64"},
    {"syncline_torch", "transfer_end", "thread u32, d1 u64, peer i32"},
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
