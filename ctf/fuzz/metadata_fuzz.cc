// SPDX-License-Identifier: Apache-2.0
// Any bytes as a metadata file, up to the layouts built from it, and said again in CTF 1.8's words.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ctf/ctf18_words.h"
#include "ctf/layout.h"
#include "ctf/metadata.h"
#include "ctf/tsdl_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto metadata = syncline::ctf::ParseMetadata({reinterpret_cast<const char*>(data), size});
  if (!metadata.ok()) return 0;
  (void)syncline::ctf::BuildLayout(*metadata);
  const auto in_words = syncline::ctf::InCtf18Words(*metadata);
  if (in_words.ok()) (void)syncline::ctf::WriteTsdl(**in_words);
  return 0;
}
