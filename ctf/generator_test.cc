// SPDX-License-Identifier: Apache-2.0
// The generator's own sums against what decoding finds: a check of both.
#include "ctf/generator.h"

#include <gtest/gtest.h>

#include <memory>

#include "ctf/reader.h"

namespace syncline::ctf {
namespace {

TEST(GeneratorTest, DecodingFindsEveryEventAndTheSumOfAllFields) {
  const auto layout = BuildLayout(ParseMetadata(GeneratedMetadata()).value()).value();
  // Gaps above 134 ms make full timestamps, many packets make boundaries.
  const GeneratorOptions options{
      .events_per_stream = 20'000, .packet_bytes = 8192, .gap_ns_mean = 100'000'000};
  const GeneratedStream stream = GenerateStream(options, 3);
  auto cursor = MakeCursor(layout, std::make_unique<MemorySource>(stream.bytes), {});
  uint64_t events = 0;
  uint64_t sum = 0;
  std::vector<FieldValue> values;
  for (auto batch = cursor->NextBatch(); !batch->empty(); batch = cursor->NextBatch()) {
    for (const EventRecord& record : *batch) {
      ++events;
      ASSERT_TRUE(cursor->Decode(record, &values));
      for (const FieldValue& value : values) {
        // Structs and arrays hold no value of their own; an array's elements follow it.
        if (value.type != FieldType::kArray) sum += value.u + value.text.size();
      }
    }
  }
  EXPECT_EQ(events, stream.events);
  EXPECT_EQ(sum, stream.sum);
  EXPECT_TRUE(cursor->losses().empty());
}

}  // namespace
}  // namespace syncline::ctf
