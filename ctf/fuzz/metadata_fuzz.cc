// Any bytes as a metadata file, up to the layouts built from it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ctf/layout.h"
#include "ctf/metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto metadata = syncline::ctf::ParseMetadata({reinterpret_cast<const char*>(data), size});
  if (metadata.ok()) (void)syncline::ctf::BuildLayout(*metadata);
  return 0;
}
