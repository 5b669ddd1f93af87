// SPDX-License-Identifier: Apache-2.0
// The hosts file and the -H list are typed by people and made by scripts: any bytes are read or
// refused.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "coordinator/hosts/hosts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)syncline::hosts::ParseHostList(text.substr(0, 64));
  const auto nodes = syncline::hosts::ParseHosts(text, "fuzz");
  if (!nodes.ok()) return 0;
  for (const auto& node : *nodes) {
    const auto again = syncline::hosts::ParseAddress(node.name, node.Address());
    if (!again.ok() || again->Address() != node.Address()) std::abort();
  }
  return 0;
}
