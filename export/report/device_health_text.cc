// SPDX-License-Identifier: Apache-2.0
#include "export/report/device_health_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
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

// The part of the window by the reason that did it most, whichever that is; nullopt: no reason that
// matters is known.
std::optional<WindowShare> LargestShare(const DeviceHealth& health) {
  std::optional<WindowShare> largest;
  for (const auto& [reason, share] : health.held_back) {
    if (!Matters(reason)) continue;
    if (!largest.has_value()) largest.emplace();
    largest->est = std::max(largest->est, share.est);
    largest->lo = std::max(largest->lo, share.lo);
    largest->hi = std::max(largest->hi, share.hi);
  }
  return largest;
}

// By what it was held back most; nullptr: by nothing, or it is not known.
const std::pair<const DeviceValue, WindowShare>* MostHeldBack(const DeviceHealth& health) {
  const std::pair<const DeviceValue, WindowShare>* most = nullptr;
  for (const auto& one : health.held_back) {
    if (!Matters(one.first) || one.second.est <= 0) continue;
    if (most == nullptr || one.second.est > most->second.est) most = &one;
  }
  return most;
}

// "7 memory errors"; where some may lie outside of the window, "up to 7 memory errors" or "2 to 7
// memory errors", and by how much outside. Empty: none.
std::string Grown(const DeviceHealth& health, DeviceValue value, const char* what,
                  const char* fate) {
  const auto found = health.grown.find(value);
  if (found == health.grown.end() || found->second.amount <= 0) return "";
  const analysis::CounterGrowth& grown = found->second;
  const std::string text =
      absl::StrCat(Plural(static_cast<uint64_t>(grown.amount), what), " ", fate);
  if (grown.inside == grown.amount || grown.beside_ns == 0) return text;
  return absl::StrCat(grown.inside > 0 ? absl::StrCat(grown.inside, " to ") : "up to ", text,
                      ", in the window or at most ", DurationText(grown.beside_ns), " beside it");
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

// "650 of 700", "350 of 300 to 700": what it drew in the mean, and its limit, which may change.
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
  if (health.values.contains(DeviceValue::kPowerLimitMw)) {
    absl::StrAppend(&text, " of ", Range(health, DeviceValue::kPowerLimitMw, kMwPerW));
  }
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

// "41.0 %"; where that is not known well, "0.0 % to 97.0 %"; "-": it is not known at all.
std::string HeldBackCell(const DeviceHealth& health) {
  const std::optional<WindowShare> share = LargestShare(health);
  if (!share.has_value()) return "-";
  if (share->hi - share->est > kMuchHeldBack) {
    return absl::StrCat(PercentOfPpm(PpmOf(share->lo)), " to ", PercentOfPpm(PpmOf(share->hi)));
  }
  return share->est <= 0 ? "0 %" : PercentOfPpm(PpmOf(share->est));
}

double HeldBack(const DeviceHealth& health) {
  const auto* const most = MostHeldBack(health);
  return most == nullptr ? 0 : most->second.est;
}

// "XID 79 between 3.000 s and 3.200 s of the window", "XID 79 between 200 ms before the window and
// 1.00 ms of it", "... 59.9 s of the window and 100 ms after its end".
std::string ErrorText(const DeviceHealth& health, const analysis::DeviceErrorReport& error) {
  const bool before = error.from_ns < 0;
  const bool after = error.until_ns > health.window_ns;
  std::string text = absl::StrCat("XID ", error.number, " between ",
                                  DurationText(before ? -error.from_ns : error.from_ns));
  if (before) {
    absl::StrAppend(&text, " before the window");
  } else if (after) {
    absl::StrAppend(&text, " of the window");
  }
  absl::StrAppend(&text, " and ",
                  DurationText(after ? error.until_ns - health.window_ns : error.until_ns),
                  after    ? " after its end"
                  : before ? " of it"
                           : " of the window");
  return text;
}

std::vector<std::string> ErrorTexts(const DeviceHealth& health) {
  std::vector<std::string> texts;
  for (const auto& error : health.errors) texts.push_back(ErrorText(health, error));
  for (const std::string& text :
       {Grown(health, DeviceValue::kUncorrectedErrors, "memory error", "not corrected"),
        Grown(health, DeviceValue::kCorrectedErrors, "memory error", "corrected"),
        Grown(health, DeviceValue::kPcieReplays, "packet", "sent again over PCIe")}) {
    if (!text.empty()) texts.push_back(text);
  }
  return texts;
}

// "was held back by its temperature 41.0 % (40.1 % to 42.0 %)", "may have been held back by its
// power limit, up to 97.0 %", "its readings end ...": what the table does not say.
std::vector<std::string> HeldBackTexts(const DeviceHealth& health) {
  std::vector<std::string> was;
  std::vector<std::string> may;
  for (const auto& [reason, share] : health.held_back) {
    const char* const by = analysis::HeldBackBy(reason);
    if (share.est > 0) {
      was.push_back(absl::StrCat(by, " ", ShareText(share)));
    } else if (share.hi > kMuchHeldBack && Matters(reason)) {
      may.push_back(absl::StrCat(by, " up to ", PercentOfPpm(PpmOf(share.hi))));
    }
  }
  std::vector<std::string> texts;
  if (!was.empty()) texts.push_back(absl::StrCat(" was held back ", absl::StrJoin(was, ", ")));
  if (!may.empty()) {
    texts.push_back(absl::StrCat(" may have been held back ", absl::StrJoin(may, ", ")));
  }
  if (health.samples == 0) {
    texts.emplace_back(": it has no readings in the window");
  } else if (health.readings_end_ns.has_value()) {
    texts.push_back(absl::StrCat(": its readings end at ", DurationText(*health.readings_end_ns),
                                 " of the window"));
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
               {"readings_end_ns", OrNull(health.readings_end_ns)},
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
    json["grown"][evidence::DeviceValueName(value)] = grown.amount;
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
      "have the numbers of NVIDIA's driver, AMD's those of their PCI addresses in order; a program "
      "may number them otherwise. busy: a kernel ran, mean. "
      "power: mean, and the limit. held back: part of the window in which the clocks were kept "
      "lower than they were to be, by the reason that did it most; from the least to the most that "
      "it can be where readings are missing.");
  for (const DeviceHealth* one : ranked) {
    for (const std::string& text : HeldBackTexts(*one)) {
      page->Line(absl::StrCat(NameOf(report, *one), text));
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
    if (!LargestShare(one).has_value()) continue;
    held.push_back({NameOf(report, one), PpmOf(HeldBack(one)), HeldBackCell(one)});
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
