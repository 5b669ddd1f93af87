// SPDX-License-Identifier: Apache-2.0
// A real recording's trace (tests/golden/tensorflow_workers), and files made here.
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/files.h"
#include "control_block/block_file.h"
#include "coordinator/pack/redact_files.h"
#include "ctf/metadata.h"
#include "ctf/reader.h"
#include "evidence/evidence.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "instrumentation/abi/control_block.h"

namespace syncline::pack {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::Not;

const char* const kTrace =
    "tests/golden/tensorflow_workers/run/nodes/worker-0/trace/ust/uid/0/64-bit";

std::span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Sink Into(std::string* text) {
  return [text](std::span<const uint8_t> bytes) {
    text->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return absl::OkStatus();
  };
}

// Events by time, class and numbers; and all texts.
struct Contents {
  std::vector<std::string> events;
  std::set<std::string> texts;
};

Contents ContentsOf(const ctf::Metadata& metadata, std::string_view stream) {
  Contents contents;
  auto layout = ctf::BuildLayout(std::make_shared<ctf::Metadata>(metadata));
  EXPECT_TRUE(layout.ok()) << layout.status();
  const auto cursor =
      ctf::MakeCursor(*layout, std::make_unique<ctf::MemorySource>(BytesOf(stream)), {});
  std::vector<FieldValue> values;
  for (;;) {
    const auto batch = cursor->NextBatch();
    if (!batch.ok() || batch->empty()) break;
    for (const EventRecord& record : *batch) {
      EXPECT_TRUE(cursor->Decode(record, &values));
      std::string event = std::to_string(record.time_ns) + " " + record.event_class->name;
      for (const FieldValue& value : values) {
        if (value.type == FieldType::kString) {
          contents.texts.emplace(value.text);
        } else {
          event += " " + std::to_string(value.u);
        }
      }
      contents.events.push_back(event);
    }
  }
  return contents;
}

TEST(RedactTrace, OfARealRecordingKeepsNumbersAndNoText) {
  Pseudonyms names(1);
  const auto metadata = ctf::LoadMetadata(kTrace);
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  const auto made = RedactMetadata(**metadata, &names);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto again = ctf::ParseMetadata(*made);
  ASSERT_TRUE(again.ok()) << again.status();
  const auto layout = ctf::BuildLayout(*metadata);
  ASSERT_TRUE(layout.ok());
  size_t texts = 0;
  for (const char* stream : {"syncline_0", "syncline_1"}) {
    const auto bytes = ReadFile(fs::path(kTrace) / stream);
    ASSERT_TRUE(bytes.ok());
    ctf::MemorySource source(BytesOf(*bytes));
    std::string redacted;
    const absl::Status status = RedactStream(*layout, &source, &names, Into(&redacted));
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(redacted.size(), bytes->size());
    const Contents before = ContentsOf(**metadata, *bytes);
    const Contents after = ContentsOf(**again, redacted);
    EXPECT_EQ(before.events, after.events);
    EXPECT_EQ(before.texts.size(), after.texts.size());
    for (const std::string& text : before.texts) {
      if (names.originals().count(text) == 0 || text.size() < 4) continue;
      ++texts;
      EXPECT_THAT(redacted, Not(HasSubstr(text)));
    }
  }
  EXPECT_GT(texts, 0u) << "there is something to replace";
  for (const auto& [key, value] : (*metadata)->environment) {
    if (key == "hostname" || key.ends_with("name") || key.ends_with("datetime")) {
      if (key == "tracer_name") continue;
      EXPECT_THAT(*made, Not(HasSubstr(value))) << key;
    }
  }
  EXPECT_THAT(*made, Not(HasSubstr((*metadata)->clocks.front().uuid)));
  EXPECT_TRUE(names.status().ok()) << names.status();
}

// Hole 8 of an earlier attempt: product_uuid stayed.
TEST(RedactTrace, TheEnvironmentHoldsOnlyWhatIsListed) {
  Pseudonyms names(1);
  const auto metadata = ctf::LoadMetadata(kTrace);
  ASSERT_TRUE(metadata.ok());
  ctf::Metadata more = **metadata;
  more.environment["product_uuid"] = "4c4c4544-0042-3510-8052-b4c04f4d3132";
  more.environment["procname"] = "acme_train";
  more.environment["acme_fact"] = "acme";
  more.environment["vpid"] = "acme";
  const auto made = RedactMetadata(more, &names);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(*made, Not(HasSubstr("acme")));
  EXPECT_THAT(*made, Not(HasSubstr("product")));
  EXPECT_THAT(*made, Not(HasSubstr("4c4c4544")));
}

TEST(RedactTrace, EventsOfOthersAreRefused) {
  Pseudonyms names(1);
  const auto metadata = ctf::LoadMetadata(kTrace);
  ASSERT_TRUE(metadata.ok());
  ctf::Metadata other = **metadata;
  other.streams.front().events.front().name = "acme:begin";
  EXPECT_EQ(RedactMetadata(other, &names).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(RedactMetadata(other, &names).status().message()),
              HasSubstr("\"acme:begin\" is not of Syncline's own events"));
  other = **metadata;
  other.clocks.front().name = "acme";
  EXPECT_EQ(RedactMetadata(other, &names).status().code(), absl::StatusCode::kUnimplemented);
}

// Nobody writes such metadata by accident; a text that is no field of an event would stay.
TEST(RedactTrace, TextsInOtherPlacesThanOursAreRefused) {
  Pseudonyms names(1);
  const auto metadata = ctf::LoadMetadata(kTrace);
  ASSERT_TRUE(metadata.ok());
  const auto with = [](const ctf::TypePtr& to, ctf::Type type) {
    auto made = std::make_shared<ctf::Type>(*to);
    made->members.push_back({"text", std::make_shared<ctf::Type>(std::move(type)), {}});
    return made;
  };
  ctf::Type text;
  text.kind = ctf::TypeKind::kString;
  text.alignment = 8;
  ctf::Type byte;
  byte.alignment = 8;
  byte.size_bits = 8;
  const auto array_of = [](const ctf::Type& element) {
    ctf::Type array;
    array.kind = ctf::TypeKind::kArray;
    array.length = 4;
    array.element = std::make_shared<ctf::Type>(element);
    return array;
  };
  const auto refused = [&](const ctf::Metadata& other) {
    EXPECT_EQ(RedactMetadata(other, &names).status().code(), absl::StatusCode::kUnimplemented);
  };
  ctf::Metadata other = **metadata;
  other.packet_header = with(other.packet_header, text);
  refused(other);
  other = **metadata;
  other.streams.front().packet_context = with(other.streams.front().packet_context, text);
  refused(other);
  for (const ctf::Type& array : {array_of(text), array_of(byte)}) {
    other = **metadata;
    ctf::EventType& event = other.streams.front().events.front();
    event.payload = with(event.payload, array);
    refused(other);
  }
  other = **metadata;
  ctf::EventType& event = other.streams.front().events.front();
  event.payload = with(event.payload, text);
  EXPECT_TRUE(RedactMetadata(other, &names).ok()) << "there our own texts are";
}

TEST(RedactTrace, ADamagedStreamIsRefused) {
  Pseudonyms names(1);
  const auto layout = ctf::BuildLayout(*ctf::LoadMetadata(kTrace));
  ASSERT_TRUE(layout.ok());
  std::string bytes = *ReadFile(fs::path(kTrace) / "syncline_0");
  bytes.resize(bytes.size() - 100);
  ctf::MemorySource source(BytesOf(bytes));
  std::string redacted;
  EXPECT_FALSE(RedactStream(*layout, &source, &names, Into(&redacted)).ok());
}

TEST(RedactBlock, HoldsNumbersAndNoText) {
  syncline_block block = {};
  std::memcpy(block.magic, SYNCLINE_BLOCK_MAGIC, sizeof block.magic);
  block.version = SYNCLINE_BLOCK_VERSION;
  block.header_bytes = sizeof block;
  block.pid = 26;
  block.uid = 48213;
  block.rank = 3;
  block.world_size = 8;
  block.thread_slots_used = 1;
  std::strcpy(block.job, "acme job");
  std::strcpy(block.hostname, "r1i0n12");
  std::strcpy(block.boot_id, "617959ce-3f1f-45a8-9e52-71007814e8a2");
  std::strcpy(block.command_line, "python train_acme.py");
  std::memcpy(block.reserved, "acme reserved", 13);
  std::memcpy(block.role + 2, "acme behind", 11);
  std::string bytes(reinterpret_cast<const char*>(&block), sizeof block);
  for (uint32_t i = 0; i < SYNCLINE_BLOCK_THREADS; ++i) {
    syncline_thread_slot slot = {};
    slot.thread_key = i + 1;
    slot.events = 7;
    std::strcpy(slot.name, "acme thread");
    bytes.append(reinterpret_cast<const char*>(&slot), sizeof slot);
  }
  Pseudonyms names(8);
  const auto made = RedactBlock(BytesOf(bytes), &names);
  ASSERT_TRUE(made.ok()) << made.status();
  for (const char* name : {"acme", "r1i0n12", "617959ce", "python", "train"}) {
    EXPECT_THAT(*made, Not(HasSubstr(name)));
  }
  const auto parsed = control_block::ParseBlock(BytesOf(*made));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->facts.id.pid, 26);
  EXPECT_EQ(parsed->facts.rank, 3);
  EXPECT_EQ(parsed->facts.uid, names.Uid(48213));
  ASSERT_EQ(parsed->threads.size(), 1u);
  EXPECT_EQ(parsed->threads[0].events, 7u);
  EXPECT_EQ(parsed->threads[0].name, names.Name("acme thread"));
  EXPECT_EQ(made->size(), bytes.size());
}

