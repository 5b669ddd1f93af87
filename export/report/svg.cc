// SPDX-License-Identifier: Apache-2.0
#include "export/report/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analysis/names.h"
#include "common/duration_text.h"
#include "common/text.h"
#include "common/text_width.h"
#include "export/report/svg_parts.h"
#include "export/report/table.h"
#include "export/report/units.h"
#include "timeline/profile_lanes.h"

namespace syncline::report {
namespace {

// All in pixels.
constexpr double kWidth = 1200;
constexpr double kLeft = 232;  // where time begins; labels lie left of it
constexpr double kRight = 24;
constexpr double kTop = 100;
constexpr double kRow = 20;  // one level of nesting
constexpr double kLaneGap = 10;
constexpr double kNodeHead = 30;
constexpr double kGlyph = 6.3;  // mean width of a character at 11 px: a guess, on the wide side
constexpr double kMergeBelow = 0.6;  // boxes narrower than this join with their neighbour
constexpr size_t kBoxesMax = 200'000;
constexpr size_t kArrowsMax = 400;  // more of them hide what they connect
constexpr size_t kLanesPerNode = 6;
constexpr uint16_t kDepthsMax = 5;

// Distinct in colour and in lightness; the first goes to what takes most time.
constexpr std::array<const char*, 8> kColors = {"#4c78a8", "#f2a13c", "#59a14f", "#b279a2",
                                                "#e45756", "#76b7b2", "#9d7660", "#d4b83a"};
constexpr char kOtherColor[] = "#b8bec6";
constexpr char kStepColor[] = "#dfe5ec";
constexpr char kTensorColor[] = "#475569";
constexpr char kMessageColor[] = "#b4bdca";

std::string ArrowLine(bool tensor, double x0, double y0, double x1, double y1) {
  return absl::StrFormat(
      "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"%s\" "
      "marker-end=\"url(#%s)\"/>\n",
      x0, x1, y0, y1, tensor ? kTensorColor : kMessageColor, tensor ? "1.3" : "0.8",
      tensor ? "tensor" : "message");
}

std::string ArrowHead(const char* name, const char* color) {
  return absl::StrCat("<marker id=\"", name,
                      "\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"6\" "
                      "markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L6 3L0 6z\" fill=\"",
                      color, "\"/></marker>");
}

// Of an operator's path the end tells most: "gradients/conv_grad/Conv2DBackpropFilter".
std::string FitName(const std::string& name, size_t room) {
  const size_t slash = DisplayWidth(name) > room ? name.rfind('/') : std::string::npos;
  return Fit(slash == std::string::npos ? name : absl::StrCat("…", name.substr(slash)), room);
}

}  // namespace

// One rendering.
class Painter {
 public:
  explicit Painter(const PictureSink& sink) : sink_(sink), options_(sink.options_) {}
  std::string Paint();

 private:
  using Box = PictureSink::Box;
  using Lane = PictureSink::Lane;

  double X(TimelineTime time) const;
  void ChooseLanes();
  void ChooseColors();
  const char* ColorOf(const Box& box) const;
  static uint16_t DepthsOf(const Lane& lane);
  void PaintNodes();
  void PaintLane(const Lane& lane);
  void PaintBoxes(const Lane& lane, double top);
  void PaintBox(const Box& box, double x0, double x1, double y, bool joined);
  void PaintAxis(double bottom);
  void PaintBoundaries(uint32_t node, double top, double bottom);
  void PaintArrows();
  void PaintLegend(double top);
  void Text(double x, double y, const char* style, std::string_view text, const char* more = "");
  void Rect(double x, double y, double width, double height, std::string_view attributes);

