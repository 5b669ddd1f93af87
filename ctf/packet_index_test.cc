// SPDX-License-Identifier: Apache-2.0
// A window of a stream, found through its index: the same events and losses as when everything is
// read and cut afterwards, whatever the index says.
#include "ctf/packet_index.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "ctf/generator.h"
#include "ctf/packet_walker.h"
#include "ctf/stream_summary.h"
#include "ctf/test_trace.h"

namespace syncline::ctf::testing {
namespace {

std::shared_ptr<const TraceLayout> GeneratedLayout() {
  return BuildLayout(ParseMetadata(GeneratedMetadata()).value()).value();
}

// About 40 packets; events 0.3 s apart, so that full and short timestamps mix.
GeneratedStream SmallStream() {
  return GenerateStream(
      {.events_per_stream = 4000, .packet_bytes = 4096, .gap_ns_mean = 100'000'000}, 7);
}

class CountingSource : public MemorySource {
 public:
  CountingSource(std::span<const uint8_t> bytes, uint64_t* reads)
      : MemorySource(bytes), reads_(reads) {}
  absl::StatusOr<std::span<const uint8_t>> Read(uint64_t offset, size_t length) override {
    ++*reads_;
    return MemorySource::Read(offset, length);
  }

 private:
  uint64_t* reads_;
};

// Where the index would have a cursor begin; 0 when it is none.
uint64_t SeekIn(const TraceLayout& layout, std::span<const uint8_t> stream,
                std::span<const uint8_t> index, int64_t begin_ns, uint64_t* reads = nullptr) {
  uint64_t ignored = 0;
  auto opened = PacketIndex::Open(std::make_unique<MemorySource>(index));
  if (!opened.ok()) return 0;
  CountingSource source(stream, reads == nullptr ? &ignored : reads);
  return IndexedStream(layout, source, *opened).Seek(begin_ns).value();
}

struct Window {
  std::vector<EventRecord> records;
  std::vector<Loss> losses;
};

Window ReadWindow(std::shared_ptr<const TraceLayout> layout, std::span<const uint8_t> stream,
                  CursorRange range) {
  Window window;
  auto cursor = MakeCursor(std::move(layout), std::make_unique<MemorySource>(stream), {}, range);
  for (auto batch = *cursor->NextBatch(); !batch.empty(); batch = *cursor->NextBatch()) {
    window.records.insert(window.records.end(), batch.begin(), batch.end());
  }
  window.losses.assign(cursor->losses().begin(), cursor->losses().end());
  return window;
}

bool SameRecords(const std::vector<EventRecord>& a, const std::vector<EventRecord>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const EventRecord& x, const EventRecord& y) {
                      return x.time_ns == y.time_ns && x.bytes == y.bytes;
                    });
}

std::vector<EventRecord> Cut(const std::vector<EventRecord>& all, int64_t begin_ns,
                             int64_t end_ns) {
  std::vector<EventRecord> cut;
  std::copy_if(all.begin(), all.end(), std::back_inserter(cut), [&](const EventRecord& record) {
    return record.time_ns >= begin_ns && record.time_ns < end_ns;
  });
  return cut;
}

TEST(PacketIndexTest, AWindowHoldsWhatCuttingTheWholeLeaves) {
  const auto layout = GeneratedLayout();
  const GeneratedStream stream = SmallStream();
  const std::vector<EventRecord> all = ReadWindow(layout, stream.bytes, {}).records;
  ASSERT_EQ(all.size(), stream.events);
  const int64_t first = all.front().time_ns;
  const int64_t last = all.back().time_ns;
  uint64_t skipping = 0;
  for (int64_t i = -1; i <= 60; ++i) {
    for (const int64_t length : {int64_t{1}, (last - first) / 50, last - first}) {
      // Now and then exactly at an event, where packets meet.
      const int64_t begin = i >= 0 && i % 3 == 0 ? all[static_cast<size_t>(i * 66)].time_ns
                                                 : first + i * ((last - first) / 60);
      const uint64_t from = SeekIn(*layout, stream.bytes, stream.index, begin);
      skipping += from > 0;
      const Window found =
          ReadWindow(layout, stream.bytes, {begin, begin + length, from, UINT64_MAX});
      EXPECT_TRUE(SameRecords(found.records, Cut(all, begin, begin + length)))
          << "from " << begin - first << " for " << length << ", read from byte " << from;
      EXPECT_TRUE(found.losses.empty());
    }
  }
  EXPECT_GT(skipping, 150u);  // or nothing was tested
}

