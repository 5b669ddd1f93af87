// SPDX-License-Identifier: Apache-2.0
#include "export/why/why_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "export/report/json_values.h"
#include "export/report/network_text.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::BlockedSleep;
using analysis::why::Cause;
using analysis::why::CpuClock;
using analysis::why::CriticalPath;
using analysis::why::FewerThreads;
using analysis::why::FullMemory;
using analysis::why::kParts;
using analysis::why::LongerOperator;
using analysis::why::LongerWork;
using analysis::why::LowerSet;
using analysis::why::MeanEstimate;
using analysis::why::MorePageFaults;
using analysis::why::MoreStealTime;
using analysis::why::NotACause;
using analysis::why::PageFaults;
using analysis::why::Part;
using analysis::why::PartJsonName;
using analysis::why::ProcessorTime;
using analysis::why::RankFinding;
using analysis::why::RankSummary;
using analysis::why::Refusal;
using analysis::why::RefusalJsonName;
using analysis::why::SlowerClock;
using analysis::why::StallGroup;
using analysis::why::Stalls;
using analysis::why::StealTime;
using analysis::why::StepClass;
using analysis::why::StoodIn;
using analysis::why::Taker;
using analysis::why::VerdictJsonName;
using analysis::why::WorkDifference;

Json JsonOf(const MeanEstimate& mean) {
  return {{"est", mean.est_ns}, {"lo", mean.lo_ns}, {"hi", mean.hi_ns}};
}

template <class T, class Make>
Json ArrayOf(const std::vector<T>& values, Make make) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(make(value));
  return array;
}

// Null where it is not known.
Json IfKnown(bool known, int64_t value) { return known ? Json(value) : Json(); }

const char* KindOf(Taker::Kind kind) {
  switch (kind) {
    case Taker::Kind::kOutside:
      return "outside";
    case Taker::Kind::kRank:
      return "other_rank";
    case Taker::Kind::kOwnLoader:
      return "own_loader";
    case Taker::Kind::kOwnThread:
      return "own_thread";
    case Taker::Kind::kSyncline:
      return "syncline";
    case Taker::Kind::kNobody:
      return "nobody";
    case Taker::Kind::kUnknown:
      break;
  }
  return "unknown";
}

const char* BecauseName(NotACause::Because because) {
  switch (because) {
    case NotACause::Because::kSharedQuota:
      return "shared_quota";
    case NotACause::Because::kOwnTransfers:
      return "own_transfers";
    case NotACause::Because::kTooSmall:
      break;
  }
  return "too_small";
}

Json JsonOf(const std::optional<ProcessorTime>& time) {
  if (!time.has_value()) return nullptr;
  return {{"on_cpu_ns", time->on_cpu_ns},
          {"run_queue_ns", time->run_queue_ns},
          {"stolen_ns", time->stolen_ns},
          {"asleep_ns", time->asleep_ns}};
}

Json JsonOf(const Taker& taker) {
  return {{"kind", KindOf(taker.kind)},
          {"name", taker.name.empty() ? Json() : Json(taker.name)},
          {"pid", taker.pid > 0 ? Json(taker.pid) : Json()},
          {"cpu_ns", IfKnown(taker.kind != Taker::Kind::kUnknown, taker.cpu_ns)},
          {"by", taker.by_scheduler ? "scheduler" : "samples"}};
}

const char* CauseName(const Cause& cause) {
  if (cause.threads.has_value()) return "fewer_threads";
  return cause.lower_sets.empty() ? PartJsonName(cause.part) : "instruction_set";
}

Json JsonOf(const std::optional<FewerThreads>& threads) {
  if (!threads.has_value()) return nullptr;
  return {
      {"helpers_ns", threads->own_helpers_ns},
      {"others_helpers_ns", threads->others_helpers_ns},
      {"cpu_ns", threads->own_cpu_ns},
      {"others_cpu_ns", threads->others_cpu_ns},
      {"process_threads", IfKnown(threads->own_threads > 0, threads->own_threads)},
      {"others_process_threads", IfKnown(threads->others_threads > 0, threads->others_threads)}};
}

