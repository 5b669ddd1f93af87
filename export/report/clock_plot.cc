// SPDX-License-Identifier: Apache-2.0
#include "export/report/clock_plot.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/duration_text.h"
#include "common/text_width.h"
#include "export/report/svg_parts.h"
#include "export/report/table.h"

namespace syncline::report {
namespace {

using clocksync::BoundedMap;
using clocksync::ClockEvent;
using clocksync::EdgeQuality;

// Of the SVG, in pixels.
constexpr double kWidth = 1200;
constexpr double kLeft = 96;
constexpr double kRight = 32;
constexpr double kTop = 92;
constexpr double kPanel = 210;      // the plot itself
constexpr double kHead = 46;        // what stands over it
constexpr double kFoot = 40;        // the axis below it
constexpr size_t kDotsMax = 3'000;  // of each kind in a panel
constexpr int kTicks = 5;

// Of the terminal's plot.
constexpr size_t kRows = 11;
constexpr size_t kLabelColumns = 11;

struct Dot {
  double t = 0;  // seconds on the timeline
  double y = 0;  // ns, less the straight line
};

struct Knot {
  double t = 0;
  double lo = 0;
  double est = 0;
  double hi = 0;
};

// One edge, ready to be drawn.
struct Panel {
  const EdgeQuality* edge = nullptr;
  std::vector<Dot> upper;
  std::vector<Dot> lower;
  std::vector<Knot> knots;  // those of which both ends are known
  double t_min = 0, t_max = 1;
  double y_min = -1, y_max = 1;
};

double Share(std::vector<double> values, double share) {
  const auto at =
      values.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// The usual drift: what most pieces between two knots agree on, so that a step does not tilt it.
double UsualSlope(const std::vector<BoundedMap::Knot>& knots) {
  std::vector<double> slopes;
  for (size_t i = 0; i + 1 < knots.size(); ++i) {
    const auto dx = static_cast<double>(knots[i + 1].x - knots[i].x);
    slopes.push_back((static_cast<double>(knots[i + 1].est - knots[i].est) - dx) / dx);
  }
  return slopes.empty() ? 0 : Share(std::move(slopes), 0.5);
}

std::optional<Panel> MakePanel(const EdgeQuality& edge) {
  const std::vector<BoundedMap::Knot>& knots = edge.corridor.knots();
  if (knots.empty()) return std::nullopt;
  const BoundedMap::Knot& base = knots[knots.size() / 2];
  const int64_t theta = base.est - base.x;
  const double slope = UsualSlope(knots);
  const auto residual = [&](int64_t x, int64_t y) {
    return static_cast<double>(y - x - theta) - slope * static_cast<double>(x - base.x);
  };
  const auto seconds = [&](int64_t x) {
    return static_cast<double>(x - edge.zero_local_ns) * 1e-9;
  };
  Panel panel{.edge = &edge};
  std::vector<double> lows, highs, widths;
  for (const BoundedMap::Knot& k : knots) {
    if (k.lo == kUnknownLo || k.hi == kUnknownHi) continue;
    panel.knots.push_back(
        {seconds(k.x), residual(k.x, k.lo), residual(k.x, k.est), residual(k.x, k.hi)});
    lows.push_back(panel.knots.back().lo);
    highs.push_back(panel.knots.back().hi);
    widths.push_back(highs.back() - lows.back());
  }
  if (panel.knots.empty()) return std::nullopt;
  panel.t_min = panel.knots.front().t;
  panel.t_max = std::max(panel.knots.back().t, panel.t_min + 1e-6);
  const double margin = std::max(0.6 * Share(widths, 0.5), 1.0);
  panel.y_min = Share(lows, 0.02) - margin;
  panel.y_max = Share(highs, 0.98) + margin;
  for (const auto& c : edge.constraints.upper) {
    panel.upper.push_back({seconds(c.x), residual(c.x, c.y)});
  }
  for (const auto& c : edge.constraints.lower) {
    panel.lower.push_back({seconds(c.x), residual(c.x, c.y)});
  }
  return panel;
}

std::string NameOf(const EdgeQuality& edge) {
  return absl::StrCat(edge.local, " \u2192 ", edge.remote);
}

std::string Summary(const EdgeQuality& edge) {
  return absl::StrCat(
      "bound ± ", DurationText(edge.bound_median_ns), " (worst ± ",
      DurationText(edge.bound_worst_ns), "), offset ", SignedDurationText(edge.offset_ns),
      absl::StrFormat(", drift %+.3f ppm, ", static_cast<double>(edge.drift_ppb) / 1000),
      edge.samples, " samples, shortest round trip ", DurationText(edge.round_trip_min_ns));
}

// The panels with the narrowest bounds first; how many edges were left out.
struct Panels {
  std::vector<Panel> all;
  size_t left_out = 0;
};

Panels MakePanels(const ClockPlotInput& input) {
  std::vector<const EdgeQuality*> edges;
  for (const EdgeQuality& edge : input.edges) edges.push_back(&edge);
  std::stable_sort(edges.begin(), edges.end(), [](const EdgeQuality* a, const EdgeQuality* b) {
    return a->bound_median_ns < b->bound_median_ns;
  });
  Panels panels;
  for (const EdgeQuality* edge : edges) {
    std::optional<Panel> panel;
    if (panels.all.size() < input.edges_max) panel = MakePanel(*edge);
    if (panel) {
      panels.all.push_back(*std::move(panel));
    } else {
      ++panels.left_out;
    }
  }
  return panels;
}

// A round number of seconds or ns, so that about kTicks of them fill the range.
double RoundStep(double range, int ticks) {
  const double rough = range / ticks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (double digit : {1.0, 2.0, 5.0}) {
    if (digit * power >= rough) return digit * power;
  }
  return 10 * power;
}

// Of what the event tells about this edge: shaded, with a word.
bool Concerns(const ClockEvent& event, const EdgeQuality& edge) {
  if (!event.begin || !event.end || event.kind == ClockEvent::Kind::kNoSamples) return false;
  const std::string name = absl::StrCat(edge.local, "--", edge.remote);
  const bool shows =
      std::find(event.evidence.begin(), event.evidence.end(), name) != event.evidence.end();
  const bool clock =
      event.kind == ClockEvent::Kind::kInfeasible || event.kind == ClockEvent::Kind::kSuspend;
  return event.node == name || shows ||
         (clock && (event.node == edge.local || event.node == edge.remote));
}

const char* WordFor(const ClockEvent& event) {
  if (event.kind == ClockEvent::Kind::kGap) return "no samples";
  if (event.kind == ClockEvent::Kind::kSuspend) return "suspended";
  return clocksync::CauseName(event.cause);
}

class SvgPainter {
 public:
  explicit SvgPainter(const ClockPlotInput& input) : input_(input), panels_(MakePanels(input)) {}

  std::string Paint() {
    double top = kTop;
    for (const Panel& panel : panels_.all) {
      PaintPanel(panel, top);
      top += kHead + kPanel + kFoot;
    }
    if (panels_.all.empty()) {
      Text(kLeft, top + 20, "subtitle", "No edge has samples that make an interval.");
      top += 40;
    }
    if (panels_.left_out > 0) {
      Text(kLeft, top + 10, "subtitle", absl::StrCat("edges not drawn: ", panels_.left_out));
      top += 24;
    }
    std::string out = absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
        "viewBox=\"0 0 %.0f %.0f\">\n",
        kWidth, top + 8, kWidth, top + 8);
    out += kSvgStyle;
    absl::StrAppendFormat(&out, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", kWidth,
                          top + 8);
    return out + Header() + body_ + "</svg>\n";
  }

 private:
  std::string Header() {
    std::string saved = std::move(body_);
    body_.clear();
    Text(kLeft, 34, "title", input_.title);
    Text(
        kLeft, 54, "subtitle",
        "Offset of each clock (remote \u2212 local, CLOCK_MONOTONIC_RAW) less its usual drift. The "
        "truth lies in the shaded corridor; messages there bound it from above, messages back from "
        "below.");
    double x = kLeft;
    const auto key = [&](const char* mark, const char* text) {
      absl::StrAppendFormat(&body_, mark, x, x + 18);
      Text(x + 24, 78, "legend", text);
      x += 24 + 6.3 * static_cast<double>(DisplayWidth(text)) + 26;
    };
    key("<circle cx=\"%.1f\" cy=\"74\" r=\"2.4\" fill=\"#c8553d\" transform=\"translate(9,0)\"/>"
        "<!-- %.1f -->\n",
        "message out: upper limit");
    key("<circle cx=\"%.1f\" cy=\"74\" r=\"2.4\" fill=\"#2f6f9f\" transform=\"translate(9,0)\"/>"
        "<!-- %.1f -->\n",
        "answer: lower limit");
    key("<line x1=\"%.1f\" y1=\"74\" x2=\"%.1f\" y2=\"74\" stroke=\"#9fb8cf\" "
        "stroke-width=\"9\"/>\n",
        "proven corridor");
    key("<line x1=\"%.1f\" y1=\"74\" x2=\"%.1f\" y2=\"74\" stroke=\"#1d2733\" "
        "stroke-width=\"1.6\"/>\n",
        "estimate");
    std::string header = std::move(body_);
    body_ = std::move(saved);
    return header;
  }

  void Text(double x, double y, const char* style, std::string_view text, const char* more = "") {
    absl::StrAppendFormat(&body_, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\"%s>%s</text>\n", x, y,
                          style, more, EscapeXml(text));
  }

  double X(const Panel& p, double t) const {
    return kLeft +
           std::clamp((t - p.t_min) / (p.t_max - p.t_min), 0.0, 1.0) * (kWidth - kLeft - kRight);
  }
  double Y(const Panel& p, double y, double top) const {
    return top + std::clamp((p.y_max - y) / (p.y_max - p.y_min), 0.0, 1.0) * kPanel;
  }

  void PaintPanel(const Panel& p, double above) {
    Text(kLeft, above + 18, "node", NameOf(*p.edge));
    const size_t out = OutOfPicture(p);
    Text(kLeft, above + 35, "lane",
         absl::StrCat(Summary(*p.edge),
                      out == 0 ? "" : absl::StrCat("; ", out, " late ones lie outside")));
    const double top = above + kHead;
    absl::StrAppendFormat(
        &body_, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#fafbfc\"/>\n",
        kLeft, top, kWidth - kLeft - kRight, kPanel);
    PaintEvents(p, top);
    PaintAxes(p, top);
    PaintCorridor(p, top);
    PaintDots(p, p.upper, top, "#c8553d");
    PaintDots(p, p.lower, top, "#2f6f9f");
    PaintEstimate(p, top);
    for (const auto& [x, word] : labels_) {
      Text(x, top + 14, "axis", word,
           " stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\"");
    }
    labels_.clear();
  }

  static size_t OutOfPicture(const Panel& p) {
    const auto outside = [&](const Dot& d) { return d.y < p.y_min || d.y > p.y_max; };
    return static_cast<size_t>(std::count_if(p.upper.begin(), p.upper.end(), outside) +
                               std::count_if(p.lower.begin(), p.lower.end(), outside));
  }

  void PaintEvents(const Panel& p, double top) {
    for (const ClockEvent& event : input_.events) {
      if (!Concerns(event, *p.edge)) continue;
      const double x0 = X(p, static_cast<double>(event.begin->ns) * 1e-9);
      const double x1 = std::max(X(p, static_cast<double>(event.end->ns) * 1e-9), x0 + 2);
      const bool gap = event.kind == ClockEvent::Kind::kGap;
      absl::StrAppendFormat(&body_,
                            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                            "fill=\"%s\"><title>%s</title></rect>\n",
                            x0, top, x1 - x0, kPanel, gap ? "#eceff3" : "#f7d9d3",
                            EscapeXml(absl::StrCat(event.node, ": ", event.text)));
      const bool fits = x1 - x0 > 80;
      labels_.push_back({fits ? x0 + 6 : std::min(x1 + 4, kWidth - kRight - 80), WordFor(event)});
    }
  }

  void PaintAxes(const Panel& p, double top) {
    const double step = RoundStep(p.y_max - p.y_min, kTicks);
    for (double y = std::ceil(p.y_min / step) * step; y <= p.y_max; y += step) {
      const double at = Y(p, y, top);
      absl::StrAppendFormat(&body_,
                            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                            "stroke=\"#e3e8ee\"/>\n",
                            kLeft, at, kWidth - kRight, at);
      Text(kLeft - 8, at + 4, "axis", SignedDurationText(std::llround(y)), " text-anchor=\"end\"");
    }
    const double t_step = RoundStep(p.t_max - p.t_min, 10);
    for (double t = std::ceil(p.t_min / t_step) * t_step; t <= p.t_max; t += t_step) {
      const double x = X(p, t);
      absl::StrAppendFormat(&body_,
                            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                            "stroke=\"#e3e8ee\"/>\n",
                            x, top, x, top + kPanel);
      Text(x, top + kPanel + 16, "axis", absl::StrFormat("%.6g s", t + 0.0),
           " text-anchor=\"middle\"");
    }
  }

  void PaintCorridor(const Panel& p, double top) {
    body_ += "<path fill=\"#9fb8cf\" fill-opacity=\"0.55\" stroke=\"none\" d=\"M";
    for (const Knot& k : p.knots) {
      absl::StrAppendFormat(&body_, "%.1f %.1f ", X(p, k.t), Y(p, k.hi, top));
    }
    for (size_t i = p.knots.size(); i-- > 0;) {
      absl::StrAppendFormat(&body_, "%.1f %.1f ", X(p, p.knots[i].t), Y(p, p.knots[i].lo, top));
    }
    body_ += "Z\"/>\n";
  }

  void PaintDots(const Panel& p, const std::vector<Dot>& dots, double top, const char* color) {
    std::vector<const Dot*> inside;
    for (const Dot& d : dots) {
      if (d.y >= p.y_min && d.y <= p.y_max) inside.push_back(&d);
    }
    const size_t stride = inside.size() / kDotsMax + 1;
    absl::StrAppendFormat(&body_, "<g fill=\"%s\" fill-opacity=\"0.7\">\n", color);
    for (size_t i = 0; i < inside.size(); i += stride) {
      absl::StrAppendFormat(&body_, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"1.6\"/>\n",
                            X(p, inside[i]->t), Y(p, inside[i]->y, top));
    }
    body_ += "</g>\n";
  }

  void PaintEstimate(const Panel& p, double top) {
    body_ += "<polyline fill=\"none\" stroke=\"#1d2733\" stroke-width=\"1.6\" points=\"";
    for (const Knot& k : p.knots) {
      absl::StrAppendFormat(&body_, "%.1f,%.1f ", X(p, k.t), Y(p, k.est, top));
    }
    body_ += "\"/>\n";
  }

  const ClockPlotInput& input_;
  Panels panels_;
  std::vector<std::pair<double, const char*>> labels_;  // of the panel's events
  std::string body_;
};

// One panel in characters: rows of cells, each a UTF-8 character.
class TextPainter {
 public:
  TextPainter(const Panel& panel, size_t columns)
      : p_(panel), cells_(kRows, std::vector<std::string>(columns, " ")) {}

