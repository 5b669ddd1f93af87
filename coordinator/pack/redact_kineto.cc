// SPDX-License-Identifier: Apache-2.0
// Profiles of PyTorch's Kineto: JSON of up to some GB, whose numbers must stay as they are written.
// So it is not read into a tree: texts are replaced where they stand, by the key that they have.
//
// Kineto writes names as they are, with quotes in them: a line that begins with `"name": "` and
// ends with `",` is a name up to there, as kineto/text_reader.h reads it.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "coordinator/pack/redact_files.h"

namespace syncline::pack {
namespace {

// Texts of the format, by their keys.
constexpr std::string_view kPlainKeys[] = {
    "ph", "cat", "id", "bp", "s", "pid", "tid", "Input type", "dtype", "displayTimeUnit", "labels"};
// Names that Kineto gives to what it writes of itself.
constexpr std::string_view kPlainNames[] = {"process_name",
                                            "process_labels",
                                            "process_sort_index",
                                            "thread_name",
                                            "thread_sort_index",
                                            "fwdbwd",
                                            "ac2g",
                                            "PyTorch Profiler (0)",
                                            "Record Window End",
                                            "Iteration Start: PyTorch Profiler"};

template <size_t n>
bool IsAmong(const std::string_view (&list)[n], std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

// "cudaLaunchKernel", "Memcpy HtoD (Pageable -> Device)": calls of the runtime.
bool IsCudaCall(std::string_view name) {
  if (name.starts_with("Memcpy ") || name.starts_with("Memset ")) return true;
  return name.size() > 4 && name.starts_with("cuda") &&
         absl::ascii_isupper(static_cast<unsigned char>(name[4])) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); });
}

// What an operator was called with: numbers, lists of them, and these words.
bool IsPlainInput(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" ,[]", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (word != "True" && word != "False" && word != "None" &&
        word.find_first_not_of("0123456789.-+eE") != word.npos) {
      return false;
    }
    at = end + 1;
  }
  return true;
}

class Text {
 public:
  Text(std::span<uint8_t> bytes, Pseudonyms* names, std::set<std::string, std::less<>>* words)
      : bytes_(bytes),
        text_(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
        names_(*names),
        words_(*words) {}

  absl::Status Run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        if (!Quoted()) return Damaged();
        continue;
      }
      if (c == '{' || c == '[') {
        open_.push_back({c, key_});
        awaits_key_ = c == '{';
      } else if (c == '}' || c == ']') {
        if (open_.empty()) return Damaged();
        key_ = open_.back().key;
        open_.pop_back();
      } else if (c == ',') {
        awaits_key_ = !open_.empty() && open_.back().bracket == '{';
      }
      ++at_;
    }
    return open_.empty() ? absl::OkStatus() : Damaged();
  }

 private:
  struct Open {
    char bracket;
    std::string key;  // of the object or array itself
  };

  static absl::Status Damaged() {
    return absl::DataLossError(
        "it is no whole JSON, and names may stand where nothing can be read");
  }

  // The end of the text that begins at `begin`: its quote.
  size_t EndOf(size_t begin) const {
    constexpr std::string_view kName = "\"name\": \"";
    const size_t line = text_.rfind('\n', begin) + 1;
    const size_t first = text_.find_first_not_of(' ', line);
    if (text_.substr(first, kName.size()) == kName && first + kName.size() == begin) {
      const size_t end = std::min(text_.find('\n', begin), text_.size());
      if (end >= begin + 2 && text_.substr(end - 2, 2) == "\",") return end - 2;
    }
    size_t end = begin;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    return end;
  }

  // A key or a text; false: it does not end.
  bool Quoted() {
    const size_t begin = at_ + 1;
    const size_t end = EndOf(begin);
    if (end >= text_.size()) return false;
    const std::string_view content = text_.substr(begin, end - begin);
    if (awaits_key_) {
      key_ = content;
      words_.insert(key_);
      awaits_key_ = false;
    } else {
      const std::string made = Replaced(content);
      std::copy(made.begin(), made.end(), bytes_.begin() + static_cast<ptrdiff_t>(begin));
    }
    at_ = end + 1;
    return true;
  }

  // Escaped characters stay: what stands between them is replaced.
  std::string Replaced(std::string_view content) {
    std::string made;
    for (size_t at = 0; at < content.size();) {
      const size_t end = std::min(content.find('\\', at), content.size());
      made += One(content.substr(at, end - at));
      if (end == content.size()) break;
      const size_t escape = end + 1 < content.size() && content[end + 1] == 'u' ? 6 : 2;
      made += content.substr(end, escape);
      at = std::min(end + escape, content.size());
    }
    return made;
  }

  std::string One(std::string_view text) {
    if (text.empty() || IsAmong(kPlainKeys, key_)) return std::string(text);
    if (key_ == "host_name") return names_.Host(text);
    if (key_ == "Concrete Inputs" && IsPlainInput(text)) return std::string(text);
    if (key_ == "name" && (IsAmong(kPlainNames, text) || IsCudaCall(text))) {
      words_.emplace(text);
      return std::string(text);
    }
    const bool in_event = open_.size() > 2;  // traceEvents is the file's
    return in_event ? names_.Name(text) : names_.Text(text);
  }

  std::span<uint8_t> bytes_;
  std::string_view text_;
  Pseudonyms& names_;
  std::set<std::string, std::less<>>& words_;
  size_t at_ = 0;
  std::vector<Open> open_;
  std::string key_;
  bool awaits_key_ = false;
};

}  // namespace

absl::Status RedactKineto(std::span<uint8_t> bytes, Pseudonyms* names,
                          std::set<std::string, std::less<>>* words) {
  return Text(bytes, names, words).Run();
}

}  // namespace syncline::pack