Json JsonOf(const std::optional<PageFaults>& faults) {
  if (!faults.has_value()) return nullptr;
  return {{"per_step", faults->per_step}, {"page_ns", faults->page_ns}};
}

Json JsonOf(const std::optional<MorePageFaults>& faults) {
  if (!faults.has_value()) return nullptr;
  Json json = JsonOf(std::optional(faults->own));
  json["others_per_step"] = faults->others;
  json["more_ns"] = faults->more_ns;
  return json;
}

Json JsonOf(const std::optional<StealTime>& steal) {
  if (!steal.has_value()) return nullptr;
  return {{"share", steal->share}, {"step_ns", steal->step_ns}};
}

Json JsonOf(const std::optional<CpuClock>& clock) {
  if (!clock.has_value()) return nullptr;
  return {{"khz", clock->khz}, {"readings", clock->readings}};
}

Json JsonOf(const std::optional<SlowerClock>& clock) {
  if (!clock.has_value()) return nullptr;
  Json json = JsonOf(std::optional(clock->own));
  json["others_khz"] = clock->others_khz;
  json["more_ns"] = clock->more_ns;
  return json;
}

Json JsonOf(const std::optional<MoreStealTime>& steal) {
  if (!steal.has_value()) return nullptr;
  Json json = JsonOf(std::optional(steal->own));
  json["others_share"] = steal->others_share;
  json["more_ns"] = steal->more_ns;
  return json;
}

Json JsonOf(const std::optional<FullMemory>& memory) {
  if (!memory.has_value()) return nullptr;
  Json json = OrNull(std::optional(memory->group));
  json["per_step"] = memory->per_step;
  return json;
}

Json JsonOf(const std::optional<BlockedSleep>& sleep) {
  if (!sleep.has_value()) return nullptr;
  const bool sampled = !sleep->by_scheduler;
  return {{"by", sampled ? "samples" : "scheduler"},
          {"asleep_samples", IfKnown(sampled, sleep->asleep)},
          {"blocked_samples", IfKnown(sampled, sleep->blocked)},
          {"major_faults_per_step", OrNull(sleep->faults)},
          {"read_bytes_per_step", OrNull(sleep->read_bytes)}};
}

// All keys, always: what does not apply, or is not known, is null.
Json JsonOf(const Cause& cause) {
  const bool group = !cause.group.empty();
  return {{"cause", CauseName(cause)},
          {"amount_ns", JsonOf(cause.amount)},
          {"own_ns", cause.own_ns},
          {"cost_ns", JsonOf(cause.cost)},
          {"group", group ? Json(cause.group) : Json()},
          {"group_version", group ? Json(cause.group_version) : Json()},
          {"quota_ns", group && cause.quota_ns >= 0 ? Json(cause.quota_ns) : Json()},
          {"period_ns", group ? Json(cause.period_ns) : Json()},
          {"periods", group ? Json(cause.periods) : Json()},
          {"throttled_periods", group ? Json(cause.throttled_periods) : Json()},
          {"taker", cause.taker.has_value() ? JsonOf(*cause.taker) : Json()},
          {"threads", JsonOf(cause.threads)},
          {"blocked", JsonOf(cause.blocked)},
          {"loader_blocked", OrNull(cause.loader_blocked)},
          {"full_memory", JsonOf(cause.full_memory)},
          {"lower_sets", ArrayOf(cause.lower_sets, [](const LowerSet& set) {
             return Json{{"primitive", set.primitive},
                         {"own", set.own},
                         {"others", set.others},
                         {"all_others", set.all_others}};
           })}};
}

Json JsonOf(const std::optional<StoodIn>& stood) {
  if (!stood.has_value()) return nullptr;
  return {{"place", stood->place.empty() ? Json() : Json(stood->place)},
          {"within", stood->within.empty() ? Json() : Json(stood->within)},
          {"samples", stood->samples},
          {"host_samples", stood->host_samples},
          {"kept_samples", stood->kept_samples},
          {"kept_more", stood->kept_more},
          {"others_samples", stood->others},
          {"others_host_samples", stood->others_host}};
}

