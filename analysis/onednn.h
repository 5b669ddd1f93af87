// SPDX-License-Identifier: Apache-2.0
// oneDNN's primitives, as its tasks and what it says of them have it: the line that its verbose
// mode prints, which PyTorch's oneDNN attaches to each task:
//
//   cpu,convolution,jit:avx512_core,forward_training,src:f32:a:blocked:abcd::f0 wei:f32:...,
//       attr-scratchpad:user,alg:convolution_direct,mb16_ic3oc64_...
//
// Of oneDNN 2, data stands as "src_f32::blocked:abcd:f0". Thread-safe: no state.
#ifndef SYNCLINE_ANALYSIS_ONEDNN_H_
#define SYNCLINE_ANALYSIS_ONEDNN_H_

#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace syncline::analysis {

// Primitives by the domain of their tasks, whatever they are called: made, and executed.
bool IsPrimitive(std::string_view domain);
// Whether it was executed. How often one is made depends on a cache, not on the work.
bool IsExecution(std::string_view domain);
// A primitive of this kind copies data into another layout or type.
bool IsReorder(std::string_view kind);

struct PrimitiveDescription {
  std::string kind;            // "convolution", "reorder"
  std::string implementation;  // "jit:avx512_core", "ref:any"
  std::string propagation;     // "forward_training"; empty: there is none
  std::string types;           // "f32"; "src bf16, wei bf16, dst f32" where they differ
  std::string layouts;     // "src abcd, wei ABcd16b16a, dst aBcd16b"; of a reorder "abcd → acdb"
  std::string shapes;      // "mb16_ic3oc64_...", "64x32x8x8"
  std::string algorithm;   // "alg:convolution_direct"; empty: none is named
  std::string attributes;  // "attr-fpmath:bf16"; without who keeps the scratchpad
  friend auto operator<=>(const PrimitiveDescription&, const PrimitiveDescription&) = default;
};

// nullopt: it is no such line, or not of a CPU.
std::optional<PrimitiveDescription> ParsePrimitive(std::string_view line);

// What of it is the work: without how oneDNN does it (implementation, layouts).
PrimitiveDescription WorkAlone(PrimitiveDescription description);

// That the implementation is called by ("avx512_core_amx"); empty: by none.
std::string_view InstructionSetOf(std::string_view implementation);
// Which instruction set of x86 is lower: by its place, the lowest first; nullopt: not known. Two
// names of one set have one place. oneDNN orders avx2's extensions and avx512_core in two branches:
// here the narrower vectors are lower.
std::optional<size_t> InstructionSetPlace(std::string_view set);
// It is one of those that oneDNN has for being right, not for being fast: "ref:any".
bool IsReference(std::string_view implementation);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_ONEDNN_H_