TEST(PacketIndexTest, WhatIsReadToFindAWindowHardlyGrowsWithTheStream) {
  const auto layout = GeneratedLayout();
  uint64_t reads[2] = {};
  for (const size_t longer : {0, 1}) {
    const GeneratedStream stream = GenerateStream(
        {.events_per_stream = longer == 0 ? 20'000u : 320'000u, .packet_bytes = 4096}, 7);
    const int64_t middle = 1'000'000'000 + (longer == 0 ? 10'000'000 : 160'000'000);
    EXPECT_GT(SeekIn(*layout, stream.bytes, stream.index, middle, &reads[longer]),
              stream.bytes.size() / 3);
  }
  EXPECT_EQ(reads[0], reads[1]);  // headers are read only where the window begins
  EXPECT_GT(reads[0], 0u);
}

TEST(PacketIndexTest, AWrongIndexLosesNothing) {
  const auto layout = GeneratedLayout();
  const GeneratedStream stream =
      GenerateStream({.events_per_stream = 900, .packet_bytes = 4096}, 7);
  const std::vector<EventRecord> all = ReadWindow(layout, stream.bytes, {}).records;
  const int64_t begin = all[600].time_ns;
  const std::vector<EventRecord> expected = Cut(all, begin, kUnknownHi);
  uint64_t believed = 0;
  uint64_t refused = 0;
  const auto check = [&](std::span<const uint8_t> index, size_t where) {
    const uint64_t from = SeekIn(*layout, stream.bytes, index, begin);
    ++(from > 0 ? believed : refused);
    const Window found = ReadWindow(layout, stream.bytes, {begin, kUnknownHi, from, UINT64_MAX});
    ASSERT_TRUE(SameRecords(found.records, expected)) << "byte " << where << " of the index";
  };
  for (size_t i = 0; i < stream.index.size(); ++i) {
    for (const uint8_t flip : {0x01, 0x80, 0xff}) {
      std::vector<uint8_t> index = stream.index;
      index[i] ^= flip;
      check(index, i);
    }
    check({stream.index.data(), i}, i);
  }
  // One entry too few in front, and one too many: every offset is a packet's, none is the right
  // one.
  std::vector<uint8_t> shifted = stream.index;
  shifted.erase(shifted.begin() + 16, shifted.begin() + 16 + 72);
  check(shifted, 16);
  EXPECT_GT(believed, 0u);
  EXPECT_GT(refused, 0u);
}

// 100 ns each, before each of which 3 events were discarded.
std::vector<std::vector<uint8_t>> EightPackets() {
  std::vector<std::vector<uint8_t>> packets;
  for (uint64_t i = 0; i < 8; ++i) {
    packets.push_back(PacketBuilder(100 * i, 100 * i + 90, i, 3 * i)
                          .Number(100 * i + 10, 7)
                          .Id(100 * i + 90, 2)
                          .Close());
  }
  return packets;
}

TEST(PacketIndexTest, WhatWasDiscardedInAWindowIsToldAlike) {
  const auto layout = LayoutOf(kMetadata);
  const std::vector<uint8_t> bytes = Join(EightPackets());
  const std::vector<uint8_t> index = IndexOf(EightPackets());
  for (int64_t begin = 0; begin < 800; begin += 5) {
    const uint64_t from = SeekIn(*layout, bytes, index, begin);
    EXPECT_EQ(from > 0, begin > 290) << begin;
    const Window with = ReadWindow(layout, bytes, {begin, begin + 130, from, UINT64_MAX});
    const Window without = ReadWindow(layout, bytes, {begin, begin + 130});
    ASSERT_EQ(with.losses.size(), without.losses.size()) << begin;
    for (size_t i = 0; i < with.losses.size(); ++i) {
      EXPECT_EQ(with.losses[i].begin_ns, without.losses[i].begin_ns);
      EXPECT_EQ(with.losses[i].end_ns, without.losses[i].end_ns);
      EXPECT_EQ(with.losses[i].count, without.losses[i].count);
    }
  }
}

