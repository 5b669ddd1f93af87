// SPDX-License-Identifier: Apache-2.0
// syncline completion: shell scripts made from the program's own definition of its options, so that
// they cannot differ from it.
#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"

namespace syncline::cli {
namespace {

// Names and options that may follow the commands in `path`.
struct Level {
  std::string path;                // "certs init"
  std::vector<std::string> words;  // subcommands, then options
  std::vector<std::string> help;   // of each word, one line
  // Of options that take a word: those that it may be, if they are few; by the option's name.
  std::map<std::string, std::vector<std::string>> values;
};

// CLI11 tells the words that an option takes in its type: "TEXT:{text,jsonl}".
std::vector<std::string> ValuesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',');
}

std::string OneLine(const std::string& text) { return text.substr(0, text.find('\n')); }

void Collect(const CLI::App& app, const std::string& path, std::vector<Level>* levels) {
  Level level{path, {}, {}};
  const std::vector<const CLI::App*> children = ShownCommands(app);
  for (const CLI::App* child : children) {
    level.words.push_back(child->get_name());
    level.help.push_back(OneLine(child->get_description()));
  }
  const auto add_options = [&](const CLI::App& from) {
    for (const CLI::Option* option : from.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        level.words.push_back("--" + name);
        level.help.push_back(OneLine(option->get_description()));
        if (option->get_expected_max() > 0) level.values["--" + name] = ValuesOf(*option);
      }
    }
  };
  add_options(app);
  // Options of a group ("one of --node, --operator") belong to a child without a name.
  for (const CLI::App* group :
       app.get_subcommands([](const CLI::App* child) { return child->get_name().empty(); })) {
    add_options(*group);
  }
  levels->push_back(level);
  for (const CLI::App* child : children) {
    Collect(*child, path.empty() ? child->get_name() : absl::StrCat(path, " ", child->get_name()),
            levels);
  }
}

// The longest known chain of commands among the words typed so far.
constexpr const char* kFindPath = R"(  local path="" word candidate
  for word in "${typed[@]}"; do
    candidate="${path:+$path }$word"
    case "$candidate" in
      %CASES%) path="$candidate" ;;
    esac
  done
)";

std::string FindPath(const std::vector<Level>& levels) {
  std::vector<std::string> cases;
  for (const Level& level : levels) {
    if (!level.path.empty()) cases.push_back(absl::StrCat("\"", level.path, "\""));
  }
  return absl::StrReplaceAll(kFindPath, {{"%CASES%", absl::StrJoin(cases, "|")}});
}

// One case for each option that takes one of a few words; `line` says what to do with %VALUES%.
std::string ValueCases(const std::vector<Level>& levels, const std::string& line) {
  std::string cases;
  for (const Level& level : levels) {
    for (const auto& [option, values] : level.values) {
      if (values.empty()) continue;
      absl::StrAppend(&cases, "    \"", level.path, " ", option, "\") ",
                      absl::StrReplaceAll(line, {{"%VALUES%", absl::StrJoin(values, " ")}}),
                      " ;;\n");
    }
  }
  return cases;
}

// Lists are completed behind their last comma.
constexpr const char* kBashValues =
    R"(  local current="${COMP_WORDS[COMP_CWORD]}" previous="${typed[@]: -1}" before=""
  case "$path $previous" in
%CASES%  esac
  if [[ -n "$values" ]]; then
    [[ "$current" == *,* ]] && before="${current%,*},"
    COMPREPLY=($(compgen -P "$before" -W "$values" -- "${current##*,}"))
    return
  fi
)";

std::string Bash(const std::vector<Level>& levels) {
  std::string script =
      absl::StrCat("_syncline() {\n  local typed=(\"${COMP_WORDS[@]:1:COMP_CWORD-1}\")\n",
                   FindPath(levels), "  local words=\"\"\n  case \"$path\" in\n");
  for (const Level& level : levels) {
    absl::StrAppend(&script, "    \"", level.path, "\") words=\"", absl::StrJoin(level.words, " "),
                    "\" ;;\n");
  }
  absl::StrAppend(
      &script, "  esac\n  local values=\"\"\n",
      absl::StrReplaceAll(kBashValues, {{"%CASES%", ValueCases(levels, "values=\"%VALUES%\"")}}),
      "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
      "}\n"
      "complete -o default -F _syncline syncline\n");
  return script;
}