Json JsonOf(const std::optional<LongerWork>& longer) {
  if (!longer.has_value()) return nullptr;
  Json all;
  if (longer->all.has_value()) {
    all = {{"operators", longer->all->operators},
           {"certain", longer->all->certain},
           {"low", longer->all->low},
           {"middle", longer->all->middle},
           {"high", longer->all->high}};
  }
  return {{"longer_ns", longer->longer_ns},
          {"all", std::move(all)},
          {"operators", ArrayOf(longer->operators, [](const LongerOperator& one) {
             return Json{{"operator", one.name},
                         {"longer_ns", JsonOf(one.longer)},
                         {"own_ns", one.own_ns},
                         {"others_ns", one.others_ns},
                         {"per_step", one.calls}};
           })}};
}

Json JsonOf(const Answer& answer, const RankFinding& finding) {
  const RankSummary& rank = answer.ranks[finding.index];
  return {{"rank", rank.rank},
          {"node", rank.node},
          {"pid", rank.pid},
          {"command", rank.command},
          {"late", finding.late},
          {"lead_ns", JsonOf(finding.lead)},
          {"lead_without_stalls_ns",
           finding.quiet_lead.has_value() ? JsonOf(*finding.quiet_lead) : Json()},
          {"p", finding.p},
          {"causes", ArrayOf(finding.causes, [](const Cause& cause) { return JsonOf(cause); })},
          {"not_causes", ArrayOf(finding.not_causes,
                                 [](const NotACause& one) {
                                   return Json{
                                       {"cause", PartJsonName(one.part)},
                                       {"amount_ns", one.measured ? Json(one.amount_ns) : Json()},
                                       {"measured", one.measured},
                                       {"because", BecauseName(one.because)}};
                                 })},
          {"unexplained_ns", finding.unexplained_ns()},
          {"cost_ns", JsonOf(finding.cost_all)},
          {"order",
           {{"last", finding.order.last},
            {"proven", finding.order.proven},
            {"likely", finding.order.likely},
            {"steps", finding.order.steps}}},
          {"work", ArrayOf(finding.work,
                           [](const WorkDifference& one) {
                             return Json{{"operator", one.name},
                                         {"in_shapes", one.in_shapes},
                                         {"own_per_step", one.own},
                                         {"others_per_step", one.others}};
                           })},
          {"shapes_known", finding.shapes_known},
          {"reorders_longer_ns", finding.reorders.has_value() ? JsonOf(*finding.reorders) : Json()},
          {"longer_work", JsonOf(finding.longer)},
          {"page_faults", JsonOf(finding.page_faults)},
          {"steal", JsonOf(finding.steal)},
          {"clock", JsonOf(finding.clock)},
          {"python", JsonOf(finding.stood)},
          {"processor", JsonOf(finding.processor)}};
}

// `known`: steps of the rank were taken apart.
Json PartsJson(const analysis::why::PartTable& parts, bool known, const RankSummary& rank) {
  Json json;
  for (size_t i = 0; i < kParts; ++i) {
    const auto part = static_cast<Part>(i);
    const bool measured = PartKnown(part, rank.taken_away_known, rank.blocked_known);
    json[std::string(PartJsonName(part)) + "_ns"] = IfKnown(known && measured, parts[i]);
  }
  return json;
}

