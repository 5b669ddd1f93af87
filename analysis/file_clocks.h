// SPDX-License-Identifier: Apache-2.0
// What tells how far the clocks of profiles are apart that were taken without a recording.
#ifndef SYNCLINE_ANALYSIS_FILE_CLOCKS_H_
#define SYNCLINE_ANALYSIS_FILE_CLOCKS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace syncline::analysis {

struct FileClocks {
  struct File {
    std::string name;
    std::string node;
    uint64_t kernels = 0;         // that name their collective
    uint64_t without_number = 0;  // of these: they cannot be matched
    uint64_t matched = 0;
  };
  std::vector<File> files;
  uint64_t collectives = 0;     // matched, sends and receives included
  uint64_t binding = 0;         // of these: some rank waited for another one of another node
  uint64_t repeated = 0;        // not matched: one rank shows them several times
  uint64_t alone = 0;           // only one rank shows them
  uint64_t impossible = 0;      // kernels before their launch, or of no member of their group
  uint64_t transfers_left = 0;  // sends and receives that nothing matches
  std::vector<std::string> disagreeing;  // groups that are not matched, with why
  std::string contradiction;             // why the clocks are not compared all the same
  bool compared = false;                 // by their collectives
  // Assumed: no two of the clocks differ by more in their rates.
  int64_t rate_ppm = 0;
};

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_FILE_CLOCKS_H_
