// SPDX-License-Identifier: Apache-2.0
#include "timeline/relation_arrows.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncline::timeline {
namespace {

struct Words {
  const char* said;  // of the head
  const char* back;  // the same of the tail
};
// By ITT's number.
constexpr Words kWords[] = {{"is unknown", "is unknown"},
                            {"is dependent on", "is needed by"},
                            {"is sibling of", "is sibling of"},
                            {"is parent of", "is child of"},
                            {"is continuation of", "is continued by"},
                            {"is child of", "is parent of"},
                            {"is continued by", "is continuation of"},
                            {"is predecessor to", "is successor of"}};

const Words& WordsOf(uint64_t kind) { return kWords[kind < std::size(kWords) ? kind : 0]; }

}  // namespace

const char* RelationName(uint64_t kind) { return WordsOf(kind).said; }

size_t NewestTasks::Hash::operator()(const Key& key) const {
  uint64_t hash = key.domain;
  for (const uint64_t part : {key.id.d1, key.id.d2, key.id.d3}) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio: spreads counters
    hash ^= hash >> 32;
  }
  return hash;
}

void NewestTasks::Began(uint32_t domain, IttId id, const Task& task) {
  if (newer_.size() == kIdsLeast) {
    older_ = std::move(newer_);
    newer_.clear();
  }
  newer_[{domain, id}] = task;
}

std::optional<NewestTasks::Task> NewestTasks::Find(uint32_t domain, IttId id) const {
  for (const Tasks* tasks : {&newer_, &older_}) {
    const auto found = tasks->find({domain, id});
    if (found == tasks->end()) continue;
    if (found->second.begin_ns <= doubted_until_ns_) return std::nullopt;
    return found->second;
  }
  return std::nullopt;
}

void RelationArrows::BeganWithId(uint32_t process, uint32_t domain, IttId id, const Span& span) {
  // In a domain whose name did not fit: it may be any.
  if (domain == 0) return Doubt(process, span.node_begin.ns);
  Of(process).Began(domain, id, {span.track, span.begin, span.node_begin.ns});
}

void RelationArrows::DoubtOwner(uint32_t owner, int64_t until_ns) {
  if (owner >= owners_doubted_until_ns_.size()) {
    owners_doubted_until_ns_.resize(owner + 1, kUnknownLo);
  }
  int64_t& doubted_ns = owners_doubted_until_ns_[owner];
  doubted_ns = std::max(doubted_ns, until_ns);
}

RelationArrows::End RelationArrows::Named(uint32_t process, uint32_t domain, IttId id) {
  if (!id) return {};
  const std::optional<NewestTasks::Task> newest = Of(process).Find(domain, id);
  if (!newest.has_value()) return {};
  const std::optional<Moment>& covered_since = tracks_->ProcessAt(process).covered_since;
  const bool paused_since = !covered_since.has_value() || newest->begin_ns < covered_since->node.ns;
  const uint32_t owner = tables_.processes()[process].owner;
  const bool lost_since = owner < owners_doubted_until_ns_.size() &&
                          newest->begin_ns <= owners_doubted_until_ns_[owner];
  if (paused_since || lost_since) return {};
  if (tracks_->IsOpenBeside(process, domain, id, newest->track, newest->begin)) {
    return {std::nullopt, /*ambiguous=*/true};
  }
  return {newest};
}

RelationArrows::End RelationArrows::Current(uint32_t thread) const {
  const TrackTable::Thread& entry = tracks_->ThreadAt(thread);
  const Span* const span = entry.spans->SurelyInnermost();
  if (span == nullptr || entry.numbers.has_pending()) return {};
  return {NewestTasks::Task{span->track, span->begin, span->node_begin.ns}};
}

void RelationArrows::On(const NodeEvent& event) {
  const EventReader& fields = event.fields;
  const uint32_t domain = fields.U32(Field::kDomain);
  const IttId head_id = fields.Id();
  const End head = head_id ? Named(event.process, domain, head_id) : Current(event.thread);
  const End tail = Named(event.process, domain, fields.OtherId());
  if ((head.ambiguous || tail.ambiguous) && context_.IsCounted(event.at.timeline)) ++ambiguous_;
  if (!head.task.has_value() || !tail.task.has_value() || head.task == tail.task) return;
  // Viewers draw arrows in the direction of time: the name is read along it.
  const bool onward = head.task->begin <= tail.task->begin;
  const Words& words = WordsOf(fields.U64(Field::kKind));
  const TextId name =
      context_.emitter->Text(absl::StrCat("relation: ", onward ? words.said : words.back));
  onward ? Draw(*head.task, *tail.task, name) : Draw(*tail.task, *head.task, name);
}

void RelationArrows::Draw(const NewestTasks::Task& from, const NewestTasks::Task& to, TextId name) {
  if (arrows_.size() >= NewestTasks::kIdsLeast) arrows_.clear();
  uint32_t& leaving = arrows_[{from.track, from.begin}];
  uint32_t& arriving = arrows_[{to.track, to.begin}];
  if (leaving == kArrowsMax || arriving == kArrowsMax) {
    if (context_.IsCounted(to.begin)) ++crowded_;
    return;
  }
  Flow flow;
  flow.id = context_.emitter->NewFlowId();
  flow.from = from.track;
  flow.to = to.track;
  flow.sent = {from.begin.ns + leaving++};
  flow.received = std::max(TimelineTime{to.begin.ns + arriving++}, flow.sent);
  flow.name = name;
  context_.emitter->Push(flow);
}

}  // namespace syncline::timeline
