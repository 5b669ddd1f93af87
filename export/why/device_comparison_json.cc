// SPDX-License-Identifier: Apache-2.0
#include "export/why/device_comparison_json.h"

#include <array>
#include <nlohmann/json.hpp>

#include "export/why/change_json.h"

namespace syncline::report {
namespace {

using analysis::why::Change;
using analysis::why::ComparedSide;
using analysis::why::DeviceComparison;
using analysis::why::DevicePart;
using analysis::why::DevicePartJsonName;
using analysis::why::DeviceRankChange;
using analysis::why::DeviceRefusal;
using analysis::why::DeviceRefusalJsonName;
using analysis::why::kDeviceParts;
using analysis::why::KernelChange;
using analysis::why::Mismatch;
using Json = nlohmann::ordered_json;

Json PartsJson(const std::array<Change, kDeviceParts>& parts) {
  Json json = Json::object();
  for (size_t part = 0; part < kDeviceParts; ++part) {
    json[DevicePartJsonName(static_cast<DevicePart>(part))] = ChangeJson(parts[part]);
  }
  return json;
}

}  // namespace

std::string ComparisonJson(const ComparedDevices& compared) {
  const DeviceComparison& comparison = compared.comparison;
  const bool refused = comparison.mismatch != Mismatch::kNone;
  const bool by_why = comparison.refusal != DeviceRefusal::kNone;
  const auto side_json = [](const ComparedSide& side, const std::string& recording) {
    Json json = RanksSideJson(side, recording);
    json["left_out"] = side.left_out;
    return json;
  };
  Json json = ComparedJson(comparison, compared,
                           by_why ? DeviceRefusalJsonName(comparison.refusal) : "", side_json);
  json["kind"] = "devices";
  json["step"] = refused ? Json() : ChangeJson(comparison.step);
  json["parts"] = refused ? Json() : PartsJson(comparison.parts);
  json["ranks"] = Json::array();
  for (const DeviceRankChange& rank : comparison.ranks) {
    json["ranks"].push_back(
        {{"rank", rank.rank},
         {"own_work", comparison.own_work_known ? ChangeJson(rank.own) : Json()},
         {"parts", PartsJson(rank.parts)}});
  }
  json["kernels"] = Json::array();
  for (const KernelChange& kernel : comparison.kernels) {
    json["kernels"].push_back({{"kernel", kernel.name.name},
                               {"size", kernel.name.size},
                               {"time", ChangeJson(kernel.time)},
                               {"calls_before_per_step", kernel.calls_before},
                               {"calls_now_per_step", kernel.calls_now}});
  }
  // Names come from the job and may hold any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncline::report
