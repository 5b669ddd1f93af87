// SPDX-License-Identifier: Apache-2.0
// What all our SVG pictures have in common: one style sheet, text that cannot break the markup.
#ifndef SYNCLINE_EXPORT_REPORT_SVG_PARTS_H_
#define SYNCLINE_EXPORT_REPORT_SVG_PARTS_H_

#include <string>
#include <string_view>

namespace syncline::report {

// A <style> element with the classes title, subtitle, node, lane, axis, box, light and legend.
extern const char kSvgStyle[];

// For text and attributes. Control characters become blanks, bytes that are not UTF-8 U+FFFD.
std::string EscapeXml(std::string_view text);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_SVG_PARTS_H_
