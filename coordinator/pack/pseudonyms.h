// SPDX-License-Identifier: Apache-2.0
// Other names of the same length, the same ones for the same names, throughout a recording.
//
// The same length in bytes, so that a text can be replaced where it stands: offsets, sizes and
// length prefixes around it stay true.
//
// Texts are replaced word by word, a word being a run of letters, so that what is made of the same
// words stays recognisable as such: "load shard 3" and "/data/shard" share a word afterwards, too.
// What stands between words stays. Digits stay in names of tasks (the analysis groups "step 841"
// and "step 842") and are replaced everywhere else. Single letters stay.
//
//   Name("load shard 3")              "xkcd wbnqr 3"
//   Name("aten::conv2d")              the same: kept_names.h
//   Text("/home/ann/train.py")        "/hxkc/bqn/wvrdx.kq"
//   Host("worker-1")                  "b-node00": nodes keep their order
//   Address("10.77.188.1:7611")       "99.98.254.9:7611": addresses that are loopback stay
//
// Thread-safety: none. Deterministic: by the order of the calls.
#ifndef SYNCLINE_COORDINATOR_PACK_PSEUDONYMS_H_
#define SYNCLINE_COORDINATOR_PACK_PSEUDONYMS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace syncline::pack {

class Pseudonyms {
 public:
  // All names of nodes and machines, before anything else is asked for: they are also found inside
  // of other texts.
  explicit Pseudonyms(const std::set<std::string>& hosts);

  std::string Host(std::string_view host);
  // Of a task, domain, thread, counter, group, ...
  std::string Name(std::string_view name);
  // Types of TensorFlow's operators, which stay: "Conv2D". And so do the names that TensorFlow
  // makes of them: "Conv2D_1".
  void KeepOperatorTypes(std::set<std::string, std::less<>> types);
  // Of a node of TensorFlow's graphs: "model/dense/MatMul_3".
  std::string Node(std::string_view node);
  // "/job:worker/replica:0/task:0", also of a device of it.
  std::string Task(std::string_view task);
  // Of a tensor between two tasks: "SOURCE;INCARNATION;TARGET;NAME;FRAME".
  std::string TensorKey(std::string_view key);
  // Of a path, a command line, a user, a job: anything else.
  std::string Text(std::string_view text, const char* kind = "path or argument");
  // Of an IP address, HOST:PORT, [V6]:PORT, unix:PATH.
  std::string Address(std::string_view address);
  // Of a uuid that names a machine's boot.
  std::string BootId(std::string_view uuid);

  // What was replaced so far, whole, and what it is ("host", "task", ...); without names of which
  // less than four bytes changed, but for hosts and addresses.
  const std::map<std::string, std::string, std::less<>>& originals() const { return originals_; }
  // Names that stayed as they are, and parts of names.
  const std::set<std::string, std::less<>>& kept() const { return kept_; }

 private:
  std::string Words(std::string_view text, bool digits);
  size_t HostAt(std::string_view text, size_t at) const;
  std::string Word(std::string_view word);
  std::string Number(std::string_view digits);
  std::string Ip4(std::string_view address);
  std::string Ip6(std::string_view address);
  std::string Noted(std::string_view original, std::string pseudonym, const char* kind);

  std::map<std::string, std::string, std::less<>> hosts_;
  std::set<std::string, std::less<>> types_;
  std::set<size_t> host_sizes_;
  std::map<std::string, std::string, std::less<>> words_;
  std::map<std::string, std::string, std::less<>> numbers_;
  std::map<std::string, std::string, std::less<>> addresses_;
  std::map<std::string, std::string, std::less<>> boot_ids_;
  std::map<size_t, uint64_t> words_made_;           // by length
  std::map<size_t, uint64_t> numbers_made_;         // by length
  std::map<std::string, uint64_t> addresses_made_;  // by shape
  std::map<std::string, std::string, std::less<>> originals_;
  std::set<std::string, std::less<>> kept_;
};

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_PSEUDONYMS_H_
