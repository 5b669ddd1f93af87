// SPDX-License-Identifier: Apache-2.0
// How many files and sockets this process may have open. The soft limit is 1,024 in most places,
// for the sake of programs that use select(); the hard one is far above.
#ifndef SYNCLINE_COMMON_DESCRIPTORS_H_
#define SYNCLINE_COMMON_DESCRIPTORS_H_

#include <sys/resource.h>

namespace syncline {

// Raises the soft limit to the hard one. Returns the soft limit as it was: children get that one,
// because they may be programs that use select(), or that close all descriptors up to the limit.
rlim_t RaiseDescriptorLimit();

// Another soft limit as long as it lives, for a child that is started meanwhile. Of the whole
// process: only while nobody else opens anything.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t soft);
  ~DescriptorLimit();
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
  bool changed_ = false;
};

}  // namespace syncline

#endif  // SYNCLINE_COMMON_DESCRIPTORS_H_
