// SPDX-License-Identifier: Apache-2.0
#include "analysis/primitives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kConvolution[] =
    "cpu,convolution,jit:avx512_core,forward_training,src:f32:a:blocked:aBcd16b::f0 "
    "wei:f32:a:blocked:ABcd16b16a::f0 bia:undef::undef::: dst:f32:a:blocked:aBcd16b::f0,"
    "attr-scratchpad:user,alg:convolution_direct,mb64_ic32oc64_ih8oh8kh3sh1dh0ph1_iw8ow8kw3";
constexpr char kReorder[] =
    "cpu,reorder,jit:blk,undef,src:f32::blocked:abcd::f0 dst:bf16::blocked:aBcd16b::f0,"
    "attr-scratchpad:user,,64x32x8x8";

TEST(OneDnn, ReadsWhatAPrimitiveIs) {
  const auto convolution = ParsePrimitive(kConvolution);
  ASSERT_TRUE(convolution.has_value());
  EXPECT_EQ(convolution->kind, "convolution");
  EXPECT_EQ(convolution->implementation, "jit:avx512_core");
  EXPECT_EQ(convolution->propagation, "forward_training");
  EXPECT_EQ(convolution->types, "f32");
  EXPECT_EQ(convolution->layouts, "src aBcd16b, wei ABcd16b16a, dst aBcd16b");
  EXPECT_EQ(convolution->shapes, "mb64_ic32oc64_ih8oh8kh3sh1dh0ph1_iw8ow8kw3");
  const auto reorder = ParsePrimitive(kReorder);
  ASSERT_TRUE(reorder.has_value());
  EXPECT_EQ(reorder->propagation, "");
  EXPECT_EQ(reorder->types, "f32 → bf16");
  EXPECT_EQ(reorder->layouts, "abcd → aBcd16b");
  EXPECT_EQ(reorder->shapes, "64x32x8x8");
}

TEST(OneDnn, ReadsOlderVersions) {
  const auto matmul = ParsePrimitive(
      "cpu,matmul,brg:avx512_core_amx,undef,src_bf16::blocked:ab:f0 "
      "wei_bf16::blocked:BA16a64b4a:f0 "
      "dst_f32::any:f0,attr-scratchpad:user ,,128x256:256x512");
  ASSERT_TRUE(matmul.has_value());
  EXPECT_EQ(matmul->types, "src bf16, wei bf16, dst f32");
  EXPECT_EQ(matmul->layouts, "src ab, wei BA16a64b4a, dst any");
  EXPECT_EQ(matmul->shapes, "128x256:256x512");
  const auto rnn = ParsePrimitive(
      "cpu,rnn,brgemm:avx2,forward_training,src_layer:f32:a:blocked:tnc::f0,,,l1t16mb8");
  ASSERT_TRUE(rnn.has_value());
  EXPECT_EQ(rnn->layouts, "src_layer tnc");
}

TEST(OneDnn, LeavesOutWhatIsNoDescription) {
  for (const char* line : {"", "reorder", "a,b,c,d,e", ",,,,", "cpu,,x,y,src:f32::blocked:a::f0",
                           "cpu,reorder,jit:uni,undef", "cpu,reorder,jit:uni,undef,:::"}) {
    const auto said = ParsePrimitive(line);
    EXPECT_TRUE(!said.has_value() || said->types.empty()) << line;
  }
}

TEST(OneDnn, NamesInstructionSets) {
  EXPECT_EQ(InstructionSetOf("jit:avx512_core"), "avx512_core");
  EXPECT_EQ(InstructionSetOf("jit_1x1:avx2"), "avx2");
  EXPECT_EQ(InstructionSetOf("brg_conv_bwd:avx512_core+brg_conv_fwd:avx512_core"), "avx512_core");
  EXPECT_EQ(InstructionSetOf("jit:uni"), "");
  EXPECT_TRUE(IsReference("ref:any"));
  EXPECT_FALSE(IsReference("gemm:jit"));
}