std::string Zsh(const std::vector<Level>& levels) {
  std::string script = absl::StrCat("#compdef syncline\n_syncline() {\n  local -a typed words\n",
                                    "  typed=(\"${(@)words[2,CURRENT-1]}\")\n", FindPath(levels),
                                    "  local -a choices\n  case \"$path\" in\n");
  // zsh ties `path` to PATH and completion to `words`: other names.
  script = absl::StrReplaceAll(script, {{"local -a typed words", "local -a typed"},
                                        {"local path=", "local chain="},
                                        {"${path:+$path }", "${chain:+$chain }"},
                                        {") path=\"$candidate\"", ") chain=\"$candidate\""},
                                        {"case \"$path\"", "case \"$chain\""}});
  for (const Level& level : levels) {
    std::vector<std::string> choices;
    for (size_t i = 0; i < level.words.size(); ++i) {
      choices.push_back(
          absl::StrCat("'", level.words[i], ":",
                       absl::StrReplaceAll(level.help[i], {{":", "\\:"}, {"'", "'\\''"}}), "'"));
    }
    absl::StrAppend(&script, "    \"", level.path, "\") choices=(", absl::StrJoin(choices, " "),
                    ") ;;\n");
  }
  absl::StrAppend(&script, "  esac\n  case \"$chain ${typed[-1]}\" in\n",
                  ValueCases(levels, "_values -s , value %VALUES%; return"),
                  "  esac\n"
                  "  _describe 'syncline' choices || _files\n"
                  "}\n"
                  "compdef _syncline syncline\n");
  return script;
}

// Where the first command stands there are no files; elsewhere there may be.
std::string Fish(const std::vector<Level>& levels) {
  std::vector<std::string> commands;
  for (const Level& level : levels) {
    if (!level.path.empty() && !absl::StrContains(level.path, ' ')) commands.push_back(level.path);
  }
  const std::string first = "not __fish_seen_subcommand_from " + absl::StrJoin(commands, " ");
  std::string script = absl::StrCat("complete -c syncline -n '", first, "' -f\n");
  for (const Level& level : levels) {
    const std::string condition =
        level.path.empty()
            ? first
            : absl::StrCat(
                  "__fish_seen_subcommand_from ",
                  absl::StrReplaceAll(level.path, {{" ", "; and __fish_seen_subcommand_from "}}));
    for (size_t i = 0; i < level.words.size(); ++i) {
      const std::string& word = level.words[i];
      const bool option = absl::StartsWith(word, "--");
      absl::StrAppend(&script, "complete -c syncline -n '", condition, "' ", option ? "-l " : "-a ",
                      option ? word.substr(2) : word, " -d '",
                      absl::StrReplaceAll(level.help[i], {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
      const auto values = level.values.find(word);
      if (values != level.values.end() && values->second.empty()) absl::StrAppend(&script, " -r");
      if (values != level.values.end() && !values->second.empty()) {
        absl::StrAppend(&script, " -x -a '", absl::StrJoin(values->second, " "), "'");
      }
      absl::StrAppend(&script, "\n");
    }
  }
  return script;
}

int Completion(const CLI::App& app, const Context& context, const std::string& shell) {
  std::vector<Level> levels;
  Collect(app, "", &levels);
  *context.out << (shell == "bash" ? Bash(levels) : shell == "zsh" ? Zsh(levels) : Fish(levels));
  return kDone;
}

}  // namespace

void RegisterCompletion(CLI::App* app, Context* context) {
  CLI::App* const completion =
      app->add_subcommand("completion", "Print a script that completes commands in a shell");
  const auto shell = std::make_shared<std::string>();
  completion->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer(
      "Examples:\n"
      "  source <(syncline completion bash)\n"
      "  syncline completion fish > ~/.config/fish/completions/syncline.fish");
  completion->callback(
      [=] { context->action = [=] { return Completion(*app, *context, *shell); }; });
}

}  // namespace syncline::cli
