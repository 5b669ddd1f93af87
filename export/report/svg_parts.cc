#include "export/report/svg_parts.h"

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
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
        break;
    }
  }
  return out;
}

}  // namespace syncline::report
