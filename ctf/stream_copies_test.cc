// A stream that lies in a trace more than once is read once.
#include "ctf/stream_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "ctf/reader.h"
#include "ctf/test_trace.h"

namespace syncline::ctf::testing {
namespace {

using ::testing::ElementsAre;
using Packets = std::vector<std::vector<uint8_t>>;
using Strings = std::vector<std::string>;

class StreamCopiesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_ / "index");
    std::ofstream(directory_ / "metadata") << kMetadata;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::vector<uint8_t>& bytes) {
    std::ofstream(directory_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  // "stream: events"; and of copies "copy = original".
  Strings Read() {
    Strings found;
    const auto reader = OpenTrace(directory_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::map<std::string, int> events;
    const auto losses =
        (*reader)->Scan([&](EventCursor& cursor, std::span<const EventRecord> some) {
          events[cursor.stream().name] += static_cast<int>(some.size());
          return absl::OkStatus();
        });
    EXPECT_TRUE(losses.ok()) << losses.status();
    for (const StreamInfo& stream : (*reader)->streams()) {
      found.push_back(stream.name + ": " + std::to_string(events[stream.name]));
      const auto cursor = (*reader)->Open(stream.index);
      EXPECT_EQ((*cursor)->stream().name, stream.name);
      int in_order = 0;
      for (auto batch = (*cursor)->NextBatch(); !batch->empty(); batch = (*cursor)->NextBatch()) {
        in_order += static_cast<int>(batch->size());
      }
      EXPECT_EQ(in_order, events[stream.name]);
    }
    for (const TraceReader::Copy& copy : (*reader)->copies()) {
      found.push_back(copy.name + " = " + copy.original);
    }
    return found;
  }

  std::vector<uint8_t> One(uint64_t begin_ns, uint64_t sequence, uint64_t instance = 1) {
    constexpr size_t kInstanceAt = 24;
    auto bytes = PacketBuilder(begin_ns, begin_ns + 100, sequence).Number(begin_ns, 7).Close();
    bytes[kInstanceAt] = static_cast<uint8_t>(instance);
    return bytes;
  }

  std::filesystem::path directory_;
};

TEST_F(StreamCopiesTest, TheOneWithTheMostPacketsIsRead) {
  const Packets packets = {One(100, 0), One(200, 1), One(300, 2)};
  Write("a", packets[0]);  // saved before there was more
  Write("b", Join(packets));
  Write("b~", Join(packets));
  EXPECT_THAT(Read(), ElementsAre("b: 3", "a = b", "b~ = b"));
  Write("index/b.idx", IndexOf(packets));  // a way of its own to know when a stream begins
  EXPECT_THAT(Read(), ElementsAre("b: 3", "a = b", "b~ = b"));
}

TEST_F(StreamCopiesTest, OthersAreNoCopies) {
  Write("a", One(100, 0));
  Write("another instance", One(100, 0, 2));
  Write("later", One(200, 0));
  Write("next file of it", One(100, 1));
  Write("nothing", {});
  EXPECT_THAT(Read(), ElementsAre("a: 1", "another instance: 1", "later: 1", "next file of it: 1",
                                  "nothing: 0"));
}

TEST_F(StreamCopiesTest, PacketsThatDoNotSayWhoseTheyAreAreBelieved) {
  std::string metadata(kMetadata);
  metadata.replace(metadata.find("stream_instance_id"), 18, "whatever__________");
  std::ofstream(directory_ / "metadata") << metadata;
  Write("a", One(100, 0));
  Write("b", One(100, 0));
  EXPECT_THAT(Read(), ElementsAre("a: 1", "b: 1"));
}

}  // namespace
}  // namespace syncline::ctf::testing
