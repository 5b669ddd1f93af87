// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto/stack_table.h"

#include <string_view>

#include "export/perfetto/fields.h"

namespace syncline::perfetto {
namespace {

void PutText(uint32_t field, uint64_t iid, std::string_view text, ProtoWriter* interned) {
  ProtoWriter entry;
  entry.Varint(interned::kIid, iid);
  entry.Bytes(interned::kText, text);
  interned->Message(field, entry);
}

}  // namespace

uint64_t StackTable::InternFrame(const timeline::CodeFrame& frame,
                                 const std::vector<std::string>& texts, ProtoWriter* interned) {
  const auto [known, added] = frames_.try_emplace(frame, frames_.size() + 1);
  if (!added) return known->second;
  ProtoWriter entry;
  entry.Varint(interned::kIid, known->second);
  if (functions_.Add(frame.function)) {
    PutText(interned::kFunctionName, frame.function, texts[frame.function], interned);
  }
  entry.Varint(frame::kFunctionIid, frame.function);
  if (libraries_.Add(frame.library)) {
    // Readers put a slash before each part of a path.
    const std::string_view path = texts[frame.library];
    PutText(interned::kMappingPath, frame.library, path.starts_with('/') ? path.substr(1) : path,
            interned);
    ProtoWriter library;
    library.Varint(interned::kIid, frame.library);
    library.Varint(mapping::kPathIid, frame.library);
    interned->Message(interned::kMapping, library);
  }
  entry.Varint(frame::kMappingIid, frame.library);
  if (frame.file != timeline::kNoText) {
    if (files_.Add(frame.file)) {
      PutText(interned::kSourcePath, frame.file, texts[frame.file], interned);
    }
    entry.Varint(frame::kSourcePathIid, frame.file);
    entry.Varint(frame::kLine, static_cast<uint64_t>(frame.line));
  }
  interned->Message(interned::kFrame, entry);
  return known->second;
}

uint64_t StackTable::Intern(const std::vector<timeline::CodeFrame>& stack,
                            const std::vector<std::string>& texts, ProtoWriter* interned) {
  const auto [known, added] = stacks_.try_emplace(stack, stacks_.size() + 1);
  if (!added) return known->second;
  ProtoWriter entry;
  entry.Varint(interned::kIid, known->second);
  for (const timeline::CodeFrame& frame : stack) {
    entry.Varint(callstack::kFrameIid, InternFrame(frame, texts, interned));
  }
  interned->Message(interned::kCallstack, entry);
  return known->second;
}

}  // namespace syncline::perfetto
