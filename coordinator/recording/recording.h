// SPDX-License-Identifier: Apache-2.0
// recording.json and the layout of a recording's directory (docs/recording-format.md): who took
// part, what was asked for, what was achieved, what was lost. Written by `record` and `fetch`, read
// by all that work on a recording later, on any machine.
//
// Thread-safety: plain values.
#ifndef SYNCLINE_COORDINATOR_RECORDING_RECORDING_H_
#define SYNCLINE_COORDINATOR_RECORDING_RECORDING_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/time.h"

namespace syncline::recording {

inline constexpr int kFormatVersion = 1;
// The hub's name in clocks/<local>--<remote>.samples; no node may be called so.
inline constexpr std::string_view kCoordinatorName = "coordinator";

// Where things are below a recording's directory.
class Layout {
 public:
  explicit Layout(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path RecordingJson() const { return root_ / "recording.json"; }
  // Where the ranks stood behind a window in which no step ended.
  std::filesystem::path Stacks() const { return root_ / "stacks.json"; }
  std::filesystem::path Clocks() const { return root_ / "clocks"; }
  std::filesystem::path Samples(std::string_view local, std::string_view remote) const;
  std::filesystem::path Tuples(std::string_view node) const;
  std::filesystem::path Models() const { return Clocks() / "models.json"; }
  std::filesystem::path Probes() const { return Clocks() / "probes.json"; }
  std::filesystem::path Nodes() const { return root_ / "nodes"; }
  std::filesystem::path Node(std::string_view node) const;
  std::filesystem::path NodeJson(std::string_view node) const { return Node(node) / "node.json"; }
  std::filesystem::path Trace(std::string_view node) const { return Node(node) / "trace"; }
  std::filesystem::path Processes(std::string_view node) const { return Node(node) / "processes"; }
  // TensorFlow's profiles.
  std::filesystem::path XSpace(std::string_view node) const { return Node(node) / "xspace"; }
  std::filesystem::path Kineto(std::string_view node) const { return Node(node) / "kineto"; }
  std::filesystem::path Evidence(std::string_view node) const { return Node(node) / "evidence"; }
  std::filesystem::path Out() const { return root_ / "out"; }

 private:
  std::filesystem::path root_;
};

struct CreatedBy {
  std::string user;
  std::string host;
  std::string version;
  std::vector<std::string> command_line;
};

// The window in timeline time (ns from T): what was asked for and why it ended.
struct Window {
  int64_t requested_ns = 0;  // 0: until interrupted
  int64_t begin_timeline_ns = 0;
  int64_t end_timeline_ns = 0;
  std::string stop_reason;  // requested, interrupted, lost nodes
};

struct Reference {
  std::string node;
  int64_t zero_monotonic_raw_ns = 0;  // timeline zero in the reference's MONOTONIC_RAW
};

// When a node's gate was opened or closed, in its own clocks; zeros: it never was.
struct Gate {
  int64_t requested_monotonic_raw_ns = 0;
  int64_t gate_begin_monotonic_raw_ns = 0;
  int64_t gate_end_monotonic_raw_ns = 0;
  int64_t gate_begin_monotonic_ns = 0;
  int64_t gate_end_monotonic_ns = 0;
};

struct StartRecord : Gate {
  uint32_t processes_switched = 0;
};

struct StopRecord : Gate {
  std::string reason;
  bool complete = false;  // false: something that was recorded cannot be read; complaints say what
};

struct PrepareRecord {
  std::string session;
  uint64_t subbuffer_bytes = 0;
  uint32_t subbuffer_count = 0;
  uint64_t buffers_bytes = 0;
  int64_t canary_round_trip_ns = 0;
  int64_t duration_ns = 0;
};

struct ChannelRecord {
  std::string name;
  uint64_t discarded_events = 0;
  bool discarded_events_valid = true;
  uint64_t lost_packets = 0;
};

struct StreamRecord {
  std::string path;  // relative to the node's trace/
  uint64_t bytes = 0;
  uint64_t packets = 0;
  uint64_t sequence_gaps = 0;
  uint64_t discarded_events = 0;
  bool closed = true;
};

struct ProcessRecord {
  int32_t pid = 0;      // as the agent sees it; 0: not known
  int32_t own_pid = 0;  // as it sees itself
  int64_t pid_namespace_inode = 0;
  uint64_t start_ticks = 0;
  uint32_t uid = 0;
  std::string command_line;
  std::string job;
  std::string incarnation;
  int32_t rank = -1;
  int32_t world_size = -1;
  std::string role;
  std::string part;  // rank, launcher, loader worker, child; empty: unknown
  std::vector<std::string> sources;
  int64_t on_monotonic_ns = 0;   // its first event that LTTng took; 0: none
  int64_t off_monotonic_ns = 0;  // 0: still on when the gate closed
  uint64_t events = 0;
  uint64_t lost = 0;
  uint64_t cost_ns = 0;
  bool cost_valid = false;
  uint64_t cost_lo_ns = 0;
  uint64_t cost_hi_ns = 0;  // 0: the interval is unknown
  uint64_t cost_samples = 0;
  int64_t started_monotonic_ns = 0;     // when its control block was made; 0: unknown
  bool became_another_program = false;  // by exec; of that one nothing was recorded
  uint32_t pauses = 0;                  // that the program asked for (__itt_pause)
  int64_t ended_monotonic_ns = 0;       // when it was found to have ended; 0: it was not
  bool stopped = false;
  bool has_control_block = false;
  // There before the start, so that it could have covered the window.
  bool present_at_prepare = false;
};

// The time spent inside our code, all threads added; nullopt: not measured.
std::optional<DurationEstimate> CostOf(const ProcessRecord& process);

struct ComplaintRecord {
  std::string severity;  // note, warning, blocker
  std::string what;
  std::string fix;
  int32_t pid = 0;            // 0: concerns the node
  bool not_recorded = false;  // of the process, or of these processes, nothing will be recorded
  int64_t user = -1;          // the uid whose processes are meant; -1: of no user in particular
};

struct Fetched {
  uint64_t bytes = 0;
  bool complete = false;
  uint64_t lost_profiles = 0;    // that ran and did not come, by the lists among what was fetched
  uint64_t profiles = 0;         // that came
  uint64_t kineto_profiles = 0;  // of these
};

enum class NodeState : uint8_t {
  kComplete,
  kIncomplete,  // something is lost; `failure` or the losses say what
  kMissing,     // took no part
  kLeft,        // data still on the node: `syncline fetch RUN` resumes
};

const char* NodeStateName(NodeState state);

struct NodeRecord {
  std::string name;
  std::string address;  // host:port, [v6]:port or unix:/path
  std::string role;     // from the hosts file
  NodeState state = NodeState::kMissing;
  std::string failure;
  StartRecord start;
  StopRecord stop;
  PrepareRecord prepare;
  std::vector<ChannelRecord> channels;
  std::vector<StreamRecord> streams;
  std::vector<ProcessRecord> processes;
  std::vector<ComplaintRecord> complaints;
  Fetched fetched;
};

// What LTTng wrote on a node, and what it did not.
struct Volume {
  uint64_t bytes = 0;
  std::optional<uint64_t> discarded_events;  // nullopt: LTTng, or some channel, could not say
  std::optional<uint64_t> lost_packets;      // nullopt: LTTng could not say
};
Volume VolumeOf(const NodeRecord& node);

// Whether the process was switched on, and said so, at some instant of the window.
bool CoversWindow(const NodeRecord& node, const ProcessRecord& process);

// Whether the process had something to record (a task, a TCP connection, PyTorch) for the first
// time after the recording had been prepared, and was never switched on: agents notice such a
// process some 0.1 s later, and it was gone by then, or the window was.
bool CameTooLate(const NodeRecord& node, const ProcessRecord& process);

// Whether it is a loss that the process covers nothing of the window: it came too late, or it was
// there and stood still, or called while LTTng took none of it, or could not be recorded, or nobody
// on the node covers anything. One that ran beside others and made no call had nothing to record.
bool MissedWindow(const NodeRecord& node, const ProcessRecord& process);

// What was said of the process when it was found that it cannot be recorded; nullptr: nothing was.
const ComplaintRecord* NotRecorded(const NodeRecord& node, const ProcessRecord& process);

// How late the node began, where that is a loss worth a word: its trace has nothing of the
// window's begin.
std::optional<int64_t> LateStartNs(const NodeRecord& node);

// Whether the node was asked to start and never did, as far as is known: its gate was never moved,
// or closed for good before it was to open.
bool NeverStarted(const NodeRecord& node);

// How long before the window's end the node stopped recording; nullopt: it did not, or it was never
// told when that end is.
std::optional<int64_t> EarlyEndNs(const NodeRecord& node);

// Whether the agent ended the recording for a reason of its own before it was asked to, as far as
// is known.
bool EndedByItself(const NodeRecord& node);

// What is to be said of processes that began in the window and were recorded from then on: they are
// noticed a little late. Empty: there are none.
std::string DescribeBegun(const NodeRecord& node);

struct Recording {
  std::string recording_id;
  CreatedBy created_by;
  int64_t epoch_unix_ns = 0;  // timeline zero by the reference's wall clock: for display only
  Window window;
  Reference reference;
  bool redacted = false;                  // names were replaced: `syncline pack --redact`
  std::vector<std::string> extra_events;  // patterns of other providers' events
  std::string detail = "full";            // of record --detail: "full", "normal" or "low"
  std::vector<NodeRecord> nodes;          // in the order of ClockId::node
};

// What is not in a recording of another detail than "full" (docs/detail.md).
std::string DescribeDetail(const Recording& recording);

// Whether there was nothing on any node that could have been traced: no program with our libraries,
// no other provider's event was asked for, and no profile came. Idle programs are something.
bool NothingToTrace(const Recording& recording);
inline constexpr const char* kNothingToTrace =
    "nothing was recorded: no node had a program that can be traced in the window; start the job "
    "under `syncline run -- CMD`, or with the lines of `syncline env`";

// Whether nothing of it is missing: every node is complete, the window ended as it was asked to,
// and there was something to trace.
bool IsComplete(const Recording& recording);

// FailedPrecondition for a format_version that this program does not read; InvalidArgument for text
// that is no recording.json: the message names the key. Node names are checked to be safe as
// directory names.
absl::StatusOr<Recording> ParseRecording(std::string_view json);
std::string FormatRecording(const Recording& recording);

// NotFound when `directory` looks like a recording whose recording.json is gone (copied in part,
// say): it says so, and what can be done.
absl::Status CheckNotHeadless(const std::filesystem::path& directory);

// RUN/recording.json. NotFound, with what a recording looks like, when `directory` is not one;
// FailedPrecondition: of another format_version; DataLoss: damaged.
absl::StatusOr<Recording> ReadRecording(const std::filesystem::path& directory);
absl::Status WriteRecording(const std::filesystem::path& directory, const Recording& recording);

// Letters, digits, '.', '_' and '-', at most 64, beginning with a letter or digit, not
// "coordinator": names become directories, DNS names in certificates and columns of tables.
// InvalidArgument says which rule.
absl::Status CheckNodeName(std::string_view name);

}  // namespace syncline::recording

#endif  // SYNCLINE_COORDINATOR_RECORDING_RECORDING_H_