TEST(RedactBlock, WhoseSlotsLieElsewhereIsRefused) {
  syncline_block block = {};
  std::memcpy(block.magic, SYNCLINE_BLOCK_MAGIC, sizeof block.magic);
  block.version = SYNCLINE_BLOCK_VERSION;
  block.thread_slots_used = 1;
  syncline_thread_slot slot = {};
  slot.thread_key = 1;
  std::strcpy(slot.name, "acme thread");
  Pseudonyms names(1);
  // One bit: the name would lie where `lost` does.
  for (const uint32_t off : {0u, 32u}) {
    block.header_bytes = sizeof block + off;
    std::string bytes(reinterpret_cast<const char*>(&block), sizeof block);
    for (uint32_t i = 0; i < SYNCLINE_BLOCK_THREADS; ++i) {
      bytes.append(reinterpret_cast<const char*>(&slot), sizeof slot);
    }
    const auto made = RedactBlock(BytesOf(bytes), &names);
    EXPECT_EQ(made.ok(), off == 0);
    EXPECT_THAT(made.value_or(""), Not(HasSubstr("acme")));
    // A part is missing: all behind it lies before its place.
    bytes.erase(40, 20);
    EXPECT_FALSE(RedactBlock(BytesOf(bytes), &names).ok());
  }
}

