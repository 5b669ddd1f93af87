// SPDX-License-Identifier: Apache-2.0
// Any bytes as the packet index of a sound stream: a window read with it holds what it holds
// without.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "ctf/generator.h"
#include "ctf/packet_index.h"
#include "ctf/reader.h"

namespace {

namespace ctf = syncline::ctf;

struct Sound {
  std::shared_ptr<const ctf::TraceLayout> layout;
  ctf::GeneratedStream stream;
};

const Sound& TheStream() {
  static const Sound sound = {
      ctf::BuildLayout(ctf::ParseMetadata(ctf::GeneratedMetadata()).value()).value(),
      ctf::GenerateStream({.events_per_stream = 900, .packet_bytes = 4096}, 0)};
  return sound;
}

// Times of the events from `begin_ns` on, mixed into one number.
uint64_t Read(int64_t begin_ns, uint64_t begin_byte) {
  const Sound& sound = TheStream();
  auto cursor =
      ctf::MakeCursor(sound.layout, std::make_unique<ctf::MemorySource>(sound.stream.bytes), {},
                      {begin_ns, syncline::kUnknownHi, begin_byte, UINT64_MAX});
  uint64_t mixed = 0;
  for (auto batch = *cursor->NextBatch(); !batch.empty(); batch = *cursor->NextBatch()) {
    for (const syncline::EventRecord& record : batch) {
      mixed = mixed * 31 + static_cast<uint64_t>(record.time_ns);
    }
  }
  return mixed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Sound& sound = TheStream();
  constexpr int64_t kBegin = 1'000'600'000;
  static const uint64_t expected = Read(kBegin, 0);
  auto index = ctf::PacketIndex::Open(
      std::make_unique<ctf::MemorySource>(std::span<const uint8_t>(data, size)));
  if (!index.ok()) return 0;
  ctf::MemorySource bytes(sound.stream.bytes);
  ctf::IndexedStream indexed(*sound.layout, bytes, *index);
  const auto begin_byte = indexed.Seek(kBegin);
  if (!begin_byte.ok() || Read(kBegin, *begin_byte) != expected) std::abort();
  const auto extent = indexed.Extent();
  if (!extent.ok()) std::abort();
  return 0;
}