  std::string Paint() {
    for (size_t c = 0; c < Columns(); ++c) {
      const Knot k = At(p_.t_min + (p_.t_max - p_.t_min) * (static_cast<double>(c) + 0.5) /
                                       static_cast<double>(Columns()));
      for (size_t r = Row(k.hi); r <= Row(k.lo); ++r) cells_[r][c] = "\u2591";
      cells_[Row(k.est)][c] = "\u2501";
    }
    PaintTightest(p_.upper, "\u25bd", [](double a, double b) { return a < b; });
    PaintTightest(p_.lower, "\u25b3", [](double a, double b) { return a > b; });
    std::string out;
    for (size_t r = 0; r < kRows; ++r) {
      const double y = p_.y_max - (p_.y_max - p_.y_min) * (static_cast<double>(r) + 0.5) / kRows;
      const bool labelled = r % 5 == 0;
      const std::string label = labelled ? SignedDurationText(std::llround(y)) : "";
      out += std::string(kLabelColumns - std::min(kLabelColumns, DisplayWidth(label)), ' ') + label;
      out += labelled ? " \u2524" : " \u2502";
      for (const std::string& cell : cells_[r]) out += cell;
      while (out.back() == ' ') out.pop_back();
      out += '\n';
    }
    return out + TimeAxis();
  }

