// SPDX-License-Identifier: Apache-2.0
#include "export/report/device_health_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"
#include "export/report/json_values.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::DeviceHealth;
using analysis::Report;
using analysis::WindowShare;
using evidence::DeviceValue;

constexpr int64_t kPpm = 1'000'000;
// Said in one line from that part of the window on.
constexpr double kMuchHeldBack = 0.02;
constexpr double kMwPerW = 1000;

std::string NameOf(const Report& report, const DeviceHealth& health) {
  return absl::StrCat(report.nodes[health.node].name, " GPU ", health.number);
}

int64_t PpmOf(double part) { return std::llround(part * kPpm); }

// "41.0 % (40.1 % to 42.0 %)".
std::string ShareText(const WindowShare& share) {
  return absl::StrCat(PercentOfPpm(PpmOf(share.est)), " (", PercentOfPpm(PpmOf(share.lo)), " to ",
                      PercentOfPpm(PpmOf(share.hi)), ")");
}

// A device that has little to do is held back by nothing that anybody minds.
bool Matters(DeviceValue reason) { return reason != DeviceValue::kLowUseNs; }

// By what it was held back most; nullptr: by nothing, or it is not known.
const std::pair<const DeviceValue, WindowShare>* MostHeldBack(const DeviceHealth& health) {
  const std::pair<const DeviceValue, WindowShare>* most = nullptr;
  for (const auto& one : health.held_back) {
    if (!Matters(one.first) || one.second.est <= 0) continue;
    if (most == nullptr || one.second.est > most->second.est) most = &one;
  }
  return most;
}

int64_t GrownOf(const DeviceHealth& health, DeviceValue value) {
  const auto found = health.grown.find(value);
  return found == health.grown.end() ? 0 : found->second;
}

// "1980", "1755 to 1980"; "-": it is not known.
std::string Range(const DeviceHealth& health, DeviceValue value, double divisor = 1) {
  const auto found = health.values.find(value);
  if (found == health.values.end()) return "-";
  const auto text = [&](int64_t amount) {
    return absl::StrFormat("%.0f", static_cast<double>(amount) / divisor);
  };
  const std::string min = text(found->second.min);
  const std::string max = text(found->second.max);
  return min == max ? min : absl::StrCat(min, " to ", max);
}

std::string Busy(const DeviceHealth& health) {
  const auto found = health.values.find(DeviceValue::kBusyPercent);
  return found == health.values.end() ? "-" : absl::StrCat(found->second.mean, " %");
}

// "650 of 700": what it drew in the mean, and its limit.
std::string Power(const DeviceHealth& health) {
  const auto watts = [](int64_t mw) {
    return absl::StrFormat("%.0f", static_cast<double>(mw) / kMwPerW);
  };
  std::string text = "-";
  if (health.mean_power_mw.has_value()) {
    text = watts(*health.mean_power_mw);
  } else if (health.values.contains(DeviceValue::kPowerMw)) {
    text = watts(health.values.at(DeviceValue::kPowerMw).mean);
  }
  const auto limit = health.values.find(DeviceValue::kPowerLimitMw);
  if (limit != health.values.end()) absl::StrAppend(&text, " of ", watts(limit->second.max));
  return text;
}

// The recorded ones; "-": nobody of these is known to.
std::string UsersOf(const DeviceHealth& health) {
  std::vector<std::string> names;
  for (const auto& user : health.users) {
    if (user.rank >= 0) names.push_back(absl::StrCat("rank ", user.rank));
  }
  for (const auto& user : health.users) {
    if (user.rank < 0) names.push_back(absl::StrCat(user.name, " (pid ", user.pid, ")"));
  }
  return names.empty() ? "-" : ListText(names);
}

std::string HeldBackCell(const DeviceHealth& health) {
  if (health.held_back.empty()) return "-";
  const auto* const most = MostHeldBack(health);
  return most == nullptr ? "0 %" : PercentOfPpm(PpmOf(most->second.est));
}

double HeldBack(const DeviceHealth& health) {
  const auto* const most = MostHeldBack(health);
  return most == nullptr ? 0 : most->second.est;
}

std::vector<std::string> ErrorTexts(const DeviceHealth& health) {
  std::vector<std::string> texts;
  for (const auto& error : health.errors) {
    texts.push_back(absl::StrCat(
        "XID ", error.number, " between ", DurationText(std::max<int64_t>(0, error.from_ns)),
        " and ", DurationText(std::max<int64_t>(0, error.until_ns)), " of the window"));
  }
  const int64_t uncorrected = GrownOf(health, DeviceValue::kUncorrectedErrors);
  if (uncorrected > 0) {
    texts.push_back(absl::StrCat(Plural(static_cast<uint64_t>(uncorrected), "memory error"),
                                 ", not corrected"));
  }
  const int64_t corrected = GrownOf(health, DeviceValue::kCorrectedErrors);
  if (corrected > 0) {
    texts.push_back(
        absl::StrCat(Plural(static_cast<uint64_t>(corrected), "memory error"), ", corrected"));
  }
  const int64_t replays = GrownOf(health, DeviceValue::kPcieReplays);
  if (replays > 0) {
    texts.push_back(
        absl::StrCat(Plural(static_cast<uint64_t>(replays), "packet"), " sent again over PCIe"));
  }
  return texts;
}

