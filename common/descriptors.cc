// SPDX-License-Identifier: Apache-2.0
#include "common/descriptors.h"

#include <algorithm>

namespace syncline {

rlim_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;  // what it is where nobody says
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // where it fails, the limit is as it was
  return before;
}

DescriptorLimit::DescriptorLimit(rlim_t soft) {
  if (::getrlimit(RLIMIT_NOFILE, &before_) != 0) return;
  const rlimit limit{.rlim_cur = std::min(soft, before_.rlim_max), .rlim_max = before_.rlim_max};
  changed_ = ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

DescriptorLimit::~DescriptorLimit() {
  if (changed_) ::setrlimit(RLIMIT_NOFILE, &before_);
}

}  // namespace syncline
