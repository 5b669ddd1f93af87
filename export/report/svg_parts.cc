// SPDX-License-Identifier: Apache-2.0
#include "export/report/svg_parts.h"

#include "absl/strings/str_replace.h"
#include "common/utf8.h"

namespace syncline::report {

const char kSvgStyle[] = R"(<style>
text { font-family: 'Inter', 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif;
  fill: #1d2733; }
.title { font-size: 18px; font-weight: 600; }
.subtitle { font-size: 12px; fill: #5b6776; }
.node { font-size: 13px; font-weight: 600; }
.lane { font-size: 11px; fill: #3c4856; }
.axis { font-size: 11px; fill: #5b6776; }
.box { font-size: 11px; }
.light { fill: #ffffff; }
.legend { font-size: 11px; fill: #3c4856; }
</style>
)";

std::string EscapeXml(std::string_view text) {
  return absl::StrReplaceAll(OnlyPrintable(text, ' '),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

}  // namespace syncline::report
