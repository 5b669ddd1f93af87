// SPDX-License-Identifier: Apache-2.0
// Looks for names that should have been replaced: in every byte of what is about to be sent.
//
// Looked for are names of at least 4 bytes that have a letter, or are addresses; numbers stay
// numbers. One of 8 bytes or more is found anywhere. A shorter one is found where it is a word of
// its own, because bytes of a clock reading may spell it. In a file of numbers (a stream of a
// trace) it must also have 6 bytes or more, and a NUL behind it as all texts there: gigabytes of
// clock readings spell each word of four letters. What is a word of a format or of a public name
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
#include <unordered_set>
#include <vector>

namespace syncline::pack {

class Leftovers {
 public:
  explicit Leftovers(const std::set<std::string, std::less<>>& originals);

  // The first name that is left in `bytes`; nullopt: there is none. `numbers`: a file of numbers.
  std::optional<std::string> Find(std::string_view bytes, bool numbers) const;
  // One that begins in [begin, end).
  std::optional<std::string> FindBetween(std::string_view bytes, size_t begin, size_t end,
                                         bool numbers) const;
  // How many names are looked for.
  size_t sought() const { return names_.size(); }
  // The longest of them, bytes.
  size_t longest() const { return longest_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };

  std::unordered_set<std::string, Hash, std::equal_to<>> names_;
  // By their first four bytes, how long they are, ascending: a hundred thousand texts that all
  // begin with "time" have some twenty lengths, and each "time" in the pack is asked for all of
  // them.
  std::unordered_map<uint32_t, std::vector<size_t>> lengths_;
  std::bitset<size_t{1} << 16> begins_;
  size_t longest_ = 0;
};

// Looks through a file that comes in pieces, as if it were there whole.
class LeftoverScan {
 public:
  // From the byte `numbers_from` on it is a file of numbers.
  LeftoverScan(const Leftovers* leftovers, uint64_t numbers_from);

  // The first name found so far.
  std::optional<std::string> Feed(std::string_view piece);
  std::optional<std::string> Finish();

 private:
  std::optional<std::string> LookUntil(size_t end);

  const Leftovers& leftovers_;
  uint64_t numbers_from_;
  std::string buffer_;
  size_t next_ = 0;             // in buffer_: before it all was looked at
  uint64_t buffer_offset_ = 0;  // of buffer_ in the file
};

// Whether a name is looked for at all.
bool IsSought(std::string_view name);

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_LEFTOVERS_H_
