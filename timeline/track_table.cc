// SPDX-License-Identifier: Apache-2.0
#include "timeline/track_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/process_part.h"
#include "common/text.h"

namespace syncline::timeline {
namespace {

constexpr uint32_t kTextsMax = 1 << 16;  // names with smaller ids are found without hashing
constexpr size_t kCommandBytesMax = 48;  // of a track's name; the whole is among its facts

// "python train.py --lr 1" from "/usr/bin/python train.py --lr 1".
std::string ShortCommand(std::string_view command) {
  const size_t blank = command.find(' ');
  const size_t slash = command.substr(0, blank).rfind('/');
  std::string text(slash == std::string_view::npos ? command : command.substr(slash + 1));
  if (text.size() > kCommandBytesMax) {
    size_t cut = kCommandBytesMax;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;  // whole UTF-8
    text.resize(cut);
    text += "…";
  }
  return text;
}

void AddFacts(const ProcessEntry& process, Track* track) {
  auto& facts = track->facts;
  if (process.key.pid != 0) facts.emplace_back("pid", absl::StrCat(process.key.pid));
  if (process.key.pid_namespace != 0) {
    facts.emplace_back("pid namespace", absl::StrCat(process.key.pid_namespace));
  }
  if (process.key.start_ticks != 0) {
    facts.emplace_back("start ticks", absl::StrCat(process.key.start_ticks));
  }
  const KnownProcess* known = process.known;
  if (known == nullptr) return;
  facts.emplace_back("uid", absl::StrCat(known->uid));
  if (!known->job.empty()) facts.emplace_back("job", known->job);
  if (!known->incarnation.empty()) facts.emplace_back("incarnation", known->incarnation);
  if (known->rank >= 0) facts.emplace_back("rank", absl::StrCat(known->rank));
  if (known->world_size >= 0) facts.emplace_back("world size", absl::StrCat(known->world_size));
  if (!known->role.empty()) facts.emplace_back("role", known->role);
  if (!known->part.empty()) facts.emplace_back("part", known->part);
  if (!known->command_line.empty()) facts.emplace_back("command line", known->command_line);
}

}  // namespace

std::string TrackTable::NameOfProcess(const ProcessEntry& process) const {
  std::string name = context_.node.name;
  const KnownProcess* known = process.known;
  if (known != nullptr) {
    const std::string part = PartText({known->part, known->rank, known->worker_id});
    // A profile alone is a node that is called like its rank.
    if (!part.empty() && part != name) absl::StrAppend(&name, " · ", part);
    // Its command is its rank's, and many stand below each other.
    if (known->part == kPartLoaderWorker) return name;
  }
  if (known != nullptr && !known->command_line.empty()) {
    absl::StrAppend(&name, " · ", ShortCommand(known->command_line));
  } else if (process.key.pid != 0) {
    absl::StrAppend(&name, " · pid ", process.key.pid);
  } else if (known == nullptr || known->part.empty()) {
    absl::StrAppend(&name, " · unknown process");
  }
  return name;
}

void TrackTable::AddNode() {
  Track track;
  track.kind = TrackKind::kNode;
  track.name = context_.node.name;
  track.node = context_.index;
  track.facts = context_.node.facts;
  node_track_ = context_.emitter->AddTrack(std::move(track));
}

Track TrackTable::TrackOf(const ProcessEntry& process) const {
  Track track;
  track.parent = node_track_;
  track.kind = TrackKind::kProcess;
  track.name = NameOfProcess(process);
  track.node = context_.index;
  track.process = process.key;
  AddFacts(process, &track);
  return track;
}

TrackTable::Process& TrackTable::AddProcess(uint32_t index) {
  if (processes_.size() <= index) processes_.resize(index + 1);
  Process& process = processes_[index];
  const ProcessEntry& entry = tables_->processes()[index];
  Track track = TrackOf(entry);
  process.name = track.name;
  Track prototype;
  prototype.node = context_.index;
  prototype.process = entry.key;

  ProcessKey key = entry.key;
  if (context_.options.keys_without_node) key.node = 0;
  const auto shared = shared_->find(key);
  const bool identified = key.pid != 0;
  if (identified && shared != shared_->end()) {
    process.track = shared->second;
  } else {
    process.track = context_.emitter->AddTrack(std::move(track));
    if (identified) (*shared_)[key] = process.track;
  }
  process.async =
      std::make_unique<AsyncSpans>(context_.emitter, process.track, std::move(prototype));
  return process;
}

TrackTable::Thread& TrackTable::AddThread(uint32_t index) {
  if (threads_.size() <= index) threads_.resize(index + 1);
  Thread& thread = threads_[index];
  const ThreadEntry& entry = tables_->threads()[index];
  thread.process = entry.process;
  Process& process = ProcessAt(entry.process);
  process.threads.push_back(index);
  Track track;
  track.parent = process.track;
  track.kind = TrackKind::kThread;
  track.node = context_.index;
  track.process = tables_->processes()[entry.process].key;
  track.tid = entry.tid;
  if (!entry.name.empty()) {
    track.name = entry.name;
  } else if (entry.tid != 0) {
    track.name = absl::StrCat("thread ", entry.tid);
  } else {
    track.name = absl::StrCat("thread key ", entry.thread_key);
  }
  thread.spans = std::make_unique<ThreadSpans>(
      context_.emitter, context_.emitter->AddTrack(std::move(track)), context_.options.shown);
  if (process.covered_since.has_value()) thread.spans->CoverageBegins(*process.covered_since);
  if (process.open_ids != nullptr) thread.spans->ListOpenIds(process.open_ids.get(), index);
  return thread;
}

const std::vector<uint32_t>& TrackTable::ThreadsOf(Process* process) {
  std::vector<uint32_t>& threads = process->threads;
  if (!std::is_sorted(threads.begin(), threads.end())) std::sort(threads.begin(), threads.end());
  return threads;
}

const OpenIds& TrackTable::OpenIdsOf(Process* process) {
  if (process->open_ids == nullptr) {
    process->open_ids = std::make_unique<OpenIds>();
    for (const uint32_t thread : process->threads) {
      threads_[thread].spans->ListOpenIds(process->open_ids.get(), thread);
    }
  }
  return *process->open_ids;
}

Span* TrackTable::FindOpenTask(uint32_t process, IttId id) {
  const std::optional<uint32_t> thread = OpenIdsOf(&ProcessAt(process)).FirstThread(id);
  return thread.has_value() ? threads_[*thread].spans->FindOpen(id, /*depth=*/0) : nullptr;
}

bool TrackTable::IsOpenBeside(uint32_t index, uint32_t domain, IttId id, TrackId track,
                              TimelineTime begin) {
  Process& process = ProcessAt(index);
  for (const uint32_t thread : OpenIdsOf(&process).Threads(id)) {
    const ThreadSpans& spans = *threads_[thread].spans;
    // On another track none is meant: it begins never.
    const TimelineTime but_for = spans.track() == track ? begin : TimelineTime{kUnknownLo};
    if (spans.IsOpenBeside(domain, id, but_for)) return true;
  }
  return process.async->IsOpenBeside({AsyncSpans::kOverlappedTasks, domain, id}, track, begin);
}

TextId TrackTable::NameText(uint32_t process, uint32_t id) {
  if (id == 0) return kNoText;
  Process& entry = ProcessAt(process);
  if (id < kTextsMax && id >= entry.texts.size()) entry.texts.resize(id + 1, kNoText);
  TextId& text = id < kTextsMax ? entry.texts[id] : entry.other_texts[id];
  if (text != kNoText) return text;
  const std::string_view name = tables_->processes()[process].Name(id);
  if (name.data() == nullptr) {
    text = context_.emitter->Text(absl::StrCat("name #", id));
  } else {
    text = context_.emitter->Text(name.empty() ? "(empty name)" : name);
  }
  return text;
}

}  // namespace syncline::timeline
