// SPDX-License-Identifier: Apache-2.0
// Looks for names that should have been replaced: in every byte of what is about to be sent.
//
// Names of at least 8 bytes are found anywhere. Shorter ones, down to 4 bytes, are found where they
// are a word of their own, because some bytes of a clock reading may spell them; in files of
// numbers they must also end with a NUL, as all texts there do. Not looked for are names that are
// also words of the formats ("bytes"), numbers, and parts of names that are kept ("softmax").
//
// Thread-safety: immutable after construction.
#ifndef SYNCLINE_COORDINATOR_PACK_LEFTOVERS_H_
#define SYNCLINE_COORDINATOR_PACK_LEFTOVERS_H_

#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace syncline::pack {

class Leftovers {
 public:
  using Names = std::map<std::string, std::string, std::less<>>;  // name -> what it is
  using Texts = std::set<std::string, std::less<>>;

  Leftovers(const Names& originals, const Texts& kept, const Texts& words);

  // What the first name that is left in `bytes` is, and it: host ("gpu-7"); nullopt: there is none.
  std::optional<std::string> Find(std::string_view bytes, bool numbers) const;
  // How many names are looked for, and how many are not, because they are words of other things.
  size_t sought() const { return kinds_.size(); }
  size_t ambiguous() const { return ambiguous_; }

 private:
  using OnHit = std::function<bool(const std::string& name)>;  // false: stop
  void Scan(std::string_view bytes, bool numbers, const OnHit& on_hit) const;

  static constexpr size_t kShortest = 4;
  static constexpr size_t kAnywhere = 8;
  std::map<std::string, std::string> kinds_;
  std::unordered_map<uint32_t, std::vector<std::string>> by_begin_;  // by their first four bytes
  std::bitset<size_t{1} << 16> begins_;
  size_t ambiguous_ = 0;
};

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_LEFTOVERS_H_
