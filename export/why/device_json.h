// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline why` of jobs that compute on devices, as JSON: docs/why-json.md.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_DEVICE_JSON_H_
#define SYNCLINE_EXPORT_WHY_DEVICE_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/why/device_model.h"

namespace syncline::report {

// `inputs`: as the caller named them.
std::string DeviceWhyJson(const analysis::why::DeviceAnswer& answer,
                          const std::vector<std::string>& inputs);

// {est, lo, hi}; lo and hi are null where it has no interval.
nlohmann::ordered_json MeanJson(const analysis::why::MeanEstimate& mean);
nlohmann::ordered_json HeldBackJson(const std::vector<analysis::why::DeviceHeldBack>& held_back);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_DEVICE_JSON_H_
