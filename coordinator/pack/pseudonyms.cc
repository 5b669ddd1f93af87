// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/pseudonyms.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "coordinator/pack/kept_names.h"

namespace syncline::pack {
namespace {

// No vowels, and no letters that words with a meaning for the analysis end with ("step").
constexpr std::string_view kLetters = "bcdfghjklmnqrvwxz";

constexpr char kHost[] = "host";
constexpr char kAddress[] = "address";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
// Bytes of other scripts' letters, too.
bool IsLetter(char c) {
  return absl::ascii_isalpha(static_cast<unsigned char>(c)) || (static_cast<unsigned>(c) & 0x80u);
}
bool IsWord(char c) { return IsLetter(c) || IsDigit(c); }

size_t RunOf(std::string_view text, size_t at, bool (*is)(char)) {
  size_t end = at;
  while (end < text.size() && is(text[end])) ++end;
  return end - at;
}

// `number` in base kLetters.size(), scattered, so that words made one after the other differ at
// sight. Different numbers below 17^min(size, 7) give different words.
std::string Spell(uint64_t number, size_t size) {
  constexpr uint64_t kScatter = 7919;  // any number that is no multiple of 17
  constexpr uint64_t kOther = 104729;  // so that words of other lengths do not begin alike
  const size_t spelled = std::min<size_t>(size, 7);
  uint64_t all = 1;
  for (size_t i = 0; i < spelled; ++i) all *= kLetters.size();
  uint64_t left = (number * kScatter + size * kOther) % all;
  std::string word;
  for (size_t i = 0; i < spelled; ++i, left /= kLetters.size()) {
    word.push_back(kLetters[left % kLetters.size()]);
  }
  for (size_t i = spelled; i < size; ++i) word.push_back(kLetters[(i * 5) % kLetters.size()]);
  return word;
}

// The place of a host among all of them, and then as much of "-node00..." as there is room for.
std::string HostName(size_t place, size_t places, size_t size) {
  constexpr size_t kAlphabet = 26;
  size_t width = 1;
  for (size_t room = kAlphabet; room < places; room *= kAlphabet) ++width;
  std::string name(width, 'a');
  for (size_t i = width; i-- > 0; place /= kAlphabet) {
    name[i] = static_cast<char>('a' + place % kAlphabet);
  }
  constexpr std::string_view kNode = "-node";
  if (size >= width + kNode.size()) name += kNode;
  name.resize(std::max(size, name.size()), '0');
  return name;
}

// Four numbers of up to three digits with points between them, and nothing else.
bool IsIp4(std::string_view text) {
  size_t at = 0;
  for (int part = 0; part < 4; ++part) {
    if (part > 0 && (at >= text.size() || text[at++] != '.')) return false;
    const size_t digits = RunOf(text, at, IsDigit);
    if (digits == 0 || digits > 3) return false;
    at += digits;
  }
  return at == text.size();
}

bool IsIp6(std::string_view text) {
  return std::count(text.begin(), text.end(), ':') >= 2 &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c)) || c == ':';
         });
}

// Of every machine: they tell nothing.
bool IsEverywhere(std::string_view address) {
  return address.starts_with("127.") || address == "0.0.0.0" || address == "::" || address == "::1";
}

}  // namespace

Pseudonyms::Pseudonyms(const std::set<std::string>& hosts) {
  size_t place = 0;
  for (const std::string& host : hosts) {
    std::string name = HostName(place++, hosts.size(), host.size());
    // Too short for its place, or some other host is called so.
    if (name.size() != host.size() || hosts.contains(name)) name = Spell(place, host.size());
    hosts_.emplace(host, std::move(name));
    host_sizes_.insert(host.size());
  }
}

std::string Pseudonyms::Noted(std::string_view original, std::string pseudonym, const char* kind) {
  constexpr size_t kFew = 4;
  size_t changed = 0;
  for (size_t i = 0; i < original.size(); ++i) changed += original[i] != pseudonym[i] ? 1 : 0;
  // "syncline-0" for "syncline-7" may well stand somewhere by chance.
  const bool is_whole = std::string_view(kind) == kHost || std::string_view(kind) == kAddress;
  if (changed >= kFew || (changed > 0 && is_whole)) {
    originals_.emplace(original, kind);
  } else if (changed == 0 && !original.empty()) {
    kept_.emplace(original);
  }
  return pseudonym;
}

