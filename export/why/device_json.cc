// SPDX-License-Identifier: Apache-2.0
#include "export/why/device_json.h"

#include <nlohmann/json.hpp>

#include "export/why/why_json.h"

namespace syncline::report {
namespace {

using analysis::why::DeviceAnswer;
using analysis::why::DeviceCause;
using analysis::why::DeviceFinding;
using analysis::why::DeviceHeldBack;
using analysis::why::DevicePart;
using analysis::why::DevicePartJsonName;
using analysis::why::DevicePartTable;
using analysis::why::DeviceRankSummary;
using analysis::why::DeviceRefusal;
using analysis::why::DeviceRefusalJsonName;
using analysis::why::DeviceVerdictJsonName;
using analysis::why::KernelDifference;
using analysis::why::KernelWork;
using analysis::why::MeanEstimate;
using Json = nlohmann::ordered_json;

template <class T, class Make>
Json ArrayOf(const std::vector<T>& values, Make make) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(make(value));
  return array;
}

Json JsonOf(const DevicePartTable& table) {
  Json parts = Json::object();
  for (size_t part = 0; part < table.size(); ++part) {
    parts[DevicePartJsonName(static_cast<DevicePart>(part))] = table[part];
  }
  return parts;
}

Json JsonOf(const KernelWork& work) {
  return {{"kind", !work.is_comparable   ? "unknown"
                   : work.is_more_work() ? "other_work"
                                         : "slower"},
          {"longer_ns", work.longer_ns},
          {"more_ns", work.more_ns},
          {"longer_part", work.longer_part},
          {"sizes_known", work.sizes_known},
          {"kernels", ArrayOf(work.kernels, [](const KernelDifference& kernel) {
             return Json{{"name", kernel.name},
                         {"own_count", kernel.own_count},
                         {"others_count", kernel.others_count},
                         {"own_ns", kernel.own_ns},
                         {"others_ns", kernel.others_ns},
                         {"excess_ns", kernel.excess_ns}};
           })}};
}

Json JsonOf(const analysis::WindowShare& share) {
  return {{"est", share.est}, {"lo", share.lo}, {"hi", share.hi}};
}

Json JsonOf(const DeviceAnswer& answer, const DeviceFinding& finding) {
  const DeviceRankSummary& rank = answer.ranks[finding.index];
  return {{"rank", rank.rank < 0 ? Json() : Json(rank.rank)},
          {"source", rank.source},
          {"lead_ns", MeanJson(finding.lead)},
          {"most_in", finding.most_in},
          {"causes", ArrayOf(finding.causes,
                             [](const DeviceCause& cause) {
                               return Json{
                                   {"cause", DevicePartJsonName(cause.part)},
                                   {"amount_ns", MeanJson(cause.amount)},
                                   {"own_ns", cause.own_ns},
                                   {"work", cause.work.has_value() ? JsonOf(*cause.work) : Json()}};
                             })},
          {"held_back", HeldBackJson(finding.held_back)},
          {"unexplained_ns", finding.unexplained_ns},
          {"unseen_launch_ns", finding.unseen_launch_ns},
          {"cost_ns", finding.cost_ns}};
}

}  // namespace

Json MeanJson(const MeanEstimate& mean) {
  const bool known = mean.lo_ns != INT64_MIN;
  return {{"est", mean.est_ns},
          {"lo", known ? Json(mean.lo_ns) : Json()},
          {"hi", known ? Json(mean.hi_ns) : Json()}};
}

Json HeldBackJson(const std::vector<DeviceHeldBack>& held_back) {
  return ArrayOf(held_back, [](const DeviceHeldBack& held) {
    return Json{{"reason", evidence::DeviceValueName(held.reason)},
                {"own", JsonOf(held.own)},
                {"others", JsonOf(held.others)},
                {"known", held.known},
                {"unknown", held.unknown},
                {"own_sm_mhz", held.own_mhz > 0 ? Json(held.own_mhz) : Json()},
                {"others_sm_mhz", held.others_mhz > 0 ? Json(held.others_mhz) : Json()}};
  });
}

std::string DeviceWhyJson(const DeviceAnswer& answer, const std::vector<std::string>& inputs) {
  const bool refused = answer.refusal != DeviceRefusal::kNone;
  Json json = {
      {"format_version", kWhyFormatVersion},
      {"kind", "devices"},
      {"status", refused             ? "refused"
                 : answer.incomplete ? "incomplete"
                                     : "answered"},
      {"reason", refused ? Json(DeviceRefusalJsonName(answer.refusal)) : Json()},
      {"message", answer.refusal_text},
      {"inputs", inputs},
      {"steps",
       {{"judged", answer.steps},
        {"unpaired", answer.unpaired_steps},
        {"mean_ns", answer.steps > 0 ? Json(answer.mean_step_ns) : Json()}}},
      {"verdict",
       {{"kind", DeviceVerdictJsonName(answer.verdict)},
        {"ranks", ArrayOf(answer.findings,
                          [&](const DeviceFinding& finding) { return JsonOf(answer, finding); })},
        {"closest", answer.closest.has_value() ? JsonOf(answer, *answer.closest) : Json()},
        {"everybody",
         ArrayOf(answer.everybody, [](DevicePart part) { return Json(DevicePartJsonName(part)); })},
        {"joint_cost_ns", answer.joint_cost_ns},
        {"rotating_ns", answer.rotating_ns}}},
      {"ranks", ArrayOf(answer.ranks,
                        [](const DeviceRankSummary& rank) {
                          return Json{{"rank", rank.rank < 0 ? Json() : Json(rank.rank)},
                                      {"source", rank.source},
                                      {"device", rank.device},
                                      {"mean_step_ns", rank.mean_step_ns},
                                      {"mean_own_ns", rank.mean_own_ns},
                                      {"mean_program_ns", rank.mean_program_ns},
                                      {"parts_ns", JsonOf(rank.mean)}};
                        })},
      {"notes", answer.notes}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncline::report
