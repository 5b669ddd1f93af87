// SPDX-License-Identifier: Apache-2.0
// Paragraphs behind labels ("LATE    rank 1 ..."), wrapped at the terminal's width: how the answers
// of `syncline why` are written.
//
// Thread-compatible.
#ifndef SYNCLINE_EXPORT_WHY_LABELLED_TEXT_H_
#define SYNCLINE_EXPORT_WHY_LABELLED_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace syncline::report {

class LabelledText {
 public:
  // `width`: columns of the terminal; at least 40 are used. `color`: labels are bold.
  LabelledText(size_t width, bool color);

  // Paragraphs, the first behind the label.
  void Say(std::string_view label, const std::vector<std::string>& paragraphs);
  void Say(std::string_view label, const std::string& paragraph) {
    Say(label, std::vector<std::string>{paragraph});
  }
  // Without a label; what is wrapped is indented.
  void Line(const std::string& text);
  void Indented(const std::string& text);
  void Blank() { out_ += "\n"; }
  // Lines that are ready, each with its end.
  void Raw(const std::string& text) { out_ += text; }
  size_t width() const { return width_; }
  std::string Take() { return std::move(out_); }

 private:
  void Wrap(const std::string& begin, size_t hanging, const std::string& text);

  const size_t width_;
  const bool color_;
  std::string out_;
};

// "31.3", of tenths of a ms.
std::string Tenths(int64_t tenths);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_LABELLED_TEXT_H_