std::string Pseudonyms::Host(std::string_view host) {
  const auto found = hosts_.find(host);
  return Noted(host, found != hosts_.end() ? found->second : Words(host, true), kHost);
}

std::string Pseudonyms::Name(std::string_view name) {
  const size_t kept = KeptPrefix(name);
  if (kept > 0) kept_.emplace(name.substr(0, kept));
  std::string made = std::string(name.substr(0, kept)) + Words(name.substr(kept), false);
  return Noted(name, std::move(made), "task, thread or tensor");
}

void Pseudonyms::KeepOperatorTypes(std::set<std::string, std::less<>> types) {
  kept_.insert(types.begin(), types.end());
  types_ = std::move(types);
}

std::string Pseudonyms::Node(std::string_view node) {
  std::string made;
  for (size_t at = 0; at < node.size();) {
    const size_t end = std::min(node.find('/', at), node.size());
    const std::string_view part = node.substr(at, end - at);
    // "Conv2D_1", and "Conv2D_S4" where a graph was cut.
    size_t base = part.find_last_not_of("0123456789") + 1;
    if (base > 1 && (part[base - 1] == 'S' || part[base - 1] == 'G')) --base;
    if (base > 1 && part[base - 1] == '_') --base;
    const bool own = part == "_SOURCE" || part == "_SINK" || types_.contains(part) ||
                     types_.contains(part.substr(0, base));
    if (own) kept_.emplace(part);
    made += own ? std::string(part) : Words(part, false);
    if (end < node.size()) made.push_back('/');
    at = end + 1;
  }
  return Noted(node, std::move(made), "tensor or node of a graph");
}

std::string Pseudonyms::Task(std::string_view task) {
  return Noted(task, Words(task, false), "task of TensorFlow");
}

std::string Pseudonyms::TensorKey(std::string_view key) {
  std::string made;
  int part = 0;
  for (size_t at = 0; at <= key.size(); ++part) {
    const size_t end = std::min(key.find(';', at), key.size());
    const std::string_view text = key.substr(at, end - at);
    if (part > 0) made.push_back(';');
    made += part == 0 || part == 2 ? Task(text) : part == 3 ? Node(text) : std::string(text);
    at = end + 1;
  }
  return Noted(key, std::move(made), "tensor");
}

std::string Pseudonyms::Text(std::string_view text, const char* kind) {
  // Parts of it stand elsewhere: the directory of a script, say.
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("/ =,:", at), text.size());
    const std::string_view part = text.substr(at, end - at);
    Noted(part, Words(part, true), kind);
    at = end + 1;
  }
  return Noted(text, Words(text, true), kind);
}

std::string Pseudonyms::Address(std::string_view address) {
  constexpr std::string_view kUnix = "unix:";
  if (address.starts_with(kUnix)) {
    return std::string(kUnix) + Text(address.substr(kUnix.size()));
  }
  if (IsEverywhere(address)) return std::string(address);
  if (IsIp4(address)) return Noted(address, Ip4(address), kAddress);
  if (IsIp6(address)) return Noted(address, Ip6(address), kAddress);
  if (address.starts_with('[')) {
    const size_t end = std::min(address.find(']'), address.size());
    return "[" + Address(address.substr(1, end - 1)) + std::string(address.substr(end));
  }
  const size_t colon = address.rfind(':');
  if (colon == address.npos) return Host(address);
  return Address(address.substr(0, colon)) + std::string(address.substr(colon));
}

std::string Pseudonyms::BootId(std::string_view uuid) {
  auto found = boot_ids_.find(uuid);
  if (found == boot_ids_.end()) {
    std::string made(uuid);
    uint64_t number = boot_ids_.size() + 1;
    for (size_t i = made.size(); i-- > 0;) {
      if (!absl::ascii_isxdigit(static_cast<unsigned char>(made[i]))) continue;
      made[i] = static_cast<char>('0' + number % 10);
      number /= 10;
    }
    found = boot_ids_.emplace(uuid, std::move(made)).first;
  }
  return Noted(uuid, found->second, "boot id");
}

