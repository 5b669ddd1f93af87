// SPDX-License-Identifier: Apache-2.0
// What the ids in our own events stand for, as lines say it: made once of all that a node's tables
// know, then only copied.
//
//   thread 7    thread = "pt_autograd_0", tid = 63, pid = 40      where its name is not known:
//               thread_key = 7, tid = 63, pid = 40
//   process 3   pid = 40
//   name 17     "train_step"    (the field's name stands in front: it may be a domain, a key, ...)
//
// An id that nothing is known of has no text: EventText writes the number.
//
// Thread-safe once made: no state.
#ifndef SYNCLINE_EXPORT_TEXT_ID_TEXTS_H_
#define SYNCLINE_EXPORT_TEXT_ID_TEXTS_H_

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "export/text/text_buffer.h"
#include "timeline/node_tables.h"

namespace syncline::text {

// The names of one process.
class NameTexts {
 public:
  explicit NameTexts(const timeline::ProcessEntry& process);
  NameTexts(const NameTexts&) = delete;  // it points to its own pieces
  NameTexts& operator=(const NameTexts&) = delete;
  // nullptr: it is not known.
  const Piece* Find(uint64_t id) const {
    if (id < low_.size()) return low_[id];
    const auto found = high_.find(id);
    return found == high_.end() ? nullptr : found->second;
  }

 private:
  void Add(uint32_t id, std::string_view text);

  std::deque<Piece> pieces_;
  std::vector<const Piece*> low_;  // by id: programs count theirs from 1
  absl::flat_hash_map<uint64_t, const Piece*> high_;
};

struct ThreadText {
  Piece text;
  const NameTexts* names = nullptr;  // of its process
};

// Of those who share buffers, and with them the keys of their threads (NodeTables).
class IdTexts {
 public:
  const ThreadText* Thread(uint64_t key) const { return Find(threads_, key); }
  const Piece* Process(uint64_t key) const { return Find(processes_, key); }

 private:
  friend class NodeIdTexts;
  template <class Map>
  static const typename Map::mapped_type* Find(const Map& map, uint64_t key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : &found->second;
  }

  absl::flat_hash_map<uint64_t, ThreadText> threads_;
  absl::flat_hash_map<uint64_t, Piece> processes_;
};

class NodeIdTexts {
 public:
  // `json`: as members of an object, else as text.
  NodeIdTexts(const timeline::NodeTables& tables, bool json);
  NodeIdTexts(const NodeIdTexts&) = delete;
  NodeIdTexts& operator=(const NodeIdTexts&) = delete;
  // nullptr: none of its threads and processes is known.
  const IdTexts* OfOwner(uint32_t owner) const {
    return owner < owners_.size() ? &owners_[owner] : nullptr;
  }

 private:
  IdTexts& Owner(uint32_t owner);

  std::deque<NameTexts> names_;  // of each process
  std::deque<IdTexts> owners_;
};

}  // namespace syncline::text

#endif  // SYNCLINE_EXPORT_TEXT_ID_TEXTS_H_
