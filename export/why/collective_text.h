// SPDX-License-Identifier: Apache-2.0
// What `syncline why` says of jobs of which only the kernels of NCCL's collectives were recorded,
// for people. Every sentence is a claim: true for every job. Pure.
#ifndef SYNCLINE_EXPORT_WHY_COLLECTIVE_TEXT_H_
#define SYNCLINE_EXPORT_WHY_COLLECTIVE_TEXT_H_

#include <string>

#include "analysis/why/collective_model.h"
#include "export/why/why_text.h"

namespace syncline::report {

std::string CollectiveWhyText(const analysis::why::CollectiveAnswer& answer,
                              const WhyTextOptions& options);
// One JSON object (docs/why-json.md). `run`: the recording.
std::string CollectiveWhyJson(const analysis::why::CollectiveAnswer& answer,
                              const std::string& run);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_COLLECTIVE_TEXT_H_
