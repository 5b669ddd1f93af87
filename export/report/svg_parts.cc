#include "export/report/svg_parts.h"

#include "export/text/json_text.h"

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
  while (!text.empty()) {
    const size_t length = text::Utf8Length(text);
    switch (const char c = text.front(); c) {
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
        if (length == 0) {
          out += text::kReplacement;
        } else {
          out += static_cast<unsigned char>(c) < 0x20 ? " " : text.substr(0, length);
        }
        break;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace syncline::report