Json JsonOf(const RankSummary& rank) {
  const bool judged = rank.mean_step_ns > 0;  // else no steps were taken apart
  const bool measured = judged && rank.taken_away_known;
  const bool sampled = rank.sample_gaps.has_value();
  return {{"rank", rank.rank},
          {"node", rank.node},
          {"pid", rank.pid},
          {"command", rank.command},
          {"step_ns", IfKnown(judged, rank.mean_step_ns)},
          {"own_work_ns", IfKnown(judged, rank.mean_own_ns)},
          {"parts", PartsJson(rank.mean, judged, rank)},
          {"covered_ppm", static_cast<int64_t>(std::floor(rank.covered * 1e6))},
          {"taken_away_known", rank.taken_away_known},
          {"blocked_known", rank.blocked_known},
          {"allowed_cpus", IfKnown(rank.allowed_count > 0, rank.allowed_count)},
          {"unplaced_ns", IfKnown(measured, rank.unplaced_ns)},
          {"processor", JsonOf(rank.processor)},
          {"page_faults", JsonOf(rank.page_faults)},
          {"steal", JsonOf(rank.steal)},
          {"clock", JsonOf(rank.clock)},
          {"samples",
           {{"period_ns", IfKnown(rank.sample_period_ns > 0, rank.sample_period_ns)},
            {"gaps", sampled ? Json(*rank.sample_gaps) : Json()},
            {"group_version", IfKnown(rank.taken_away_known, rank.group_version)}}}};
}

const char* KindOf(StallGroup::Kind kind) {
  switch (kind) {
    case StallGroup::Kind::kRanks:
      return "ranks";
    case StallGroup::Kind::kEverybody:
      return "everybody";
    case StallGroup::Kind::kCollectives:
      return "collectives";
    case StallGroup::Kind::kUntold:
      break;
  }
  return "unknown";
}

Json StallJson(const Answer& answer, const StallGroup& group) {
  const bool made = !group.ranks.empty();
  Json parts = Json::object();
  for (size_t i = 0; made && i < kParts; ++i) {
    const auto part = static_cast<Part>(i);
    const bool known = PartKnown(part, group.taken_away, group.taken_away);
    parts[std::string(PartJsonName(part)) + "_ns"] = IfKnown(known, group.longer[i]);
  }
  return {{"made_by", KindOf(group.kind)},
          {"ranks", ArrayOf(group.ranks, [&](size_t rank) { return answer.ranks[rank].rank; })},
          {"stalls", group.stalls},
          {"shortest_ns", group.shortest_ns},
          {"longest_ns", group.longest_ns},
          {"total_longer_ns", group.total_longer_ns},
          {"every_steps", OrNull(group.every_steps)},
          {"in_rhythm", group.in_rhythm},
          {"longer_ns", IfKnown(made, group.longer_ns)},
          {"others_most_ns", IfKnown(made, group.others_most_ns)},
          {"longer_parts", made ? parts : Json()},
          {"on_cpu_ns", OrNull(group.on_cpu_ns)},
          {"run_queue_ns", OrNull(group.run_queue_ns)},
          {"python", JsonOf(group.stood)}};
}

Json StallsJson(const Answer& answer) {
  if (!answer.stalls.has_value()) return nullptr;
  const Stalls& stalls = *answer.stalls;
  return {{"stalls", stalls.stalls},
          {"steps", stalls.steps},
          {"judged_steps", stalls.judged.size()},
          {"usual_ns", stalls.usual_ns},
          {"longer_ns", stalls.longer_ns},
          {"total_ns", stalls.total_ns},
          {"groups", ArrayOf(stalls.groups,
                             [&](const StallGroup& group) { return StallJson(answer, group); })}};
}

Json SmallJson(const CriticalPath& path) {
  if (!path.small.has_value()) return nullptr;
  return {{"count", path.small->count},
          {"all", path.small->all},
          {"largest_bytes", path.small->largest_bytes},
          {"each_ns", path.small->each_ns},
          {"total_ns", JsonOf(path.small->total)},
          {"saved_ns", JsonOf(path.small->saved)}};
}