class PrimitiveSinkTest : public ::testing::Test {
 protected:
  PrimitiveSinkTest() {
    Process(1, "rank 0");
    Process(3, "rank 1");
    Thread(kHelper, 1);
  }
  // With one thread, whose track has the next number.
  void Process(timeline::TrackId id, const char* name) {
    timeline::Track track;
    track.id = id;
    track.kind = timeline::TrackKind::kProcess;
    track.name = name;
    sink_.OnTrack(track);
    Thread(id + 1, id);
  }
  void Thread(timeline::TrackId id, timeline::TrackId process) {
    timeline::Track track;
    track.id = id;
    track.parent = process;
    track.kind = timeline::TrackKind::kThread;
    sink_.OnTrack(track);
  }
  timeline::TextId Text(const std::string& text) {
    const auto [known, added] = texts_.try_emplace(text, texts_.size() + 1);
    if (added) sink_.OnText(known->second, text);
    return known->second;
  }
  void Ends(const char* domain, const char* name, uint16_t depth, int64_t begin_ns, int64_t end_ns,
            const char* description = nullptr, bool suspect = false) {
    timeline::Span span;
    span.track = thread_;
    span.category = Text(domain);
    span.name = Text(name);
    span.depth = depth;
    span.begin = {begin_ns};
    span.end = {end_ns};
    span.self_ns = end_ns - begin_ns;
    span.suspect = suspect;
    if (description != nullptr) {
      timeline::Argument argument;
      argument.key = Text("%s");
      argument.kind = timeline::Argument::Kind::kText;
      argument.text = Text(description);
      span.arguments.push_back(argument);
    }
    sink_.OnSpanEnd(span);
  }
  void Runs(const char* name, uint16_t depth, int64_t begin_ns, int64_t end_ns,
            const char* description = nullptr) {
    Ends("dnnl::primitive::execute", name, depth, begin_ns, end_ns, description);
  }

  static constexpr timeline::TrackId kHelper = 9;  // of rank 0
  timeline::TrackId thread_ = 2;
  PrimitiveSink sink_;
  std::map<std::string, timeline::TextId> texts_;
};

TEST_F(PrimitiveSinkTest, UnderTheInnermostTask) {
  Ends("dnnl::primitive::create", "convolution", 2, 10, 15);
  Runs("reorder", 2, 20, 30, kReorder);
  Runs("convolution", 2, 30, 70, kConvolution);
  Ends("PyTorch", "aten::mkldnn_convolution", 1, 5, 80);
  Ends("PyTorch", "aten::conv2d", 0, 0, 90);
  Runs("reorder", 1, 110, 120, kReorder);
  Ends("python", "garbage collection", 1, 125, 126);
  Ends("PyTorch", "aten::to_dense", 0, 100, 130);
  thread_ = kHelper;
  Runs("convolution", 0, 35, 65, kConvolution);
  Runs("reorder", 0, 65, 66, kReorder);
  const PrimitiveReport report = sink_.Take();
  ASSERT_THAT(report.totals, SizeIs(3));
  EXPECT_EQ(report.totals[0].task, "aten::mkldnn_convolution");
  EXPECT_EQ(report.totals[0].what.kind, "convolution");
  EXPECT_EQ(report.totals[0].total_ns, 40);
  ASSERT_THAT(report.reorders, SizeIs(2));
  for (const ReorderTotal& reorder : report.reorders) {
    EXPECT_EQ(reorder.total_ns, 10);
    const bool first = reorder.task == "aten::mkldnn_convolution";
    EXPECT_EQ(reorder.before, first ? "" : "aten::mkldnn_convolution");
    EXPECT_EQ(reorder.after, first ? "aten::mkldnn_convolution" : "");
  }
  ASSERT_THAT(report.processes, SizeIs(1));
  const PrimitiveProcess& process = report.processes[0];
  EXPECT_EQ(process.name, "rank 0");
  EXPECT_EQ(process.calls, 3U);
  EXPECT_EQ(process.total_ns, 60);
  EXPECT_EQ(process.reorder_ns, 20);
  EXPECT_EQ(process.by_set_ns.at("avx512_core"), 40);
  EXPECT_EQ(process.helper_parts, 2U) << "the thread has no other tasks";
  EXPECT_EQ(process.made, 1U);
  EXPECT_EQ(process.make_ns, 5);
  EXPECT_THAT(report.differences, IsEmpty());
}

