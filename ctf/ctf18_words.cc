// SPDX-License-Identifier: Apache-2.0
#include "ctf/ctf18_words.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "common/text.h"
#include "ctf/references.h"
#include "ctf/roles.h"

namespace syncline::ctf {
namespace {

absl::Status NoWords(std::string_view what) {
  return absl::UnimplementedError(absl::StrCat("CTF 1.8 has no words for ", AbslView(what)));
}

bool IsIdentifier(std::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
         });
}

bool IsKeyword(std::string_view name) {
  static constexpr std::string_view kKeywords[] = {
      "align",      "callsite",       "char",    "clock",     "const",   "double",   "enum",
      "env",        "event",          "float",   "int",       "long",    "short",    "signed",
      "stream",     "string",         "struct",  "trace",     "void",    "_Bool",    "_Complex",
      "_Imaginary", "floating_point", "integer", "typealias", "typedef", "unsigned", "variant"};
  return std::find(std::begin(kKeywords), std::end(kKeywords), name) != std::end(kKeywords);
}

// A variant's option bears the label that selects it, which is shown.
std::string OptionName(std::string_view name) {
  return IsKeyword(name) ? absl::StrCat("_", AbslView(name)) : std::string(name);
}

bool SameLabels(const std::vector<EnumMapping>& a, const std::vector<EnumMapping>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const EnumMapping& x, const EnumMapping& y) {
                      return x.label == y.label && x.low == y.low && x.high == y.high;
                    });
}

std::string Below(const std::string& path, std::string_view name) {
  return absl::StrCat(path, path.empty() ? "" : ".", AbslView(name));
}

// The types of one stream class and one of its events, scope by scope from the packet header on.
class Translator {
 public:
  explicit Translator(std::string clock) : clock_(std::move(clock)) {}

  absl::StatusOr<TypePtr> Translate(Scope scope, const TypePtr& root) {
    if (root == nullptr) return root;
    scope_ = scope;
    roots_[scope] = root.get();
    tags_.clear();
    SYNCLINE_RETURN_IF_ERROR(FindTags(*root, ""));
    return Convert(*root, "", "");
  }

 private:
  struct Enclosing {
    const Type* type;
    std::string path;  // old names, from the scope's root
  };
  struct Place {
    Scope scope;
    std::string path;       // old names, from that scope's root
    std::string reference;  // new names, as far as the reference had old ones
  };

  static std::string NewName(const Type& type, std::string_view name, Scope scope, bool at_top) {
    const Role role = RoleByType(type, {name, scope, at_top});
    return role == Role::kNone ? absl::StrCat("_", AbslView(name))
                               : std::string(ReservedNameOf(role));
  }

  // The type at `path` below `type`, and its new names; nullptr when there is none.
  static const Type* Descend(const Type& type, std::string_view path, Scope scope, bool at_top,
                             std::string* new_path) {
    const Type* at = &type;
    for (const absl::string_view step : absl::StrSplit(AbslView(path), '.')) {
      while (at->kind == TypeKind::kArray || at->kind == TypeKind::kSequence) {
        at = at->element.get();
      }
      if (at->kind != TypeKind::kStruct && at->kind != TypeKind::kVariant) return nullptr;
      const auto member = std::find_if(at->members.begin(), at->members.end(),
                                       [&](const Member& m) { return m.name == StdView(step); });
      if (member == at->members.end()) return nullptr;
      *new_path = Below(*new_path, at->kind == TypeKind::kVariant
                                       ? OptionName(member->name)
                                       : NewName(*member->type, member->name, scope, at_top));
      at = member->type.get();
      at_top = false;
    }
    return at;
  }

  // As BuildLayout() resolves it (layout.cc).
  absl::StatusOr<Place> Resolve(const std::string& reference) const {
    const auto prefix = ScopePrefixOf(reference);
    const auto named = prefix ? roots_.find(prefix->scope) : roots_.end();
    if (named != roots_.end()) {
      const std::string path = reference.substr(prefix->text.size());
      std::string names;
      if (Descend(*named->second, path, named->first, true, &names) != nullptr) {
        return Place{named->first, path, absl::StrCat(AbslView(prefix->text), names)};
      }
    }
    for (auto outer = enclosing_.rbegin(); outer != enclosing_.rend(); ++outer) {
      std::string names;
      if (Descend(*outer->type, reference, scope_, outer->path.empty(), &names) == nullptr)
        continue;
      return Place{scope_, Below(outer->path, reference), names};
    }
    for (auto root = roots_.rbegin(); root != roots_.rend(); ++root) {
      std::string names;
      if (root->first >= scope_) continue;
      if (Descend(*root->second, reference, root->first, true, &names) == nullptr) continue;
      return Place{root->first, reference, names};
    }
    return absl::InvalidArgumentError(absl::StrCat("cannot find \"", reference, "\""));
  }