  const PictureSink& sink_;
  const PictureOptions& options_;
  std::map<uint32_t, std::vector<const Lane*>> lanes_;
  std::map<uint32_t, size_t> lanes_left_out_;
  std::map<std::string, const char*> colors_;
  std::vector<std::string> legend_;
  bool others_ = false;   // names without a colour of their own
  bool tensors_ = false;  // there are such arrows
  bool messages_ = false;
  std::string body_;
  std::string overlay_;                                    // boundaries and arrows: above the boxes
  std::map<uint32_t, std::pair<double, double>> extents_;  // of a node's lanes: top, bottom
  double y_ = kTop;
};

double Painter::X(TimelineTime time) const {
  const auto length = static_cast<double>(options_.range.end.ns - options_.range.begin.ns);
  const auto at = static_cast<double>(time.ns - options_.range.begin.ns);
  return kLeft + std::clamp(at / length, 0.0, 1.0) * (kWidth - kLeft - kRight);
}

void Painter::Text(double x, double y, const char* style, std::string_view text, const char* more) {
  absl::StrAppendFormat(&body_, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\"%s>%s</text>\n", x, y,
                        style, more, EscapeXml(text));
}

void Painter::Rect(double x, double y, double width, double height, std::string_view attributes) {
  absl::StrAppendFormat(&body_, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" %s/>\n",
                        x, y, width, height, AbslView(attributes));
}

void Painter::ChooseLanes() {
  for (const auto& [track, lane] : sink_.lanes_) {
    if (!lane.boxes.empty()) lanes_[lane.node].push_back(&lane);
  }
  for (auto& [node, lanes] : lanes_) {
    std::stable_sort(lanes.begin(), lanes.end(),
                     [](const Lane* a, const Lane* b) { return a->busy_ns > b->busy_ns; });
    if (lanes.size() > kLanesPerNode) {
      lanes_left_out_[node] = lanes.size() - kLanesPerNode;
      lanes.resize(kLanesPerNode);
    }
    std::stable_sort(lanes.begin(), lanes.end(),
                     [](const Lane* a, const Lane* b) { return a->order < b->order; });
  }
}

void Painter::ChooseColors() {
  std::map<std::string, int64_t> total_ns;
  for (const auto& [node, lanes] : lanes_) {
    for (const Lane* lane : lanes) {
      for (const Box& box : lane->boxes) {
        if (!analysis::LooksLikeStep(box.name)) total_ns[box.name] += box.end.ns - box.begin.ns;
      }
    }
  }
  std::vector<std::pair<int64_t, std::string>> by_time;
  for (const auto& [name, ns] : total_ns) by_time.emplace_back(-ns, name);
  std::sort(by_time.begin(), by_time.end());
  for (size_t i = 0; i < by_time.size() && i < kColors.size(); ++i) {
    colors_[by_time[i].second] = kColors[i];
    legend_.push_back(by_time[i].second);
  }
  others_ = by_time.size() > kColors.size();
}

const char* Painter::ColorOf(const Box& box) const {
  const auto found = colors_.find(box.name);
  if (found != colors_.end()) return found->second;
  return analysis::LooksLikeStep(box.name) ? kStepColor : kOtherColor;
}

uint16_t Painter::DepthsOf(const Lane& lane) {
  uint16_t depths = 1;
  for (const Box& box : lane.boxes) {
    depths = std::max<uint16_t>(depths, std::min<uint16_t>(box.depth + 1, kDepthsMax));
  }
  return depths;
}

void Painter::PaintBox(const Box& box, double x0, double x1, double y, bool joined) {
  const char* color = ColorOf(box);
  const double width = std::max(x1 - x0, 0.5);
  const double gap = width > 3 ? 0.5 : 0;
  Rect(x0, y + 1, width - gap, kRow - 2,
       absl::StrCat("fill=\"", color, "\"", width > 4 ? " rx=\"2\"" : "",
                    joined ? " opacity=\"0.75\"" : ""));
  const auto room = static_cast<size_t>(std::max(0.0, (width - 10) / kGlyph));
  if (joined || room < 3) return;
  const bool dark = color != std::string_view(kStepColor) && color != std::string_view(kOtherColor);
  Text(x0 + 5, y + kRow - 6, dark ? "box light" : "box", FitName(box.name, room));
}

// Boxes too narrow to see are joined with their neighbours, so that a million tasks stay a picture.
void Painter::PaintBoxes(const Lane& lane, double top) {
  std::vector<const Box*> boxes;
  for (const Box& box : lane.boxes) {
    if (box.depth < kDepthsMax) boxes.push_back(&box);
  }
  std::stable_sort(boxes.begin(), boxes.end(), [](const Box* a, const Box* b) {
    return std::tuple(a->depth, a->begin) < std::tuple(b->depth, b->begin);
  });
  for (size_t i = 0; i < boxes.size();) {
    const double x0 = X(boxes[i]->begin);
    double x1 = X(boxes[i]->end);
    size_t end = i + 1;
    const bool narrow = x1 - x0 < kMergeBelow;
    while (narrow && end < boxes.size() && boxes[end]->depth == boxes[i]->depth &&
           X(boxes[end]->begin) - x1 < kMergeBelow &&
           X(boxes[end]->end) - X(boxes[end]->begin) < kMergeBelow) {
      x1 = std::max(x1, X(boxes[end]->end));
      ++end;
    }
    PaintBox(*boxes[i], x0, x1, top + boxes[i]->depth * kRow, end > i + 1);
    i = end;
  }
}

void Painter::PaintLane(const Lane& lane) {
  const double height = DepthsOf(lane) * kRow;
  Rect(kLeft, y_, kWidth - kLeft - kRight, height, "fill=\"#f6f8fa\"");
  const auto room = static_cast<size_t>((kLeft - 40) / kGlyph);
  Text(kLeft - 12, y_ + 14, "lane", Fit(lane.thread, room), " text-anchor=\"end\"");
  for (const timeline::Interval& hole : lane.holes) {
    Rect(X(hole.begin), y_, std::max(1.0, X(hole.end) - X(hole.begin)), height,
         "fill=\"url(#hole)\"");
  }
  PaintBoxes(lane, y_);
  y_ += height + kLaneGap;
}

void Painter::PaintBoundaries(uint32_t node, double top, double bottom) {
  const auto bound = options_.bound_ns.find(node);
  const bool own = options_.step_node == node;
  for (const TimelineTime boundary : options_.boundaries) {
    const double x = X(boundary);
    if (!own && bound != options_.bound_ns.end()) {
      const double x0 = X({boundary.ns - bound->second});
      const double x1 = X({boundary.ns + bound->second});
      const double width = std::max(2.0, x1 - x0);
      absl::StrAppendFormat(&overlay_,
                            "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" "
                            "fill=\"#d6336c\" opacity=\"0.22\"/>\n",
                            (x0 + x1 - width) / 2, top, width, bottom - top);
    }
    absl::StrAppendFormat(
        &overlay_,
        "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#d6336c\" "
        "stroke-width=\"1\"%s/>\n",
        x, x, top, bottom, own ? "" : " stroke-dasharray=\"3 3\"");
  }
}

void Painter::PaintNodes() {
  for (const auto& [node, lanes] : lanes_) {
    const double top = y_;
    const auto name = sink_.nodes_.find(node);
    std::string head = name == sink_.nodes_.end() ? "" : name->second;
    std::string process;
    for (const Lane* lane : lanes) {
      if (lane->process == process) {
        PaintLane(*lane);
        continue;
      }
      process = lane->process;
      // The process's name begins with the node's: one line serves for both.
      Text(24, y_ + 18, "node", Fit(process, 150));
      y_ += kNodeHead;
      PaintLane(*lane);
    }
    const auto left_out = lanes_left_out_.find(node);
    if (left_out != lanes_left_out_.end()) {
      Text(kLeft, y_ + 4, "axis",
           absl::StrCat("and ", Plural(left_out->second, "less busy thread"), " of ", head));
      y_ += kRow;
    }
    extents_[node] = {top + kNodeHead, y_ - kLaneGap};
    PaintBoundaries(node, top + kNodeHead - 4, y_ - kLaneGap + 4);
    y_ += kLaneGap;
  }
}

// From the edge of the sender's lanes that faces the receiver to the receiver's facing edge;
// tensors above the messages that carry them.
void Painter::PaintArrows() {
  for (const bool tensor : {false, true}) {
    for (const PictureSink::Arrow& arrow : sink_.arrows_) {
      const auto from = extents_.find(arrow.from);
      const auto to = extents_.find(arrow.to);
      if (arrow.tensor != tensor || from == extents_.end() || to == extents_.end()) continue;
      const bool down = from->second.first < to->second.first;
      const double top = down ? from->second.second : from->second.first;
      const double bottom = down ? to->second.first : to->second.second;
      overlay_ += ArrowLine(tensor, X(arrow.sent), top, X(arrow.received), bottom);
      (tensor ? tensors_ : messages_) = true;
    }
  }
}

void Painter::PaintAxis(double bottom) {
  const auto length = static_cast<double>(options_.range.end.ns - options_.range.begin.ns);
  double step = std::pow(10.0, std::floor(std::log10(length / 8)));
  for (const double factor : {2.0, 5.0, 10.0}) {
    if (length / step > 12) step = std::pow(10.0, std::floor(std::log10(length / 8))) * factor;
  }
  const auto step_ns = std::max<int64_t>(1, static_cast<int64_t>(step));
  const int64_t first = (options_.range.begin.ns - options_.zero.ns) / step_ns * step_ns;
  std::string grid;
  for (int64_t at = first; at + options_.zero.ns <= options_.range.end.ns; at += step_ns) {
    const TimelineTime time{at + options_.zero.ns};
    if (time < options_.range.begin) continue;
    const double x = X(time);
    absl::StrAppendFormat(
        &grid, "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e3e8ee\"/>\n", x, x,
        kTop - 12, bottom);
    Text(x, kTop - 18, "axis", absl::StrFormat("%g ms", static_cast<double>(at) / 1e6),
         " text-anchor=\"middle\"");
  }
  body_.insert(0, grid);
}

void Painter::PaintLegend(double top) {
  double x = 24;
  double y = top + 14;
  const auto entry = [&](const std::string& text, const std::string& swatch) {
    const double width = 26 + kGlyph * static_cast<double>(DisplayWidth(text));
    if (x + width > kWidth - kRight) {
      x = 24;
      y += 20;
    }
    absl::StrAppend(&body_, "<g transform=\"translate(", absl::StrFormat("%.1f %.1f", x, y - 10),
                    ")\">", swatch, "</g>\n");
    Text(x + 18, y, "legend", text);
    x += width + 14;
  };
  const auto square = [](const char* color, const char* more = "") {
    return absl::StrCat("<rect width=\"12\" height=\"12\" rx=\"2\" fill=\"", color, "\"", more,
                        "/>");
  };
  for (const std::string& name : legend_) entry(FitName(name, 30), square(colors_.at(name)));
  if (!options_.boundaries.empty()) {
    entry("step boundary",
          "<line x1=\"6\" x2=\"6\" y1=\"-1\" y2=\"13\" stroke=\"#d6336c\" stroke-width=\"1.5\"/>");
    int64_t widest_ns = -1;
    for (const auto& [node, bound_ns] : options_.bound_ns) {
      if (options_.step_node != node) widest_ns = std::max(widest_ns, bound_ns);
    }
    if (widest_ns >= 0) {
      entry(absl::StrCat("where it may lie on the other node: ± ", DurationText(widest_ns)),
            square("#d6336c", " opacity=\"0.22\""));
    } else if (lanes_.size() > 1) {
      entry("how far off it may lie on the other node: unknown", square("none"));
    }
  }
  if (tensors_) entry("tensor, from its send to its receive", ArrowLine(true, 0, 2, 11, 10));
  if (messages_) entry("message over TCP", ArrowLine(false, 0, 2, 11, 10));
  bool holes = false;
  for (const auto& [node, lanes] : lanes_) {
    for (const Lane* lane : lanes) holes = holes || !lane->holes.empty();
  }
  if (others_) entry("other", square(kOtherColor));
  if (holes) entry("lost, or not recorded", square("url(#hole)"));
  y_ = y + 20;
}

std::string Painter::Paint() {
  ChooseLanes();
  ChooseColors();
  PaintNodes();
  PaintArrows();
  if (lanes_.empty()) {
    Text(kLeft, y_ + 20, "lane", "No task of any thread lies in this stretch of time.");
    y_ += 40;
  }
  PaintAxis(y_ - kLaneGap);
  body_ += overlay_;
  PaintLegend(y_);
  std::string out = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\">\n",
      kWidth, y_, kWidth, y_);
  out += kSvgStyle;
  out +=
      "<defs><pattern id=\"hole\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#f1f1f1\"/>"
      "<rect width=\"2\" height=\"6\" fill=\"#c9ccd1\"/></pattern>";
  absl::StrAppend(&out, ArrowHead("tensor", kTensorColor), ArrowHead("message", kMessageColor),
                  "</defs>\n");
  absl::StrAppendFormat(&out, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", kWidth,
                        y_);
  std::swap(body_, out);
  Text(24, 34, "title", options_.title);
  Text(24, 54, "subtitle", options_.subtitle);
  return body_ + out + "</svg>\n";
}

