// SPDX-License-Identifier: Apache-2.0
// Where in the program's Python code its ranks stood while they ran host code, by samples. Plain
// values.
#ifndef SYNCLINE_ANALYSIS_WHY_STOOD_IN_H_
#define SYNCLINE_ANALYSIS_WHY_STOOD_IN_H_

#include <cstdint>
#include <string>

namespace syncline::analysis::why {

// A function, or one line of it, of the program's own code, or of a library where none of the
// program's calls it. Being in it counts, and being in what it calls.
struct StoodIn {
  // "CB.on_step_begin (jobs/hf.py:11)": that line; without one: more than one line of it. Empty:
  // all that is known is that Python ran.
  std::string place;
  std::string within;         // what ran in it, in more than half of these samples; else empty
  uint64_t samples = 0;       // there
  uint64_t host_samples = 0;  // in host code
  // Of these: where is not known, because Python, or C code that holds the interpreter's lock, ran
  // in the process without a pause.
  uint64_t kept_samples = 0;
  bool kept_more = false;  // certainly more of those than the others have
  // The median of the other ranks: there, and that rank's in host code.
  uint64_t others = 0;
  uint64_t others_host = 0;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_STOOD_IN_H_
