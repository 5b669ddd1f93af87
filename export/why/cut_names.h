// SPDX-License-Identifier: Apache-2.0
// Names of TensorFlow's graphs, fit for a terminal.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_CUT_NAMES_H_
#define SYNCLINE_EXPORT_WHY_CUT_NAMES_H_

#include <string>

namespace syncline::report {

// Of an operator or a tensor: a long one with its middle left out, as of many names the begins are
// alike.
std::string GraphNameText(const std::string& name);

// "worker:0" of "/job:worker/replica:0/task:0".
std::string TaskText(const std::string& task);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_CUT_NAMES_H_
