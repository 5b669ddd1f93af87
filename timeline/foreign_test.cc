// SPDX-License-Identifier: Apache-2.0
// What is shown of events of other providers: every field, by the name of its place.
#include <gmock/gmock.h>

#include "ctf/reader.h"
#include "ctf/test_directory.h"
#include "timeline/builder.h"
#include "timeline/placement.h"
#include "timeline/testing/dump_sink.h"

namespace syncline::timeline {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kMoves = R"(/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
trace { major = 1; minor = 8; byte_order = le; };
stream { event.context := struct { u8 vtid; u8 budget; }; };
struct pair { u8 x; u8 y; };
event { name = "app:move"; fields := struct {
  struct pair from; struct pair to; u8 n; u8 list[n]; struct pair path[2];
  enum : integer { size = 8; align = 8; signed = true; } { OK = 0 } code; }; };
)";

class ForeignTest : public ctf::testing::TraceDirectoryTest {};

TEST_F(ForeignTest, FieldsOfStructsAndArraysAndContextsKeepTheirNames) {
  std::ofstream(directory_ / "metadata") << kMoves;
  Write("s", {7, 99, 1, 2, 3, 4, 2, 9, 8, 5, 6, 7, 8, 0xfe});
  const auto reader = ctf::OpenTrace(directory_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto placement = ShiftPlacement({0}, 0);
  NodeInput node;
  node.name = "a";
  node.readers = {reader->get()};
  node.placement = placement.get();
  testing::DumpSink sink;
  TimelineSink* const sinks[] = {&sink};
  ASSERT_TRUE(BuildTimeline({&node, 1}, {}, sinks).ok());
  EXPECT_THAT(sink.text(), HasSubstr("context/budget=99 from.x=1 from.y=2 to.x=3 to.y=4 n=2 list=9 "
                                     "list=8 path.x=5 path.x=7 path.y=6 path.y=8 code=-2\n"));
  EXPECT_THAT(sink.text(), HasSubstr("tid=7"));
}

}  // namespace
}  // namespace syncline::timeline
