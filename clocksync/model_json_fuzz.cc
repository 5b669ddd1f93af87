// SPDX-License-Identifier: Apache-2.0
// clocks/models.json from elsewhere: never crash; what is accepted answers monotonically and is
// stable.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "clocksync/clock_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using syncline::ClockKind;
  const auto model = syncline::clocksync::ClockModel::FromJson(
      std::string_view(reinterpret_cast<const char*>(data), size));
  if (!model.ok()) return 0;
  const auto count = static_cast<uint32_t>(model->nodes().size());
  for (uint32_t node = 0; node < count && node < 4; ++node) {
    auto mapper = model->MapperFor({node, ClockKind::kMonotonic});
    int64_t last = mapper.At(INT64_MIN).ns;
    for (int64_t t : {int64_t{-1} << 62, int64_t{-1000}, int64_t{0}, int64_t{1} << 50, INT64_MAX}) {
      const int64_t at = mapper.At(t).ns;
      if (at < last) std::abort();
      last = at;
      const auto located = model->Locate({{node, ClockKind::kMonotonic}, t});
      if (located.lo > located.est || located.est > located.hi) std::abort();
      const auto d = model->Difference({{node, ClockKind::kRaw}, t}, {{0, ClockKind::kRaw}, 5});
      if (d.lo_ns > d.est_ns || d.est_ns > d.hi_ns) std::abort();
      model->Unlocate({node, ClockKind::kRealtime}, {t});
    }
  }
  const auto again = syncline::clocksync::ClockModel::FromJson(model->ToJson());
  if (!again.ok() || again->ToJson() != model->ToJson()) std::abort();
  return 0;
}