TEST(PacketIndexTest, AnIndexOfADamagedStreamLosesNothingThatIsFoundWithoutIt) {
  const auto layout = LayoutOf(kMetadata);
  const std::vector<uint8_t> sound = Join(EightPackets());
  const std::vector<uint8_t> index = IndexOf(EightPackets());
  constexpr int64_t kBegin = 505;
  ASSERT_GT(SeekIn(*layout, sound, index, kBegin), 0u);
  uint64_t believed = 0;
  for (size_t i = 0; i < sound.size(); ++i) {
    for (const uint8_t flip : {0x01, 0x80, 0xff}) {
      std::vector<uint8_t> bytes = sound;
      bytes[i] ^= flip;
      const uint64_t from = SeekIn(*layout, bytes, index, kBegin);
      believed += from > 0;
      const Window with = ReadWindow(layout, bytes, {kBegin, kUnknownHi, from, UINT64_MAX});
      const Window without = ReadWindow(layout, bytes, {kBegin, kUnknownHi});
      const auto by_place = [](const EventRecord& a, const EventRecord& b) {
        return a.bytes < b.bytes;
      };
      ASSERT_TRUE(std::includes(with.records.begin(), with.records.end(), without.records.begin(),
                                without.records.end(), by_place))
          << "byte " << i << " flipped by " << int{flip};
    }
  }
  EXPECT_GT(believed, sound.size());
}

struct ScratchTrace {
  std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / ("index_test_" + std::to_string(::getpid()));
  ~ScratchTrace() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

TEST(PacketIndexTest, TheReaderSaysTheSameOfAStreamWithAndWithoutItsIndex) {
  const ScratchTrace scratch;
  ASSERT_TRUE(GenerateTrace(scratch.path,
                            {.events_per_stream = 5000, .packet_bytes = 4096, .with_index = true})
                  .ok());
  const auto with = OpenTrace(scratch.path).value();
  const auto index = PacketIndex::OfStream(scratch.path / "channel0_1");
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->size(), with->streams()[1].packets);
  std::filesystem::remove_all(scratch.path / "index");
  const auto without = OpenTrace(scratch.path).value();
  ASSERT_EQ(with->streams().size(), without->streams().size());
  for (size_t i = 0; i < with->streams().size(); ++i) {
    const StreamInfo& a = with->streams()[i];
    const StreamInfo& b = without->streams()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.cpu, b.cpu);
    EXPECT_EQ(a.packets, b.packets);
    EXPECT_EQ(a.begin_ns, b.begin_ns);
    EXPECT_EQ(a.end_ns, b.end_ns);
  }
}

TEST(PacketIndexTest, AnIndexThatLttngWroteFitsItsStream) {
  const std::filesystem::path trace =
      "tests/golden/tensorflow_profile/run/nodes/worker-0/trace/ust/uid/0/64-bit";
  const auto layout = BuildLayout(LoadMetadata(trace).value()).value();
  const auto files = ListStreamFiles(trace);
  ASSERT_TRUE(files.ok()) << files.status();
  for (const std::filesystem::path& file : *files) {
    auto index = PacketIndex::OfStream(file);
    ASSERT_TRUE(index.has_value()) << file;
    const auto source = FileReader::Open(file).value();
    IndexedStream indexed(*layout, *source, *index);
    const auto extent = indexed.Extent().value();
    const StreamSummary summary = SummarizeStream(*layout, file).value();
    ASSERT_TRUE(extent.has_value()) << file;
    EXPECT_EQ(extent->packets, summary.packets);
    EXPECT_EQ(extent->begin_ns, summary.begin_ns);
    EXPECT_EQ(extent->end_ns, summary.end_ns);
    EXPECT_EQ(extent->beyond, 0u);
    EXPECT_EQ(indexed.Seek(summary.end_ns).value() > 0, summary.packets > 3) << file;
  }
}

TEST(PacketIndexTest, PacketsThatAreListedAndNotThereAreALoss) {
  const ScratchTrace scratch;
  ASSERT_TRUE(
      GenerateTrace(
          scratch.path,
          {.streams = 1, .events_per_stream = 5000, .packet_bytes = 4096, .with_index = true})
          .ok());
  const auto whole = OpenTrace(scratch.path).value()->streams()[0];
  // Cut where a packet ends: neither sizes nor sequence numbers can tell.
  std::filesystem::resize_file(scratch.path / "channel0_0", 3 * 4096);
  const auto cut = OpenTrace(scratch.path).value();
  EXPECT_EQ(cut->streams()[0].packets, 3u);
  ASSERT_EQ(cut->losses().size(), 1u);
  EXPECT_EQ(cut->losses()[0].reason, LossReason::kLostPackets);
  EXPECT_EQ(cut->losses()[0].count, whole.packets - 3);
  EXPECT_EQ(cut->losses()[0].begin_ns, cut->streams()[0].end_ns);
  EXPECT_EQ(cut->losses()[0].end_ns, whole.end_ns);
}

}  // namespace
}  // namespace syncline::ctf::testing
