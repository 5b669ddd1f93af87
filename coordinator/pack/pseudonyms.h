// SPDX-License-Identifier: Apache-2.0
// Other names: the same one for the same name throughout a pack, and another one in the next pack.
//
// What stands in a pack is drawn at random; the table that joins it with the names is this object,
// which is never written. So a pseudonym says nothing of its name but what is listed here.
//
//   Plain("gpu-7.acme")         "h4x9k2q7wd": a host, user, path, command, job. Nothing of it stays
//                               but its length, where that is 8 or more
//   Name("load shard 841")      "zkvb_wxtqh_306": a task, domain, thread, counter, metadata. The
//                               same length in bytes, so that it fits where the name stood
//   Address("10.77.0.1:7611")   "63.91.4.8:7611": an IP address becomes one of the same shape,
//                               a host Plain(), the port stays
//
// Name() keeps what `merge`, `report` and `why` look at in a name that somebody made up, because
// they would count otherwise than before: that a number stands alone in it ("step 841" and
// "step 842" are one row), and these fragments in their places: a last word "step", "iteration" or
// "iter"; "Backward"; "::" of an operator; a beginning "c10d::", "gloo:", "Optimizer.step",
// "Optimizer.step#", "enumerate(DataLoader)", "FSDP::root_pre_forward", "dnnl", "oneDNN",
// "accelerator initialised: "; "gloo", "time" and "duration". Everything else in it is replaced,
// byte by byte, whatever stands beside such a fragment. Names that are public (public_names.h)
// stay, when they are the whole text; so do lists of ranks ("0-3,8").
//
// Thread-safety: none.
#ifndef SYNCLINE_COORDINATOR_PACK_PSEUDONYMS_H_
#define SYNCLINE_COORDINATOR_PACK_PSEUDONYMS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace syncline::pack {

class Pseudonyms {
 public:
  // Uniform in [0, below).
  using Random = std::function<uint32_t(uint32_t below)>;
  // The kernel's random numbers.
  static Random SystemRandom();

  // `ranks`: how many ranks the job has; lists of smaller numbers are lists of ranks.
  explicit Pseudonyms(uint32_t ranks, Random random = SystemRandom());

  std::string Plain(std::string_view text);
  std::string Name(std::string_view name);
  // HOST:PORT, [V6]:PORT, unix:PATH.
  std::string Address(std::string_view address);
  // An IP address; other text becomes Name(): as long in any case. Loopback stays.
  std::string Ip(std::string_view address);
  // 8-4-4-4-12 hexadecimal digits, in any case; other text becomes Plain().
  std::string Uuid(std::string_view uuid);
  // A user's number, everywhere the same; 0 stays.
  uint32_t Uid(uint32_t uid);
  // Sentences for people are not changed but left out: which of them it was.
  std::string Sentence(std::string_view sentence);
  // What is left out without anything in its place; it is looked for in the pack all the same.
  void LeaveOut(std::string_view text) {
    if (!text.empty()) originals_.emplace(text);
  }
  // One word of the schema, or Plain().
  std::string Word(std::string_view word);

  // All that was replaced.
  const std::set<std::string, std::less<>>& originals() const { return originals_; }
  // Whether `name` is part of a pseudonym, by chance.
  bool IsInPseudonym(std::string_view name) const;
  // ResourceExhausted: there are more short names than names of that length; Aborted: by chance a
  // pseudonym is a name of the recording, try again.
  absl::Status status() const;

 private:
  using Texts = std::map<std::string, std::string, std::less<>>;

  std::string Draw(std::string_view letters, size_t size);
  std::string Unique(std::string_view what, const std::function<std::string()>& make);
  std::string Number(std::string_view digits);
  std::string FreeNumber(std::string_view what, std::string_view digits);
  std::string MakeName(std::string_view name);
  std::string NameLike(std::string_view name);
  bool CanStandFor(std::string_view name, std::string_view made) const;
  bool IsRankList(std::string_view text) const;
  std::string Noted(std::string_view original, std::string pseudonym);

  uint32_t ranks_;
  Random random_;
  Texts plain_, names_, templates_, numbers_, addresses_, uuids_, sentences_;
  std::map<uint32_t, uint32_t> uids_;
  std::set<uint32_t> uids_made_;
  std::set<std::string, std::less<>> made_;  // by what they are: "host" and "task" may be alike
  std::set<std::string, std::less<>> issued_;
  std::set<std::string, std::less<>> originals_;
  absl::Status status_;
};

// Whether `text` is an IPv4 or an IPv6 address.
bool IsIpAddress(std::string_view text);
// Whether `text` is a UUID.
bool IsUuid(std::string_view text);

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_PSEUDONYMS_H_