  // As it is called from where its variant stands: babeltrace2 takes no path between "<" and ">".
  absl::StatusOr<std::string> NameOfTag(const Place& tag) const {
    const std::string name = tag.path.substr(tag.path.rfind('.') + 1);
    for (auto outer = enclosing_.rbegin(); outer != enclosing_.rend(); ++outer) {
      std::string new_name;
      if (Descend(*outer->type, name, scope_, outer->path.empty(), &new_name) == nullptr) continue;
      if (Below(outer->path, name) == tag.path) return new_name;
      break;  // another one is in the way
    }
    return NoWords("a variant whose tag stands neither beside it nor around it");
  }

  // The tags of variants, by path: the labels that they need.
  absl::Status FindTags(const Type& type, const std::string& path) {
    if (type.kind == TypeKind::kArray || type.kind == TypeKind::kSequence) {
      return FindTags(*type.element, path);
    }
    if (type.kind == TypeKind::kVariant) {
      if (type.may_be_empty) return NoWords("optional fields");
      SYNCLINE_ASSIGN_OR_RETURN(const Place tag, Resolve(type.reference));
      if (tag.scope != scope_) return NoWords("a variant whose tag lies in another scope");
      std::vector<EnumMapping> labels;
      for (const Member& option : type.members) {
        for (EnumMapping range : option.selected_by) {
          range.label = OptionName(option.name);
          labels.push_back(std::move(range));
        }
      }
      const auto [known, is_new] = tags_.try_emplace(tag.path, labels);
      if (!is_new && !SameLabels(known->second, labels)) {
        return NoWords("variants that read one tag in different ways");
      }
    }
    const bool is_struct = type.kind == TypeKind::kStruct;
    if (is_struct) enclosing_.push_back({&type, path});
    for (const Member& member : type.members) {
      SYNCLINE_RETURN_IF_ERROR(FindTags(*member.type, Below(path, member.name)));
    }
    if (is_struct) enclosing_.pop_back();
    return absl::OkStatus();
  }

  absl::StatusOr<TypePtr> Convert(const Type& type, const std::string& path,
                                  std::string_view name) {
    auto made = std::make_shared<Type>(type);
    made->role = Role::kNone;
    switch (type.kind) {
      case TypeKind::kInteger:
      case TypeKind::kEnum:
        SYNCLINE_RETURN_IF_ERROR(ConvertInteger(type, path, name, *made));
        break;
      case TypeKind::kFloat:
        if (type.reversed_bits) return NoWords("reversed bits");
        break;
      case TypeKind::kString:
        if (type.unit_bytes != 1) return NoWords("strings of UTF-16 and UTF-32");
        break;
      case TypeKind::kBlob:
      case TypeKind::kSequenceBlob:
        made->kind = type.kind == TypeKind::kBlob ? TypeKind::kArray : TypeKind::kSequence;
        made->element = Byte();
        break;
      case TypeKind::kArray:
      case TypeKind::kSequence: {
        if (type.alignment > type.element->alignment) {
          return NoWords("arrays that are aligned more than their elements");
        }
        SYNCLINE_ASSIGN_OR_RETURN(made->element, Convert(*type.element, path, ""));
        break;
      }
      case TypeKind::kStruct:
      case TypeKind::kVariant:
        SYNCLINE_RETURN_IF_ERROR(ConvertMembers(type, path, *made));
        break;
    }
    if (!type.reference.empty()) {
      SYNCLINE_ASSIGN_OR_RETURN(Place place, Resolve(type.reference));
      made->reference = std::move(place.reference);
      if (type.kind == TypeKind::kVariant) {
        SYNCLINE_ASSIGN_OR_RETURN(made->reference, NameOfTag(place));
      }
    }
    made->depth = DepthOf(*made);
    return TypePtr(std::move(made));
  }