Json PathJson(const Answer& answer) {
  if (!answer.path.has_value()) return nullptr;
  const CriticalPath& path = *answer.path;
  Json ranks = Json::array();
  for (size_t i = 0; i < path.ranks.size(); ++i) {
    Json parts = PartsJson(path.parts[i], true, answer.ranks[i]);
    parts.erase("wait_and_transfer_ns");  // own work has none
    ranks.push_back({{"rank", answer.ranks[i].rank},
                     {"own_work_ns", JsonOf(path.ranks[i])},
                     {"parts", std::move(parts)}});
  }
  return {{"step_ns", JsonOf(path.step)},
          {"ranks", std::move(ranks)},
          {"collectives_ns", JsonOf(path.collectives)},
          {"collectives",
           ArrayOf(path.kinds,
                   [](const CriticalPath::Kind& one) {
                     return Json{{"name", one.name}, {"ns", one.ns}, {"followed", one.followed}};
                   })},
          {"not_followed_ns", path.not_followed_ns},
          {"least_wait_ns", path.least_wait_ns},
          {"unsure_ns", path.unsure_ns},
          {"uneven_ns", path.uneven.has_value() ? JsonOf(*path.uneven) : Json()},
          {"small_collectives", SmallJson(path)},
          {"crossings", path.crossings},
          {"proven", path.proven}};
}

const char* StatusOf(const Answer& answer) {
  if (answer.refusal != Refusal::kNone) return "refused";
  return answer.incomplete ? "incomplete" : "answered";
}

}  // namespace

std::string WhyJson(const Answer& answer, const std::string& recording,
                    const std::string& standstill) {
  const bool refused = answer.refusal != Refusal::kNone;
  Json json = {{"format_version", kWhyFormatVersion},
               {"status", StatusOf(answer)},
               {"reason", refused ? Json(RefusalJsonName(answer.refusal)) : Json()},
               {"message", answer.refusal_text},
               {"recording", recording},
               {"job", answer.job},
               {"sends_and_receives", answer.transfers},
               {"window_ns", IfKnown(answer.window_ns > 0, answer.window_ns)}};
  json["steps"] = {
      {"judged", answer.steps},
      {"unpaired", answer.unpaired_steps},
      {"unlike", answer.unlike_steps},
      {"class", answer.classes.empty() ? "" : answer.classes[0].name},
      {"mean_ns", IfKnown(answer.mean_step_ns > 0, answer.mean_step_ns)},
      {"median_ns", IfKnown(answer.median_step_ns > 0, answer.median_step_ns)},
      {"longest_ns", IfKnown(answer.longest_step_ns > 0, answer.longest_step_ns)},
      {"classes", ArrayOf(answer.classes, [](const StepClass& one) {
         return Json{{"name", one.name}, {"steps", one.steps}, {"total_ns", one.total_ns}};
       })}};
  Json findings =
      ArrayOf(answer.findings, [&](const RankFinding& one) { return JsonOf(answer, one); });
  Json everybody = ArrayOf(answer.everybody, [](Part part) { return Json(PartJsonName(part)); });
  json["verdict"] = {
      {"kind", refused ? "none" : VerdictJsonName(answer.verdict)},
      {"ranks", std::move(findings)},
      {"undecided", answer.undecided},
      {"closest", answer.closest.has_value() ? JsonOf(answer, *answer.closest) : Json()},
      {"everybody", std::move(everybody)},
      {"everybody_taker",
       answer.everybody_taker.has_value() ? JsonOf(*answer.everybody_taker) : Json()},
      {"everybody_python", JsonOf(answer.everybody_stood)}};
  json["stalls"] = StallsJson(answer);
  json["standstill"] = standstill.empty() ? Json() : Json::parse(standstill, nullptr, false);
  json["ranks"] = ArrayOf(answer.ranks, [](const RankSummary& rank) { return JsonOf(rank); });
  json["replay_error_ns"] = OrNull(answer.replay_error_ns);
  json["critical_path_unknown"] = answer.path_unknown.empty() ? Json() : Json(answer.path_unknown);
  json["critical_path"] = PathJson(answer);
  json["clock_bound_ns"] = OrNull(answer.clock_bound_ns);
  json["clock_bounds_hold"] = answer.clock_bounds_hold;
  json["lost_events"] = OrNull(answer.lost_events);
  json["network"] = FindingsJson(answer.network);
  json["notes"] = answer.notes;
  // Names come from the job and may hold any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncline::report