 private:
  size_t Columns() const { return cells_[0].size(); }

  size_t Row(double y) const {
    const double share = (p_.y_max - y) / (p_.y_max - p_.y_min);
    return static_cast<size_t>(std::clamp(share * kRows, 0.0, kRows - 1.0));
  }

  Knot At(double t) const {
    size_t i = 0;
    while (i + 1 < p_.knots.size() && p_.knots[i + 1].t < t) ++i;
    const Knot& a = p_.knots[i];
    const Knot& b = p_.knots[std::min(i + 1, p_.knots.size() - 1)];
    const double share = b.t > a.t ? std::clamp((t - a.t) / (b.t - a.t), 0.0, 1.0) : 0;
    const auto mix = [share](double from, double to) { return from + (to - from) * share; };
    return {t, mix(a.lo, b.lo), mix(a.est, b.est), mix(a.hi, b.hi)};
  }

  // The tightest message of each column.
  void PaintTightest(const std::vector<Dot>& dots, const char* mark,
                     bool (*tighter)(double, double)) {
    std::vector<std::optional<double>> best(Columns());
    for (const Dot& d : dots) {
      if (d.t < p_.t_min || d.t > p_.t_max) continue;
      const double share = (d.t - p_.t_min) / (p_.t_max - p_.t_min);
      const auto c =
          std::min(static_cast<size_t>(share * static_cast<double>(Columns())), Columns() - 1);
      if (!best[c] || tighter(d.y, *best[c])) best[c] = d.y;
    }
    for (size_t c = 0; c < Columns(); ++c) {
      if (best[c] && *best[c] >= p_.y_min && *best[c] <= p_.y_max) cells_[Row(*best[c])][c] = mark;
    }
  }