// What ran before and after is told by the order on the thread, not by when tasks end.
TEST_F(PrimitiveSinkTest, BetweenWhichPrimitivesAReorderRan) {
  Runs("matmul", 1, 10, 20, kConvolution);  // its description is another's: by its kind alone
  Ends("PyTorch", "first", 0, 0, 30);
  Runs("reorder", 1, 50, 60, kReorder);
  Runs("convolution", 2, 70, 80, kConvolution);
  Ends("PyTorch", "inner", 1, 65, 85);
  Ends("PyTorch", "outer", 0, 40, 90);
  const PrimitiveReport report = sink_.Take();
  ASSERT_THAT(report.reorders, SizeIs(1));
  EXPECT_EQ(report.reorders[0].task, "outer");
  EXPECT_EQ(report.reorders[0].before, "first");
  EXPECT_EQ(report.reorders[0].after, "inner");
  EXPECT_EQ(report.processes[0].not_described, 1U);
}

TEST_F(PrimitiveSinkTest, LeavesOutWhatIsNotWhole) {
  Ends("dnnl::primitive::execute", "convolution", 1, 10, 20, kConvolution, true);
  Ends("PyTorch", "step 3", 0, 0, 30);
  const PrimitiveReport report = sink_.Take();
  EXPECT_THAT(report.totals, IsEmpty());
  EXPECT_EQ(report.processes[0].not_whole, 1U);
  EXPECT_EQ(report.processes[0].calls, 0U);
}

// As TensorFlow's are: whether a thread helps another one is not known.
TEST_F(PrimitiveSinkTest, InNoTasksAnywhere) {
  Runs("matmul", 0, 0, 10);
  thread_ = kHelper;
  Runs("matmul", 0, 0, 9);
  const PrimitiveReport report = sink_.Take();
  ASSERT_THAT(report.totals, SizeIs(1));
  EXPECT_EQ(report.totals[0].calls, 2U);
  EXPECT_EQ(report.totals[0].task, "");
  EXPECT_EQ(report.processes[0].not_described, 2U);
  EXPECT_EQ(report.processes[0].helper_parts, 0U);
}

TEST_F(PrimitiveSinkTest, SameWorkInOtherImplementations) {
  std::string slow = kConvolution;
  slow.replace(slow.find("avx512_core"), 11, "avx2");
  slow.replace(slow.find("aBcd16b"), 7, "aBcd8b");
  Runs("convolution", 1, 0, 10, kConvolution);
  Ends("PyTorch", "conv 1", 0, 0, 10);
  thread_ = 4;
  Runs("convolution", 1, 0, 30, slow.c_str());
  Ends("PyTorch", "conv 2", 0, 0, 30);
  const PrimitiveReport report = sink_.Take();
  ASSERT_THAT(report.differences, SizeIs(1));
  const ImplementationDifference& difference = report.differences[0];
  EXPECT_EQ(difference.task, "conv #");
  EXPECT_EQ(difference.total_ns, 40);
  ASSERT_THAT(difference.sides, SizeIs(2));
  EXPECT_THAT(difference.sides[0].implementations, ElementsAre("jit:avx2"));
  EXPECT_THAT(difference.sides[0].processes, ElementsAre("rank 1"));
  EXPECT_THAT(difference.sides[1].processes, ElementsAre("rank 0"));
}

}  // namespace
}  // namespace syncline::analysis