// The length of the host's name that stands at `at` as a word or words of its own; 0: none.
size_t Pseudonyms::HostAt(std::string_view text, size_t at) const {
  if (at > 0 && IsWord(text[at - 1])) return 0;
  for (auto size = host_sizes_.rbegin(); size != host_sizes_.rend(); ++size) {
    if (at + *size > text.size() || (at + *size < text.size() && IsWord(text[at + *size]))) {
      continue;
    }
    if (hosts_.contains(text.substr(at, *size))) return *size;
  }
  return 0;
}

std::string Pseudonyms::Words(std::string_view text, bool digits) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    size_t size = HostAt(text, at);
    if (size > 0) {
      made += hosts_.find(text.substr(at, size))->second;
    } else if ((size = RunOf(text, at, IsLetter)) > 0) {
      made += Word(text.substr(at, size));
    } else if ((size = RunOf(text, at, IsDigit)) > 0) {
      made += digits ? Number(text.substr(at, size)) : std::string(text.substr(at, size));
    } else {
      made.push_back(text[at]);
      size = 1;
    }
    at += size;
  }
  return made;
}

std::string Pseudonyms::Word(std::string_view word) {
  if (word.size() == 1 || IsKeptWord(word)) return std::string(word);
  const size_t ending = KeptEnding(word);
  const std::string_view begin = word.substr(0, word.size() - ending);
  if (ending > 0 && begin.size() == 1) return std::string(word);
  auto found = words_.find(begin);
  if (found == words_.end()) {
    std::string made = Spell(words_made_[begin.size()]++, begin.size());
    if (made == begin) made = Spell(words_made_[begin.size()]++, begin.size());
    found = words_.emplace(begin, std::move(made)).first;
  }
  return found->second + std::string(word.substr(begin.size()));
}

std::string Pseudonyms::Number(std::string_view digits) {
  const auto found = numbers_.find(digits);
  if (found != numbers_.end()) return found->second;
  std::string made(digits.size(), '0');
  uint64_t number = ++numbers_made_[digits.size()];
  for (size_t i = made.size(); i-- > 0; number /= 10) {
    made[i] = static_cast<char>('0' + number % 10);
  }
  return numbers_.emplace(digits, std::move(made)).first->second;
}

// Numbers of as many digits, counted down from the largest: few networks have those.
std::string Pseudonyms::Ip4(std::string_view address) {
  const auto found = addresses_.find(address);
  if (found != addresses_.end()) return found->second;
  std::string shape;
  for (const char c : address) shape.push_back(IsDigit(c) ? '0' : c);
  uint64_t number = addresses_made_[shape]++;
  std::string made(address);
  for (size_t end = made.size(); end > 0;) {
    size_t begin = end;
    while (begin > 0 && IsDigit(made[begin - 1])) --begin;
    const size_t digits = end - begin;
    const uint64_t largest = digits == 1 ? 9 : digits == 2 ? 99 : 254;
    const uint64_t values = digits == 1 ? 9 : digits == 2 ? 90 : 155;
    made.replace(begin, digits, std::to_string(largest - number % values));
    number /= values;
    end = begin > 0 ? begin - 1 : 0;
  }
  return addresses_.emplace(address, std::move(made)).first->second;
}

// Group by group, so that addresses of one network stay so.
std::string Pseudonyms::Ip6(std::string_view address) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string made;
  for (size_t at = 0; at < address.size();) {
    if (address[at] == ':') {
      made.push_back(address[at++]);
      continue;
    }
    const size_t end = std::min(address.find(':', at), address.size());
    const std::string key = ":" + std::string(address.substr(at, end - at));
    auto found = addresses_.find(key);
    if (found == addresses_.end()) {
      uint64_t number = addresses_made_[std::string(end - at, 'x')]++;
      std::string group(end - at, 'f');
      for (size_t i = group.size(); i-- > 0; number /= 15) group[i] = kHex[15 - number % 15];
      found = addresses_.emplace(key, std::move(group)).first;
    }
    made += found->second;
    at = end;
  }
  return made;
}

}  // namespace syncline::pack
