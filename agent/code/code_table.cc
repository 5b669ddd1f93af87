// SPDX-License-Identifier: Apache-2.0
#include "agent/code/code_table.h"

#include "evidence/code_samples.h"

namespace syncline::agent {

uint32_t CodeTable::ModuleOf(const CodeOwner& owner, const std::string& path, std::string* text) {
  // Generated code is each process's own, files those of all who see the same.
  const bool own = !path.starts_with('/');
  const std::pair key{own ? static_cast<uint64_t>(owner.pid) : owner.mounts, path};
  const auto [found, added] = module_ids_.try_emplace(key, modules_.size());
  if (added) {
    modules_.push_back({path, owner, {}, 0});
    evidence::AppendModule(path, text);
  }
  return found->second;
}

uint32_t CodeTable::FrameAt(uint32_t module, uint64_t offset, std::string* text) {
  const std::pair key{module, offset};
  if (const auto found = frame_ids_.find(key); found != frame_ids_.end()) return found->second;
  if (frame_ids_.size() >= kFramesMax) return UINT32_MAX;
  const auto frame = static_cast<uint32_t>(frame_ids_.size());
  frame_ids_.emplace(key, frame);
  module_of_frame_.push_back(module);
  modules_[module].frames.emplace_back(offset, frame);
  evidence::Append(evidence::CodeFrame{.module = module, .offset = offset}, text);
  return frame;
}

uint32_t CodeTable::Frame(const CodeOwner& owner, const MappedCode& code, uint64_t address,
                          std::string* text) {
  const uint64_t offset = code.is_file() ? address - code.begin + code.file_offset : address;
  return FrameAt(ModuleOf(owner, code.module, text), offset, text);
}

uint32_t CodeTable::KernelFrame(uint64_t address, std::string* text) {
  return FrameAt(ModuleOf({}, evidence::kKernelModule, text), address, text);
}

uint32_t CodeTable::UnknownFrame(uint64_t address, std::string* text) {
  return FrameAt(ModuleOf({}, evidence::kUnknownModule, text), address, text);
}

uint32_t CodeTable::Stack(const std::vector<uint32_t>& frames, std::string* text) {
  ++modules_[module_of_frame_[frames.front()]].samples;
  if (const auto found = stack_ids_.find(frames); found != stack_ids_.end()) return found->second;
  if (stack_ids_.size() >= kStacksMax) return UINT32_MAX;
  const auto stack = static_cast<uint32_t>(stack_ids_.size());
  stack_ids_.emplace(frames, stack);
  evidence::AppendStack(frames, text);
  return stack;
}

}  // namespace syncline::agent
