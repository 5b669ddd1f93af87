// SPDX-License-Identifier: Apache-2.0
// TensorFlow's profiles: every text of the protocol buffer messages is replaced where it stands.
// Field numbers are those of tsl/profiler/protobuf/xplane.proto.
//
// An event's name is "NODE:TYPE", or TensorFlow's own ("ExecutorState::Process"). Its stats refer
// to texts by number: the same table, stat_metadata, holds what stats are called and what they say.
#include <algorithm>
#include <iterator>
#include <map>

#include "absl/strings/ascii.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/pack/redact_files.h"
#include "xspace/wire.h"

namespace syncline::pack {
namespace {

using xspace::Fields;

// Stats whose texts are the framework's, and what stats are called.
constexpr std::string_view kPlainStats[] = {"kernel_type", "shape",     "allocator_name",
                                            "region_type", "data_type", "tf_function_call"};
constexpr std::string_view kStatNames[] = {
    "id",
    "iter_num",
    "step_id",
    "name",
    "key",
    "kernel_name",
    "kernel_type",
    "shape",
    "eager_op",
    "tf_op",
    "region_type",
    "data_type",
    "allocator_name",
    "bytes_allocated",
    "bytes_available",
    "requested_bytes",
    "allocation_bytes",
    "addr",
    "fragmentation",
    "peak_bytes_in_use",
    "tensor_shapes",
    "num_output_edges",
    "num_output_control_edges",
    "ready_size",
    "inline_ready_size",
    "group_key",
    "group_size",
    "instance_key",
    "tf_function_call",
    "group_id",
    "profile_start_time",
    "profile_stop_time",
    "profile_options",
    "is_eager",
    "long_name",
};
constexpr std::string_view kEventPrefixes[] = {
    "Executor",         "ThreadpoolListener::", "CollectiveExecutor::",
    "MemoryAllocation", "MemoryDeallocation",   "RunGraph",
    "RunGraphDone",
};

template <size_t n>
bool IsAmong(const std::string_view (&list)[n], std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

// Where "NODE:TYPE" is parted; npos: the name is no operator's. Types begin with a capital or "_".
size_t PartedAt(std::string_view name) {
  const size_t colon = name.rfind(':');
  if (colon == name.npos || colon == 0 || colon + 1 >= name.size() ||
      name.find("::") != name.npos) {
    return std::string_view::npos;
  }
  const std::string_view type = name.substr(colon + 1);
  const bool named = absl::ascii_isupper(static_cast<unsigned char>(type[0])) || type[0] == '_';
  const bool plain = std::all_of(type.begin(), type.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
  return named && plain ? colon : std::string_view::npos;
}

std::string EventName(std::string_view name, Pseudonyms* names) {
  for (const std::string_view prefix : kEventPrefixes) {
    if (name.starts_with(prefix)) return std::string(name);
  }
  const size_t colon = PartedAt(name);
  if (colon == name.npos) return names->Node(name);
  return names->Node(name.substr(0, colon)) + std::string(name.substr(colon));
}

class XSpace {
 public:
  XSpace(std::span<uint8_t> bytes, Pseudonyms* names, std::set<std::string, std::less<>>* words)
      : bytes_(bytes), names_(*names), words_(*words) {}

  absl::Status Run() {
    Fields fields(bytes_);
    while (fields.Next()) {
      if (fields.number() == 1) {
        SYNCLINE_RETURN_IF_ERROR(Plane(fields.bytes()));
      } else if (fields.number() == 4) {
        Put(fields, names_.Host(fields.text()));
      } else {
        Blank(fields);  // errors and warnings
      }
    }
    return Whole(fields);
  }

 private:
  // What the table of a plane says, and how it is used.
  struct Entry {
    std::string_view text;
    bool is_name = false;   // of a stat
    bool is_plain = false;  // what a stat of kPlainStats says
  };

  static absl::Status Whole(const Fields& fields) {
    if (fields.damage() == Fields::Damage::kNone) return absl::OkStatus();
    return absl::DataLossError("it is damaged, and names may stand where nothing can be read");
  }

  void Put(const Fields& fields, std::string_view made) {
    const auto at = fields.bytes().data() - bytes_.data();
    if (made.size() != fields.bytes().size() || made.empty()) return;
    std::copy(made.begin(), made.end(), bytes_.begin() + at);
  }
  // Texts for people, and messages in messages that are not known here.
  void Blank(const Fields& fields) { Put(fields, std::string(fields.bytes().size(), ' ')); }

  std::string Value(std::string_view text) {
    if (text.starts_with("/job:") && text.find(';') != text.npos) return names_.TensorKey(text);
    if (text.starts_with("/job:")) return names_.Task(text);
    return names_.Node(text);
  }

  template <class OnField>
  absl::Status Each(std::span<const uint8_t> message, const OnField& on_field) {
    Fields fields(message);
    while (fields.Next()) SYNCLINE_RETURN_IF_ERROR(on_field(fields));
    return Whole(fields);
  }

  absl::Status Plane(std::span<const uint8_t> plane) {
    table_.clear();
    SYNCLINE_RETURN_IF_ERROR(Each(plane, [&](const Fields& fields) {
      return fields.number() == 5 ? ReadEntry(fields.bytes()) : absl::OkStatus();
    }));
    uses_ = true;
    SYNCLINE_RETURN_IF_ERROR(Stats(plane));
    uses_ = false;
    SYNCLINE_RETURN_IF_ERROR(Stats(plane));
    return Each(plane, [&](const Fields& fields) {
      if (fields.number() == 2 && !fields.text().starts_with('/') &&
          fields.text() != "Task Environment") {
        Put(fields, names_.Name(fields.text()));
      }
      return fields.number() == 5 ? PutEntry(fields.bytes()) : absl::OkStatus();
    });
  }

  absl::Status ReadEntry(std::span<const uint8_t> entry) {
    int64_t id = 0;
    std::string_view text;
    SYNCLINE_RETURN_IF_ERROR(Each(entry, [&](const Fields& fields) {
      if (fields.number() == 1) id = fields.signed_value();
      if (fields.number() != 2) return absl::OkStatus();
      return Each(fields.bytes(), [&](const Fields& inner) {
        if (inner.number() == 2) text = inner.text();
        return absl::OkStatus();
      });
    }));
    table_[id].text = text;
    return absl::OkStatus();
  }

  absl::Status PutEntry(std::span<const uint8_t> entry) {
    int64_t id = 0;
    return Each(entry, [&](const Fields& fields) {
      if (fields.number() == 1) id = fields.signed_value();
      if (fields.number() != 2) return absl::OkStatus();
      return Each(fields.bytes(), [&](const Fields& inner) {
        if (inner.number() == 2) {
          const Entry& known = table_[id];
          const bool stays = known.is_plain || IsAmong(kStatNames, inner.text()) ||
                             (known.is_name && inner.text().starts_with('_'));
          if (stays) words_.emplace(inner.text());
          if (!stays) Put(inner, Value(inner.text()));
        } else if (inner.number() > 2) {
          Blank(inner);  // a description
        }
        return absl::OkStatus();
      });
    });
  }

  // All stats of a plane: first only how they use the table, then their own texts.
  absl::Status Stats(std::span<const uint8_t> plane) {
    return Each(plane, [&](const Fields& fields) {
      if (fields.number() == 3) return Line(fields.bytes());
      if (fields.number() == 6) return Stat(fields.bytes());
      if (fields.number() != 4) return absl::OkStatus();
      return Each(fields.bytes(), [&](const Fields& inner) {
        return inner.number() == 2 ? EventMetadata(inner.bytes()) : absl::OkStatus();
      });
    });
  }

  absl::Status EventMetadata(std::span<const uint8_t> metadata) {
    std::string_view name;
    SYNCLINE_RETURN_IF_ERROR(Each(metadata, [&](const Fields& fields) {
      if (fields.number() == 2) name = fields.text();
      return absl::OkStatus();
    }));
    const size_t colon = PartedAt(name);
    const std::string type(colon == name.npos ? "" : name.substr(colon + 1));
    return Each(metadata, [&](const Fields& fields) {
      if (fields.number() == 5) return Stat(fields.bytes());
      if (uses_) return absl::OkStatus();
      if (fields.number() == 2) Put(fields, EventName(fields.text(), &names_));
      if (fields.number() == 3) Blank(fields);
      if (fields.number() == 4 && fields.text() != type) {
        Put(fields, EventName(fields.text(), &names_));
      }
      return absl::OkStatus();
    });
  }

  absl::Status Line(std::span<const uint8_t> line) {
    return Each(line, [&](const Fields& fields) {
      if (fields.number() == 4) {
        return Each(fields.bytes(), [&](const Fields& inner) {
          return inner.number() == 4 ? Stat(inner.bytes()) : absl::OkStatus();
        });
      }
      if (!uses_ && (fields.number() == 2 || fields.number() == 11)) {
        Put(fields, names_.Name(fields.text()));
      }
      return absl::OkStatus();
    });
  }

  absl::Status Stat(std::span<const uint8_t> stat) {
    std::string_view name;
    return Each(stat, [&](const Fields& fields) {
      if (fields.number() == 1) {
        Entry& entry = table_[fields.signed_value()];
        entry.is_name = true;
        name = entry.text;
      } else if (fields.number() == 7) {
        table_[fields.signed_value()].is_plain |= IsAmong(kPlainStats, name);
      } else if (!uses_ && fields.number() == 5 && !IsAmong(kPlainStats, name)) {
        Put(fields, Value(fields.text()));
      } else if (!uses_ && fields.number() == 6) {
        Blank(fields);
      }
      return absl::OkStatus();
    });
  }

  std::span<uint8_t> bytes_;
  Pseudonyms& names_;
  std::set<std::string, std::less<>>& words_;
  std::map<int64_t, Entry> table_;
  bool uses_ = false;
};

void AddTypes(std::span<const uint8_t> message, std::span<const uint32_t> path,
              std::set<std::string, std::less<>>* types) {
  Fields fields(message);
  while (fields.Next()) {
    if (fields.number() != path.front()) continue;
    if (path.size() > 1) {
      AddTypes(fields.bytes(), path.subspan(1), types);
      continue;
    }
    const size_t colon = PartedAt(fields.text());
    if (colon != std::string_view::npos) types->emplace(fields.text().substr(colon + 1));
  }
}

}  // namespace

void AddOperatorTypes(std::span<const uint8_t> xspace, std::set<std::string, std::less<>>* types) {
  // Planes, their event metadata, the entries of that, and their names.
  constexpr uint32_t kPath[] = {1, 4, 2, 2};
  AddTypes(xspace, kPath, types);
}

absl::Status RedactXSpace(std::span<uint8_t> bytes, Pseudonyms* names,
                          std::set<std::string, std::less<>>* words) {
  return XSpace(bytes, names, words).Run();
}

}  // namespace syncline::pack