  std::string TimeAxis() const {
    const std::string begin = absl::StrFormat("%+.3g s", p_.t_min);
    const std::string end = absl::StrFormat("%+.3g s", p_.t_max);
    std::string out = std::string(kLabelColumns + 1, ' ') + "\u2514";
    for (size_t c = 0; c < Columns(); ++c) out += "\u2500";
    const size_t used = begin.size() + end.size();
    return absl::StrCat(out, "\n", std::string(kLabelColumns + 2, ' '), begin,
                        std::string(Columns() > used ? Columns() - used : 1, ' '), end, "\n");
  }

  const Panel& p_;
  std::vector<std::vector<std::string>> cells_;
};

}  // namespace

std::string ClockPlotSvg(const ClockPlotInput& input) { return SvgPainter(input).Paint(); }

std::string ClockPlotText(const ClockPlotInput& input, size_t width) {
  const size_t columns = std::clamp<size_t>(width, 40, 160) - kLabelColumns - 2;
  const Panels panels = MakePanels(input);
  std::string out;
  for (const Panel& panel : panels.all) {
    const std::string name = Fit(NameOf(*panel.edge), 60);
    absl::StrAppend(&out, out.empty() ? "" : "\n", name, ": offset less its usual drift\n",
                    TextPainter(panel, columns).Paint());
  }
  if (out.empty()) return out;
  absl::StrAppend(
      &out,
      "  \u25bd tightest messages there   \u25b3 tightest messages back   \u2591 proven "
      "corridor   \u2501 estimate\n");
  if (panels.left_out > 0) {
    absl::StrAppend(&out, "  edges not drawn: ", panels.left_out, "\n");
  }
  return out;
}

}  // namespace syncline::report