Json OfShare(const WindowShare& share) {
  return {{"est", share.est}, {"lo", share.lo}, {"hi", share.hi}};
}

Json OfHealth(const Report& report, const DeviceHealth& health) {
  Json json = {{"node", report.nodes[health.node].name},
               {"device", health.number},
               {"id", health.device.id},
               {"name", health.device.name},
               {"bus", health.device.bus},
               {"memory_bytes", health.device.memory_bytes},
               {"sm_mhz_max", health.device.sm_mhz_max},
               {"samples", health.samples},
               {"mean_power_mw", OrNull(health.mean_power_mw)}};
  json["users"] = Json::array();
  for (const auto& user : health.users) {
    json["users"].push_back({{"process", user.name}, {"pid", user.pid}, {"rank", user.rank}});
  }
  json["values"] = Json::object();
  for (const auto& [value, spread] : health.values) {
    json["values"][evidence::DeviceValueName(value)] = {
        {"min", spread.min}, {"median", spread.median}, {"mean", spread.mean}, {"max", spread.max}};
  }
  json["held_back"] = Json::object();
  for (const auto& [reason, share] : health.held_back) {
    json["held_back"][evidence::DeviceValueName(reason)] = OfShare(share);
  }
  json["grown"] = Json::object();
  for (const auto& [value, grown] : health.grown) {
    json["grown"][evidence::DeviceValueName(value)] = grown;
  }
  json["errors_watched"] = health.device.errors_watched;
  json["errors"] = Json::array();
  for (const auto& error : health.errors) {
    json["errors"].push_back(
        {{"number", error.number}, {"from_ns", error.from_ns}, {"until_ns", error.until_ns}});
  }
  return json;
}

}  // namespace

bool HasDeviceHealth(const Report& report) { return !report.health.empty(); }

void DeviceHealthInFull(Page* page) {
  const Report& report = page->report();
  Table table({{"device", Table::Align::kLeft, true},
               {"used by", Table::Align::kLeft, true},
               {"busy", Table::Align::kRight},
               {"SM MHz", Table::Align::kRight},
               {"power W", Table::Align::kRight},
               {"°C", Table::Align::kRight},
               {"held back", Table::Align::kRight}});
  const auto ranked = Ranked(report.health, HeldBack);
  for (const DeviceHealth* one : ranked) {
    table.Add({NameOf(report, *one), UsersOf(*one), Busy(*one), Range(*one, DeviceValue::kSmMhz),
               Power(*one), Range(*one, DeviceValue::kDeviceCelsius), HeldBackCell(*one)});
  }
  page->Print(table);
  page->Line(
      "By the driver's own counters and sensors, in the window; \"-\": it does not say. Devices "
      "have the driver's numbers; a program may number them otherwise. busy: a kernel ran, mean. "
      "power: mean, and the limit. held back: part of the window in which the clocks were kept "
      "lower than they were to be, by the reason that did it most.");
  for (const DeviceHealth* one : ranked) {
    std::vector<std::string> reasons;
    for (const auto& [reason, share] : one->held_back) {
      if (share.est <= 0) continue;
      reasons.push_back(absl::StrCat(analysis::HeldBackBy(reason), " ", ShareText(share)));
    }
    if (!reasons.empty()) {
      page->Line(
          absl::StrCat(NameOf(report, *one), " was held back ", absl::StrJoin(reasons, ", ")));
    }
    for (const std::string& error : ErrorTexts(*one)) {
      page->Line(absl::StrCat(NameOf(report, *one), ": ", error));
    }
  }
}

void DeviceHealthInShort(Page* page) {
  const Report& report = page->report();
  std::vector<SpreadValue> held;
  const DeviceHealth* worst = nullptr;
  for (const DeviceHealth& one : report.health) {
    if (one.held_back.empty()) continue;
    const int64_t ppm = PpmOf(HeldBack(one));
    held.push_back({NameOf(report, one), ppm, PercentOfPpm(ppm)});
    if (worst == nullptr || HeldBack(one) > HeldBack(*worst)) worst = &one;
  }
  if (worst != nullptr && HeldBack(*worst) >= kMuchHeldBack) {
    page->Item("Held back",
               absl::StrCat("devices, of the window: ",
                            SpreadText(std::move(held), {.text = PercentOfPpm, .named = 1}), "; ",
                            NameOf(report, *worst), " ",
                            analysis::HeldBackBy(MostHeldBack(*worst)->first)));
  }
  std::vector<std::string> errors;
  for (const DeviceHealth& one : report.health) {
    for (const std::string& error : ErrorTexts(one)) {
      errors.push_back(absl::StrCat(NameOf(report, one), ": ", error));
    }
  }
  if (errors.empty()) return;
  const size_t more = errors.size() - std::min(errors.size(), kNamed);
  errors.resize(errors.size() - more);
  page->Item("GPU errors", absl::StrCat(absl::StrJoin(errors, "; "),
                                        more > 0 ? absl::StrCat("; ", more, " more") : ""));
}

void DeviceHealthInJson(const Report& report, Json* json) {
  Json all = Json::array();
  for (const DeviceHealth& health : report.health) all.push_back(OfHealth(report, health));
  (*json)["device_health"] = std::move(all);
}

}  // namespace syncline::report