  absl::Status ConvertInteger(const Type& type, const std::string& path, std::string_view name,
                              Type& made) const {
    if (type.variable_length) return NoWords("integers of variable length");
    const Role role = RoleByType(type, {name, scope_, path == name});
    if (role == Role::kTimestamp || role == Role::kTimestampBegin || role == Role::kTimestampEnd) {
      made.clock = clock_;
    }
    const auto tag = tags_.find(path);
    if (tag == tags_.end()) return absl::OkStatus();
    made.kind = TypeKind::kEnum;
    // A label of its own that is called like an option would select it.
    std::erase_if(made.mappings, [&](const EnumMapping& own) {
      return std::any_of(tag->second.begin(), tag->second.end(),
                         [&](const EnumMapping& one) { return one.label == own.label; });
    });
    made.mappings.insert(made.mappings.begin(), tag->second.begin(), tag->second.end());
    return absl::OkStatus();
  }

  absl::Status ConvertMembers(const Type& type, const std::string& path, Type& made) {
    const bool is_struct = type.kind == TypeKind::kStruct;
    if (is_struct) enclosing_.push_back({&type, path});
    for (Member& member : made.members) {
      if (!IsIdentifier(is_struct ? absl::StrCat("_", member.name) : member.name)) {
        return NoWords(absl::StrCat("the name \"", member.name, "\""));
      }
      const TypePtr before = member.type;
      SYNCLINE_ASSIGN_OR_RETURN(member.type,
                                Convert(*before, Below(path, member.name), member.name));
      member.name =
          is_struct ? NewName(*before, member.name, scope_, path.empty()) : OptionName(member.name);
      member.selected_by.clear();
    }
    if (is_struct) enclosing_.pop_back();
    return absl::OkStatus();
  }

  static TypePtr Byte() {
    auto byte = std::make_shared<Type>();
    byte->size_bits = byte->alignment = 8;
    byte->byte_order = ByteOrder::kLittle;
    byte->base = 16;
    return byte;
  }

  std::string clock_;
  Scope scope_ = Scope::kPacketHeader;
  std::map<Scope, const Type*> roots_;
  std::map<std::string, std::vector<EnumMapping>> tags_;
  std::vector<Enclosing> enclosing_;
};

absl::Status TranslateStream(const TypePtr& packet_header, TypePtr* new_packet_header,
                             StreamType* stream) {
  Translator translator(stream->clock);
  stream->clock.clear();
  SYNCLINE_ASSIGN_OR_RETURN(*new_packet_header,
                            translator.Translate(Scope::kPacketHeader, packet_header));
  SYNCLINE_ASSIGN_OR_RETURN(
      stream->packet_context,
      translator.Translate(Scope::kPacketContext, TypePtr(stream->packet_context)));
  SYNCLINE_ASSIGN_OR_RETURN(
      stream->event_header,
      translator.Translate(Scope::kEventHeader, TypePtr(stream->event_header)));
  SYNCLINE_ASSIGN_OR_RETURN(
      stream->event_context,
      translator.Translate(Scope::kStreamContext, TypePtr(stream->event_context)));
  for (EventType& event : stream->events) {
    auto context = translator.Translate(Scope::kEventContext, TypePtr(event.context));
    if (!context.ok()) return WithContext(context.status(), event.name);
    auto payload = translator.Translate(Scope::kPayload, TypePtr(event.payload));
    if (!payload.ok()) return WithContext(payload.status(), event.name);
    event.context = *std::move(context);
    event.payload = *std::move(payload);
    std::erase_if(event.attributes, [](const auto& one) { return !IsIdentifier(one.first); });
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Metadata>> InCtf18Words(
    std::shared_ptr<const Metadata> metadata) {
  if (metadata->roles_by_name) return metadata;
  auto made = std::make_shared<Metadata>(*metadata);
  made->major = 1;
  made->minor = 8;
  made->roles_by_name = true;
  std::erase_if(made->environment, [](const auto& one) { return !IsIdentifier(one.first); });
  std::map<std::string, std::string> clocks;
  for (size_t i = 0; i < made->clocks.size(); ++i) {
    std::string& name = made->clocks[i].name;
    const std::string before = name;
    if (!IsIdentifier(name)) name = absl::StrCat("clock_", i);
    clocks[before] = name;
  }
  for (StreamType& stream : made->streams) {
    stream.clock = clocks[stream.clock];
    SYNCLINE_RETURN_IF_ERROR(
        TranslateStream(metadata->packet_header, &made->packet_header, &stream));
  }
  return std::shared_ptr<const Metadata>(std::move(made));
}

}  // namespace syncline::ctf
