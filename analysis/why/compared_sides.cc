// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/compared_sides.h"

namespace syncline::analysis::why {

const char* MismatchJsonName(Mismatch mismatch) {
  switch (mismatch) {
    case Mismatch::kNone:
      return "";
    case Mismatch::kNowRefused:
      return "now_refused";
    case Mismatch::kBeforeRefused:
      return "before_refused";
    case Mismatch::kOtherWorldSize:
      return "other_world_size";
    case Mismatch::kOtherSteps:
      return "other_steps";
  }
  return "";
}

}  // namespace syncline::analysis::why
