// SPDX-License-Identifier: Apache-2.0
// Words of the section on hot code, of samples and of page faults and switches alike.
//
// Thread-safety: no state.
#ifndef SYNCLINE_EXPORT_REPORT_HOT_WORDS_H_
#define SYNCLINE_EXPORT_REPORT_HOT_WORDS_H_

#include <cstdint>
#include <string>

#include "analysis/hot_code.h"

namespace syncline::report {

// "convolution (dnnl)", "outside of recorded tasks".
std::string HotPlaceText(analysis::TaskWhere where, const std::string& domain,
                         const std::string& name);
const char* HotPlaceJsonName(analysis::TaskWhere where);  // "thread_without_tasks"
std::string HotShareText(uint64_t part, uint64_t whole);  // "41.2 ± 1.7 %"

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_HOT_WORDS_H_
