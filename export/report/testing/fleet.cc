// SPDX-License-Identifier: Apache-2.0
#include "export/report/testing/fleet.h"

#include "absl/strings/str_cat.h"

namespace syncline::report::testing {
namespace {

std::string ProcessName(size_t index) {
  return absl::StrCat(NodeName(index), " · rank ", index, " · python train.py");
}
// Differ from node to node in their first three digits, and not in the order of the nodes.
int64_t Scattered(size_t index, int64_t unit_ns) {
  return unit_ns * static_cast<int64_t>(100 + (index * 37) % 100);
}

analysis::NodeReport FleetNode(size_t index) {
  analysis::NodeReport node;
  node.name = NodeName(index);
  node.role = index == 0 ? "master" : "worker";
  node.state = "complete";
  node.events = 10'000 + index;
  node.bound_ns = Scattered(index, 10);
  node.start_skew = Estimate(Scattered(index, 31), *node.bound_ns);
  node.stop_skew = Estimate(Scattered(index, 53), *node.bound_ns);
  if (index > 0) node.wall_error = Estimate(Scattered(index, 71'000), *node.bound_ns);
  analysis::ProcessReport process;
  process.name = ProcessName(index);
  process.pid = static_cast<int32_t>(4000 + index);
  process.rank = static_cast<int32_t>(index);
  process.threads = 7;
  process.covered_begin = TimelineTime{0};
  process.covered_end = TimelineTime{kWindowNs};
  process.covered_ns = kWindowNs - 2'000'000;
  process.missing_ns = 2'000'000;
  process.end_known = true;
  process.events = node.events;
  node.processes.push_back(process);
  return node;
}

void AddTensors(uint32_t from, uint32_t to, analysis::Report* report) {
  analysis::TensorEdgeReport edge;
  edge.tensor = absl::StrCat("edge_", from);
  edge.send_node = from;
  edge.receive_node = to;
  edge.count = edge.sized = 300 + from;
  edge.sized_bytes = 1'000'000 + from;
  edge.waiting_ns = Scattered(from, 41'000);
  edge.flight = Estimate(Scattered(from, 2'300), 1'100);
  report->tensors.edges.push_back(edge);
}

void AddMessages(uint32_t from, uint32_t to, analysis::Report* report) {
  analysis::MessageRow row;
  row.from = absl::StrCat("10.0.0.", from, ":1");
  row.to = absl::StrCat("10.0.0.", to, ":2");
  row.send_node = from;
  row.receive_node = to;
  row.messages = 600 + from;
  row.sent_bytes = 5'000'000 + from;
  row.largest_bytes = 70'000 + from;
  row.retransmits = from;
  row.flight = Estimate(Scattered(from, 4'700), 1'300);
  report->messages.rows.push_back(row);
}

void AddTransfers(uint32_t from, uint32_t to, analysis::Report* report) {
  analysis::TransferRow transfer;
  transfer.channel = from;
  transfer.send_node = from;
  transfer.receive_node = to;
  transfer.tags = 1;
  transfer.count = 80 + from;
  transfer.bytes = 90'000 + from;
  transfer.waiting_ns = Scattered(from, 43'000);
  transfer.flight = Estimate(Scattered(from, 5'900), 1'700);
  timeline::Channel channel;
  channel.group.description = "stages";
  channel.source = static_cast<int32_t>(from);
  channel.destination = static_cast<int32_t>(to);
  report->transfers.found.channels.push_back(channel);
  report->transfers.rows.push_back(transfer);
}

void AddWork(uint32_t node, analysis::Report* report) {
  analysis::StepSeries series;
  series.node = node;
  series.process = ProcessName(node);
  series.name = "train_step";
  series.domain = "training";
  series.steps.resize(300);
  series.min_ns = Scattered(node, 80'000);
  series.median_ns = Scattered(node, 90'000);
  series.mean_ns = Scattered(node, 91'000);
  series.max_ns = Scattered(node, 170'000);
  report->steps.push_back(series);
  report->tasks.push_back({NodeName(node), "training", "train_step", 300, 0, 9'000'000'000, 7});
  for (int64_t i = 1; i <= 12; ++i) {
    const int64_t total_ns = i * Scattered(node, 1'000'000);
    report->tasks.push_back(
        {NodeName(node), "PyTorch", absl::StrCat("aten::op", i), 100, 0, total_ns, total_ns / 2});
  }
  analysis::ProcessReceipt process;
  process.name = ProcessName(node);
  process.events = 10'000 + node;
  process.covered_ns = kWindowNs;
  const int64_t cost_ns = Scattered(node, 100'000);
  process.cost = DurationEstimate{cost_ns, cost_ns / 2, cost_ns * 2};
  process.step_ns = series.median_ns;
  report->receipt.push_back({NodeName(node), 400'000 + node, 0, 0, {process}});
}

void AddProfile(uint32_t node, analysis::Report* report) {
  timeline::ProfileResult profile;
  profile.name = ProcessName(node);
  profile.begin = TimelineTime{-4'000'000};
  profile.end = TimelineTime{kWindowNs};
  profile.events = 500;
  profile.operators = 400 + node;
  report->nodes[node].profiles.push_back(profile);
  timeline::Partition partition;
  partition.task = absl::StrCat("/job:worker/task:", node);
  partition.nodes.resize(3);
  partition.graphs.push_back({300 + node, {0, 1, 2}});
  report->nodes[node].partitions.push_back(partition);
}

void AddCollectives(analysis::Report* report) {
  report->collectives.found.groups.resize(1);
  report->collectives.found.groups[0].description = "default_pg";
  for (int64_t i = 1; i <= 6; ++i) {
    analysis::CollectiveKindReport kind;
    kind.name = absl::StrCat("allreduce", i);
    kind.count = 110;
    kind.whole = 100;
    kind.bytes = 2'000'000;
    kind.spread = Estimate(i * 1'234'000, 4'560);
    kind.duration = Estimate(i * 2'345'000, 4'560);
    report->collectives.kinds.push_back(kind);
  }
}

}  // namespace

std::string NodeName(size_t index) { return absl::StrCat("node-", index); }

analysis::LevelledDuration Estimate(int64_t est_ns, int64_t bound_ns) {
  return {{est_ns, est_ns - bound_ns, est_ns + bound_ns}, std::nullopt};
}

namespace {

// A rank that ran for 60 % of its time, slept for 39 % and waited for a CPU for 1 %; its loader.
void AddMachine(uint32_t node, analysis::Report* report) {
  const analysis::ProcessUsage usage{.process = {},
                                     .sampled_ns = kWindowNs,
                                     .running_ns = kWindowNs / 100 * 60,
                                     .waiting_ns = kWindowNs / 100,
                                     .throttled_ns = 0,
                                     .threads = 3,
                                     .threads_running_ns = kWindowNs / 4 * 5,
                                     .threads_waiting_ns = kWindowNs / 50};
  analysis::ProcessUsage loader = usage;
  loader.threads_running_ns = kWindowNs / 200;
  const auto rank = static_cast<int32_t>(node);
  report->machines.push_back(
      {.node = node,
       .window_ns = kWindowNs,
       .processes = {{absl::StrCat(NodeName(node), " · rank ", rank), "rank", rank, usage},
                     {absl::StrCat(NodeName(node), " · loader"), "loader worker", rank, loader}},
       .others = {}});
}

// The rank's main thread hardly waited for a CPU; stress-ng had it meanwhile.
void AddScheduling(uint32_t node, analysis::Report* report) {
  const int64_t ready_ns = Scattered(node, 43'210);
  const std::vector<analysis::CpuTaker> takers = {
      {.pid = 90, .name = "stress", .process_name = "stress-ng", .ns = ready_ns - 1000}};
  analysis::ThreadScheduling thread;
  thread.tid = 4711;
  thread.name = "python";
  thread.times = {
      .running_ns = kWindowNs / 2, .ready_ns = ready_ns, .asleep_ns = kWindowNs / 2 - ready_ns};
  thread.turns = 5000 + node;
  thread.longest_ready_ns = 7'000'000;
  thread.takers = takers;
  analysis::ProcessScheduling process;
  process.name = ProcessName(node);
  process.rank = static_cast<int32_t>(node);
  process.pid = 4711;
  process.times = thread.times;
  process.turns = thread.turns;
  process.takers = takers;
  process.threads = {thread};
  report->scheduling.push_back({.node = node,
                                .window_ns = kWindowNs,
                                .complete = true,
                                .cost_ns = 3'000'000,
                                .processes = {process}});
}

// Samples of one operator's code.
void AddCode(uint32_t node, analysis::Report* report) {
  report->hot.nodes.push_back({.node = node,
                               .period_ns = 10'101'010,
                               .kernel = true,
                               .complete = true,
                               .threads = 1,
                               .samples = 100,
                               .on_cpu_ns = 1'010'000'000,
                               .cost_ns = 3'000'000});
  report->hot.samples += 100;
  if (report->hot.tasks.empty()) {
    report->hot.tasks.push_back({.domain = "PyTorch", .name = "aten::mm"});
    report->hot.tasks[0].functions.push_back({.function = "gemm", .library = "libtorch_cpu.so"});
  }
  report->hot.tasks[0].samples += 100;
  report->hot.tasks[0].functions[0].samples += 100;
}

// oneDNN's primitives of the node's rank.
void AddPrimitives(uint32_t node, analysis::Report* report) {
  report->primitives.processes.push_back({.node = node,
                                          .name = absl::StrCat(NodeName(node), " · rank ", node),
                                          .calls = 10,
                                          .total_ns = 10'000'000 + node,
                                          .by_set_ns = {{"avx512_core", 10'000'000 + node}}});
  if (report->primitives.totals.empty()) {
    report->primitives.totals.push_back(
        {"aten::mm", {.kind = "matmul", .implementation = "jit:avx512_core", .types = "f32"}});
  }
  report->primitives.totals[0].calls += 10;
  report->primitives.totals[0].total_ns += 10'000'000 + node;
}

// VTune's result of the node's rank; of every tenth none.
void AddVtune(uint32_t node, analysis::Report* report) {
  analysis::VtuneResult result;
  result.process.node = node;
  result.pid = 4711;
  result.rank = static_cast<int32_t>(node);
  result.analysis = "hotspots";
  if (node % 10 == 9) {
    result.problem = "VTune ended with code 1: no driver";
  } else {
    result.path = absl::StrCat("nodes/", NodeName(node), "/vtune/4711/result");
    result.spans = {{"step 7", 4711, {0}, {kWindowNs / 10}, 0, kWindowNs / 5}};
  }
  report->vtune.push_back(std::move(result));
}

// Of each rank: two steps on a GPU.
void AddDevice(uint32_t node, analysis::Report* report) {
  analysis::DeviceReport device;
  device.process = absl::StrCat(NodeName(node), " · rank ", node, " · python train.py");
  device.device = "GPU 0";
  device.has_steps = true;
  device.work = 400;
  device.without_launch = 3;
  for (int64_t i = 0; i < 2; ++i) {
    analysis::DeviceStep step;
    step.name = absl::StrCat("ProfilerStep#", i);
    step.begin.ns = (10 + 20 * i) * 1'000'000;
    step.end.ns = step.begin.ns + 18'000'000 + node * 1000;
    step.work = 200;
    step.use.computing_ns = 9'000'000;
    step.use.communication_ns = 3'000'000;
    step.use.copies_ns = 1'000'000;
    step.use.unlaunched_ns = 4'000'000;
    step.use.unstarted_ns = 1'000'000 + node * 1000;
    device.steps.push_back(step);
  }
  device.operators = {{"aten::mm", 100, 12'000'000, "void gemm<float>(int)"},
                      {"aten::add_", 300, 6'000'000, "void add<float>(int)"}};
  report->nodes[node].devices.push_back(std::move(device));
}

// The same device, by its driver.
void AddHealth(uint32_t node, analysis::Report* report) {
  analysis::DeviceHealth health;
  health.node = node;
  health.device = {.id = "GPU-1", .name = "NVIDIA H100 80GB HBM3", .sm_mhz_max = 1980};
  health.samples = 50;
  health.users = {{.name = "python", .pid = 4711, .rank = static_cast<int32_t>(node)}};
  health.values = {{evidence::DeviceValue::kSmMhz, {1755, 1980, 1950, 1980}},
                   {evidence::DeviceValue::kBusyPercent, {90, 97, 96, 100}}};
  health.held_back = {{evidence::DeviceValue::kPowerNs, {0.01, 0.005, 0.015}}};
  report->health.push_back(std::move(health));
}

// One of all ranks.
void AddCommunicator(analysis::Report* report) {
  analysis::CommunicatorReport communicator;
  communicator.id = 0xC0FFEE;
  communicator.size = static_cast<uint32_t>(report->nodes.size());
  communicator.job = "train";
  communicator.waits.resize(1200);
  for (uint32_t i = 0; i < communicator.size; ++i) {
    analysis::CommunicatorMember& member = communicator.members.emplace_back();
    member.key.node = i;
    member.job_rank = static_cast<int32_t>(i);
    member.rank = i;
    member.collectives = 1234;
    member.kernels_ns = 1'500'000'000 - i * 1'000'000;
    member.waited_ns = 700'000'000 - i * 1'000'000;
    member.last_in = i;
  }
  communicator.incomplete = 34;
  report->communicators.push_back(std::move(communicator));
}

// Over TCP, by the kernel.
void AddNetwork(uint32_t from, uint32_t to, analysis::Report* report) {
  analysis::NetworkLink link;
  link.from = {NodeName(from), "python", static_cast<int32_t>(from)};
  link.to = {NodeName(to), "python", static_cast<int32_t>(to)};
  link.connections = 2;
  link.sums = {.sent_bytes = 278'000'000, .sent_segments = 190'000, .busy_us = 900'000};
  link.min_rtt_us = 40 + from % 7;
  link.median_rtt_us = 220;
  report->network.push_back(std::move(link));
}

}  // namespace

analysis::Report Fleet(uint32_t nodes, Job job) {
  analysis::Report report;
  report.recording_id = "20261121-093012-7f3a";
  report.from_recording = true;
  report.window_end = {kWindowNs};
  report.stop_reason = "requested";
  report.reference = NodeName(0);
  report.common_coverage = {{{1'000'000}, {kWindowNs}}};
  report.ranks = nodes;
  for (uint32_t i = 0; i < nodes; ++i) {
    report.nodes.push_back(FleetNode(i));
    report.events += report.nodes.back().events;
    AddWork(i, &report);
    AddProfile(i, &report);
    AddMachine(i, &report);
    AddScheduling(i, &report);
    AddCode(i, &report);
    AddPrimitives(i, &report);
    AddVtune(i, &report);
    if (job != Job::kTensorFlow) AddDevice(i, &report);
    if (job != Job::kTensorFlow) AddHealth(i, &report);
    const uint32_t next = (i + 1) % nodes;
    AddMessages(i, next, &report);
    AddNetwork(i, next, &report);
    if (job != Job::kPyTorch) AddTensors(i, next, &report);
    if (job != Job::kTensorFlow) AddTransfers(i, next, &report);
  }
  if (job != Job::kTensorFlow) AddCollectives(&report);
  if (job != Job::kTensorFlow) AddCommunicator(&report);
  report.messages.messages = 12'345;
  clocksync::ClockEvent event;
  event.kind = clocksync::ClockEvent::Kind::kStep;
  event.node = NodeName(1);
  event.text = "the wall clock was set";
  event.begin = event.end = TimelineTime{1'230'000'000};
  report.clock_events.push_back(event);
  return report;
}

}  // namespace syncline::report::testing
