// SPDX-License-Identifier: Apache-2.0
// Looks for names that should have been replaced: in every byte of what is about to be sent.
//
// Looked for are names of at least 4 bytes that have a letter, or are addresses; numbers stay
// numbers. One of 8 bytes or more is found anywhere. A shorter one is found where it is a word of
// its own, because bytes of a clock reading may spell it; in files of numbers a NUL must also stand
// behind it, as behind all texts there. What is a word of a format or of a public name
// (IsVocabulary()) is passed over: it would be found in each pack.
//
// Thread-safety: immutable after construction.
#ifndef SYNCLINE_COORDINATOR_PACK_LEFTOVERS_H_
#define SYNCLINE_COORDINATOR_PACK_LEFTOVERS_H_

#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace syncline::pack {

class Leftovers {
 public:
  explicit Leftovers(const std::set<std::string, std::less<>>& originals);

  // The first name that is left in `bytes`; nullopt: there is none. `numbers`: a file of numbers.
  std::optional<std::string> Find(std::string_view bytes, bool numbers) const;
  // How many names are looked for.
  size_t sought() const { return sought_; }
  // The longest of them: a file that is looked through in pieces has pieces that overlap so far.
  size_t longest() const { return longest_; }

 private:
  std::unordered_map<uint32_t, std::vector<std::string>> by_begin_;  // by their first four bytes
  std::bitset<size_t{1} << 16> begins_;
  size_t sought_ = 0;
  size_t longest_ = 0;
};

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_LEFTOVERS_H_