void PictureSink::OnText(timeline::TextId id, std::string_view text) {
  if (texts_.size() <= id) texts_.resize(id + 1);
  texts_[id] = text;
}

void PictureSink::OnTrack(const timeline::Track& track) {
  tracks_[track.id] = track;
  if (track.kind == timeline::TrackKind::kNode) nodes_[track.node] = track.name;
  if (track.kind != timeline::TrackKind::kThread && track.kind != timeline::TrackKind::kLane) {
    return;
  }
  const timeline::Track* process = &track;
  while (process->kind != timeline::TrackKind::kProcess && tracks_.count(process->parent) != 0) {
    process = &tracks_[process->parent];
  }
  Lane& lane = lanes_[track.id];
  lane.node = track.node;
  lane.process = process->name;
  lane.operators = track.kind == timeline::TrackKind::kLane;
  lane.thread = lane.operators ? absl::StrCat("operators · ", track.name) : track.name;
  lane.order = track.id;
}

void PictureSink::OnSpanEnd(const timeline::Span& span) {
  const auto lane = lanes_.find(span.track);
  if (lane == lanes_.end()) return;
  if (lane->second.boxes.size() >= kBoxesMax) return;  // no screen shows as many
  const bool operators = lane->second.operators;
  if (operators && texts_[span.category] != timeline::kOperatorCategory &&
      texts_[span.category] != timeline::kJaxOperatorCategory) {
    return;
  }
  // What an operator lies in is its executor, which is not drawn.
  const uint16_t depth = operators ? 0 : span.depth;
  if (depth == 0) lane->second.busy_ns += span.end.ns - span.begin.ns;
  lane->second.boxes.push_back(
      {span.begin, span.end, depth,
       operators ? texts_[span.name] : analysis::NamePattern(texts_[span.name]),
       span.clipped_begin || span.clipped_end});
}

void PictureSink::OnFlow(const timeline::Flow& flow) {
  const timeline::Track& from = tracks_[flow.from];
  const timeline::Track& to = tracks_[flow.to];
  if (from.node == to.node || arrows_.size() >= kArrowsMax) return;
  const bool tensor = from.kind == timeline::TrackKind::kLane;
  arrows_.push_back({tensor, from.node, to.node, flow.sent, flow.received});
}

void PictureSink::OnHole(const timeline::Hole& hole) {
  for (auto& [track, lane] : lanes_) {
    const bool concerns = track == hole.track || tracks_[track].parent == hole.track;
    if (concerns) lane.holes.push_back({hole.begin, hole.end});
  }
}

std::string PictureSink::Render() const { return Painter(*this).Paint(); }

}  // namespace syncline::report
