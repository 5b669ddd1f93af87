// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/test_recording.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "coordinator/recording/recording.h"
#include "timeline/testing/two_node_job.h"

namespace syncline::merge::testing {
namespace {

using timeline::testing::FakeEvent;
using timeline::testing::FakeField;
using timeline::testing::FakeStream;
using timeline::testing::kJobOffsetNs;
using timeline::testing::kJobStepNs;
using timeline::testing::kJobSteps;
using timeline::testing::kJobZeroNs;

constexpr char kUuid[] = "00112233-4455-6677-8899-aabbccddeeff";

void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "test recording: " << status << "\n";
  std::abort();  // the test cannot write its own input
}

template <class T>
void Put(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

const char* TypeOf(const FakeField& field) {
  switch (field.value.index()) {
    case 1:
      return "int64_t";
    case 3:
      return "string";
    default:
      return "uint64_t";
  }
}

// Event classes by what an event looks like: its name and the types of its fields.
class Classes {
 public:
  uint16_t IdOf(const FakeEvent& event) {
    std::string fields;
    for (const FakeField& field : event.fields) {
      absl::StrAppend(&fields, " ", TypeOf(field), " _", field.name, ";");
    }
    const auto [entry, inserted] =
        ids_.try_emplace(event.name + fields, static_cast<uint16_t>(ids_.size()));
    if (inserted) {
      absl::StrAppend(&text_, "event { name = \"", event.name, "\"; id = ", entry->second,
                      "; stream_id = 0; fields := struct {", fields, " }; };\n");
    }
    return entry->second;
  }
  const std::string& text() const { return text_; }

 private:
  std::map<std::string, uint16_t> ids_;
  std::string text_;
};

std::string Head(const std::string& hostname, int64_t wall_offset_ns) {
  return absl::StrCat(R"(/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
trace { major = 1; minor = 8; uuid = ")",
                      kUuid, R"("; byte_order = le;
  packet.header := struct {
    uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id; }; };
env { tracer_name = "lttng-ust"; tracer_buffering_scheme = "uid"; tracer_buffering_id = 0;
  hostname = ")",
                      hostname, R"("; };
clock { name = "monotonic"; uuid = "boot of )",
                      hostname, R"("; freq = 1000000000; offset = )", wall_offset_ns, R"(; };
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := clock_t64;
stream { id = 0;
  event.header := struct { uint16_t id; clock_t64 timestamp; };
  packet.context := struct { clock_t64 timestamp_begin; clock_t64 timestamp_end;
    uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num;
    uint64_t events_discarded; uint32_t cpu_id; }; };
)");
}

std::string Packet(const std::vector<FakeEvent>& events, Classes* classes) {
  std::string body;
  for (const FakeEvent& event : events) {
    Put(classes->IdOf(event), &body);
    Put(event.time_ns, &body);
    for (const FakeField& field : event.fields) {
      if (const auto* u = std::get_if<uint64_t>(&field.value)) Put(*u, &body);
      if (const auto* s = std::get_if<int64_t>(&field.value)) Put(*s, &body);
      if (const auto* text = std::get_if<std::string>(&field.value)) body.append(*text + '\0');
    }
  }
  std::string out;
  Put(uint32_t{0xC1FC1FC1}, &out);
  for (int i = 0; i < 16; ++i) Put(static_cast<uint8_t>(i * 0x11), &out);
  Put(uint32_t{0}, &out);
  Put(uint64_t{0}, &out);
  Put(events.front().time_ns, &out);
  Put(events.back().time_ns, &out);
  const uint64_t bits = (out.size() + 4 * sizeof(uint64_t) + sizeof(uint32_t) + body.size()) * 8;
  Put(bits, &out);
  Put(bits, &out);
  Put(uint64_t{0}, &out);
  Put(uint64_t{0}, &out);
  Put(uint32_t{0}, &out);
  return out + body;
}

// What a process writes of itself when the gate opens.
std::vector<FakeEvent> Announcements(const timeline::NodeInput& node, int64_t time_ns) {
  std::vector<FakeEvent> events;
  for (const timeline::KnownProcess& process : node.processes) {
    const uint64_t key = process.process_key;
    for (const timeline::KnownThread& thread : process.threads) {
      events.push_back({time_ns,
                        "syncline:thread",
                        {{"thread", uint64_t{thread.key}},
                         {"process", key},
                         {"tid", int64_t{thread.tid}},
                         {"name", thread.name}}});
    }
    const std::map<uint32_t, timeline::KnownName> names(process.names.begin(), process.names.end());
    for (const auto& [id, name] : names) {
      events.push_back({time_ns,
                        "syncline:name",
                        {{"process", key},
                         {"id", uint64_t{id}},
                         {"kind", uint64_t{name.kind}},
                         {"text", name.text}}});
    }
  }
  return events;
}

recording::NodeRecord Record(const timeline::NodeInput& node, int64_t zero_ns) {
  recording::NodeRecord record;
  record.name = node.name;
  record.address = "10.77.0.1:7611";
  record.role = node.name == "master-0" ? "master" : "worker";
  record.state = recording::NodeState::kComplete;
  record.start.gate_begin_monotonic_raw_ns = zero_ns + 20'000;
  record.stop.gate_begin_monotonic_raw_ns = zero_ns + kJobSteps * kJobStepNs + 5'000;
  record.stop.complete = true;
  record.fetched.complete = true;
  for (const timeline::KnownProcess& known : node.processes) {
    recording::ProcessRecord process;
    process.own_pid = known.key.pid;
    process.pid_namespace_inode = static_cast<int64_t>(known.key.pid_namespace);
    process.start_ticks = known.key.start_ticks;
    process.command_line = known.command_line;
    process.rank = known.rank;
    record.processes.push_back(process);
  }
  return record;
}

}  // namespace

void WriteTrace(const timeline::testing::FakeTrace& trace, const timeline::NodeInput& node,
                int64_t wall_offset_ns, const std::filesystem::path& directory) {
  Must(MakeDirectories(directory));
  Classes classes;
  bool announced = false;
  for (const FakeStream& stream : trace.fake_streams()) {
    if (stream.events.empty()) continue;
    std::vector<FakeEvent> events = stream.events;
    if (!announced) {
      const std::vector<FakeEvent> own = Announcements(node, events.front().time_ns);
      events.insert(events.begin() + 1, own.begin(), own.end());
      announced = true;
    }
    Must(WriteFileAtomically(directory / stream.name, Packet(events, &classes)));
  }
  Must(WriteFileAtomically(directory / "metadata",
                           Head(node.name, wall_offset_ns) + classes.text()));
}

void WriteJob(const std::string& recording_id, int64_t wall_error_ns,
              const std::filesystem::path& run) {
  WriteScenario(timeline::testing::TwoNodeJob(), recording_id, wall_error_ns, run);
}

void WriteScenario(const std::string& text, const std::string& recording_id, int64_t wall_error_ns,
                   const std::filesystem::path& run) {
  auto scenario = timeline::testing::ParseScenario(text);
  Must(scenario.status());
  constexpr int64_t kUnixNs = 1'700'000'000'000'000'000;
  const recording::Layout layout(run);
  recording::Recording recording;
  recording.recording_id = recording_id;
  recording.epoch_unix_ns = kUnixNs;
  recording.window = {kJobSteps * kJobStepNs, 0, kJobSteps * kJobStepNs, "requested"};
  recording.reference = {"master-0", kJobZeroNs};
  for (size_t i = 0; i < scenario->nodes.size(); ++i) {
    const int64_t zero_ns = kJobZeroNs + (i == 0 ? 0 : kJobOffsetNs);
    const int64_t error_ns = i == 0 ? 0 : wall_error_ns;
    const timeline::NodeInput& node = scenario->nodes[i];
    recording.nodes.push_back(Record(node, zero_ns));
    WriteTrace(scenario->traces[i], node, kUnixNs - zero_ns + error_ns,
               layout.Trace(node.name) / "ust" / "uid" / "0" / "64-bit");
  }
  Must(MakeDirectories(layout.Clocks()));
  Must(WriteFileAtomically(layout.Models(), timeline::testing::TwoNodeModel().ToJson()));
  Must(recording::WriteRecording(run, recording));
}

}  // namespace syncline::merge::testing
