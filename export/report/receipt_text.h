// SPDX-License-Identifier: Apache-2.0
// The receipt as people read it: at the end of `record`, and in the report.
#ifndef SYNCLINE_EXPORT_REPORT_RECEIPT_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_RECEIPT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "analysis/receipt.h"

namespace syncline::report {

// "0.42 % [0.35, 0.51]"; "-" when nothing was measured.
std::string ShareText(const std::optional<analysis::ShareEstimate>& share);

// Lines with `indent` blanks before them; empty when no process handed over an event. The nodes'
// traces were written in `window_ns`; 0: not known.
std::string ReceiptText(std::span<const analysis::NodeReceipt> nodes, int64_t window_ns,
                        size_t width, size_t indent);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_RECEIPT_TEXT_H_
