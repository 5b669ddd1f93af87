// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/merge_view.h"

#include "absl/strings/str_cat.h"
#include "common/duration_text.h"
#include "common/text.h"
#include "coordinator/cli/parse.h"
#include "coordinator/cli/terminal.h"

namespace syncline::cli {
namespace {

constexpr int64_t kQuietNs = 2'000'000'000;  // so long nobody wonders
constexpr int64_t kPatienceNs = 5'000'000'000;
constexpr int64_t kPeriodNs = 200'000'000;

}  // namespace

void MergeView::Clear() {
  // A file keeps its lines.
  if (line_ && context_.err_is_terminal) *context_.err << "\x1b[1A\x1b[2K" << std::flush;
  line_ = false;
}

void MergeView::OnProgress(const merge::Progress& progress) {
  if (!context_.ShowProgress()) return;
  const int64_t now_ns = context_.clock->RawNs();
  if (now_ns - begun_ns_ < kQuietNs || now_ns - shown_ns_ < kPeriodNs) return;
  shown_ns_ = now_ns;
  Clear();
  if (may_look_back_ && progress.before_cut && !said_ && now_ns - begun_ns_ >= kPatienceNs) {
    said_ = true;
    PrintNote(context_, "note", "",
              "reading before --from, to find tasks that last into the cut; --look-back 32s reads "
              "32 s of that at most (--help says what may then be missing)",
              "");
  }
  *context_.err << Styled(absl::StrCat("  ", Printable(progress.node), ": reading what was at ",
                                       DurationText(progress.time.ns),
                                       progress.before_cut ? ", before --from" : "", ", ",
                                       FormatCount(progress.events), " events so far"),
                          Style::kDim, context_.ColourErr())
                << '\n'
                << std::flush;
  line_ = true;
}

}  // namespace syncline::cli
