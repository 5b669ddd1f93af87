// The receipt as people read it: at the end of `record`, and in the report.
#ifndef SYNCLINE_EXPORT_REPORT_RECEIPT_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_RECEIPT_TEXT_H_

#include <cstddef>
#include <span>
#include <string>

#include "analysis/receipt.h"

namespace syncline::report {

// "0.42 % [0.35, 0.51]"; "-" when nothing was measured.
std::string ShareText(const std::optional<analysis::ShareEstimate>& share);

// Lines with `indent` blanks before them; empty when no process handed over an event.
std::string ReceiptText(std::span<const analysis::NodeReceipt> nodes, size_t width, size_t indent);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_RECEIPT_TEXT_H_