TEST(RedactNames, KeepsIdsAndKinds) {
  syncline_names_header header = {};
  std::memcpy(header.magic, SYNCLINE_NAMES_MAGIC, sizeof header.magic);
  header.version = SYNCLINE_BLOCK_VERSION;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  uint32_t id = 0;
  for (const std::string text : {"PyTorch", "acme layer", "x", "aten::addmm", "layer"}) {
    const syncline_name_record record = {++id, static_cast<uint16_t>(text.size()), 2, 0};
    bytes.append(reinterpret_cast<const char*>(&record), sizeof record);
    bytes += text;
    bytes.append(1, '\0');
    bytes.resize((bytes.size() + 3) & ~size_t{3});
  }
  Pseudonyms names(2);
  const auto made = RedactNames(BytesOf(bytes), &names);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto table = control_block::ParseNames(BytesOf(*made));
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(table->size(), 5u);
  EXPECT_FALSE(table->damaged());
  EXPECT_EQ(made->size(), bytes.size());
  EXPECT_EQ(table->Text(1), "PyTorch");
  EXPECT_EQ(table->Text(2), names.Name("acme layer"));
  EXPECT_EQ(table->Text(4), "aten::addmm");
  EXPECT_THAT(*made, Not(HasSubstr("acme")));
  EXPECT_THAT(*made, Not(HasSubstr("layer")));
}

TEST(RedactEvidence, KeepsNumbersAndNoText) {
  const std::string text =
      "syncline-evidence 1\nG 2 =/acme/job%201\nL 2 =/acme/pod\nP 0 100 1 5 4026 26 48213 "
      "=acme_proc 0\n"
      "T 0 100 26 =acme%20main\nt 0 1 2 3 4 -1 D 6 88\nK 1300\nu 0 1 2 30 9 4096\ns 0 1 2 70 30\n"
      "B 0 0\nm 0 1 2 3 -1\nt 0 1 "
      "2 3 4 Q 5\n"
      "N =cannot%20read%20/acme\nX acme\nt acme 1\nP acme\nE\nT 0 1 1 =acme without an end";
  Pseudonyms names(2);
  std::string made;
  ASSERT_TRUE(RedactEvidence(text, &names, Into(&made)).ok());
  EXPECT_THAT(made, Not(HasSubstr("acme")));
  EXPECT_THAT(made, Not(HasSubstr("48213")));
  const auto before = evidence::ParseEvidence(text);
  const auto after = evidence::ParseEvidence(made);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->processes.size(), before->processes.size());
  EXPECT_EQ(after->threads.size(), before->threads.size());
  EXPECT_EQ(after->damaged_lines, before->damaged_lines);
  EXPECT_EQ(after->thread_samples.at(0).run_queue_ns, 4);
  EXPECT_EQ(after->thread_samples.at(0).state, 'D');
  EXPECT_EQ(after->thread_samples.at(0).major_faults, 6);
  EXPECT_EQ(after->thread_samples.at(0).minor_faults, 88);
  EXPECT_EQ(after->page_ns, 1300);
  EXPECT_THAT(made, Not(HasSubstr(" Q 5"))) << "a letter in the place of a number";
  EXPECT_EQ(before->memory_samples.size(), 1u);
  ASSERT_EQ(after->memory_samples.size(), 1u);
  EXPECT_EQ(after->memory_samples.at(0).full, 3);
  EXPECT_EQ(after->memory_groups.at(0).path, names.Plain("/acme/pod"));
  EXPECT_EQ(after->processes.at(0).memory_groups, before->processes.at(0).memory_groups);
  EXPECT_EQ(after->recorded_samples.at(0).threads, 9);
  EXPECT_EQ(after->recorded_samples.at(0).read_bytes, 4096);
  EXPECT_EQ(after->steal_samples.at(0).stolen_ns, 30);
  EXPECT_EQ(after->threads.at(0).name, names.Name("acme main"));
  EXPECT_EQ(after->processes.at(0).uid, names.Uid(48213));
  EXPECT_TRUE(after->ended);
}

}  // namespace
}  // namespace syncline::pack
