// SPDX-License-Identifier: Apache-2.0
// syncline man-pages: manual pages made from the program's own definition of its options, so that
// they cannot differ from it. For packages; not shown in --help.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/status.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"

namespace syncline::cli {
namespace {

// As roff reads it: hyphens that can be copied, and no line that looks like a request.
std::string Roff(const std::string& text) {
  std::vector<std::string> lines =
      absl::StrSplit(absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}}), '\n');
  for (std::string& line : lines) {
    if (!line.empty() && (line[0] == '.' || line[0] == '\'')) line.insert(0, "\\&");
  }
  return absl::StrJoin(lines, "\n");
}

// Help has line breaks where a terminal of 80 columns needs them; a page breaks lines itself.
std::string OneParagraph(const std::string& text) {
  return Roff(absl::StrReplaceAll(text, {{"\n", " "}}));
}

// "-H, --host LIST": names as they are typed, then what they take.
std::string OptionHead(const CLI::Option& option) {
  std::string head = absl::StrCat("\\fB", Roff(option.get_name(false, true)), "\\fR");
  if (option.get_items_expected_max() == 0) return head;
  if (option.get_positional()) return head;
  const std::string type = option.get_type_name();
  const size_t choices = type.find('{');
  const std::string shown =
      choices == std::string::npos
          ? type
          : absl::StrReplaceAll(type.substr(choices + 1, type.find('}') - choices - 1),
                                {{",", "|"}});
  return absl::StrCat(head, " \\fI", Roff(shown), "\\fR");
}

std::string OptionText(const CLI::Option& option) {
  std::string text = OneParagraph(option.get_description());
  if (!option.get_default_str().empty()) {
    absl::StrAppend(&text, " (default: ", Roff(option.get_default_str()), ")");
  }
  return text;
}

std::string Options(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    absl::StrAppend(&text, ".TP\n", OptionHead(*option), "\n", OptionText(*option), "\n");
  }
  // Options of a group ("one of --node, --operator") belong to a child without a name.
  for (const CLI::App* group :
       app.get_subcommands([](const CLI::App* child) { return child->get_name().empty(); })) {
    text += Options(*group);
  }
  return text;
}

// `name`: "syncline-certs-init". Every page stands alone.
std::string Page(const CLI::App& app, const std::string& name, const std::string& version) {
  const std::string typed = absl::StrReplaceAll(name, {{"-", " "}});
  std::string page = absl::StrCat(".TH ", absl::AsciiStrToUpper(Roff(name)), " 1 \"\" \"syncline ",
                                  Roff(version), "\" \"Syncline\"\n.SH NAME\n", Roff(name), " \\- ",
                                  OneParagraph(app.get_description()), "\n");
  const std::vector<const CLI::App*> commands = ShownCommands(app);
  absl::StrAppend(&page, ".SH SYNOPSIS\n\\fB", Roff(typed), "\\fR",
                  commands.empty() ? "" : " \\fICOMMAND\\fR");
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const char* const close = option->get_required() ? "" : "]";
    absl::StrAppend(&page, option->get_required() ? " " : " [", "\\fI",
                    Roff(option->get_name(true)), "\\fR", close);
  }
  absl::StrAppend(&page, " [\\fIOPTIONS\\fR]\n");
  if (!commands.empty()) {
    absl::StrAppend(&page, ".SH COMMANDS\n");
    for (const CLI::App* command : commands) {
      absl::StrAppend(&page, ".TP\n\\fB", Roff(typed + " " + command->get_name()), "\\fR\n",
                      OneParagraph(command->get_description()), "\n");
    }
  }
  absl::StrAppend(&page, ".SH OPTIONS\n", Options(app));
  if (!app.get_footer().empty()) {
    absl::StrAppend(&page, ".SH NOTES\n.nf\n", Roff(app.get_footer()), "\n.fi\n");
  }
  if (name != "syncline") {
    absl::StrAppend(&page, ".SH SEE ALSO\n.BR syncline (1): the options of every command\n");
  }
  return page;
}

absl::Status WritePages(const CLI::App& app, const std::string& name, const std::string& version,
                        const std::filesystem::path& directory) {
  SYNCLINE_RETURN_IF_ERROR(
      WriteFileAtomically(directory / (name + ".1"), Page(app, name, version)));
  for (const CLI::App* command : ShownCommands(app)) {
    SYNCLINE_RETURN_IF_ERROR(
        WritePages(*command, absl::StrCat(name, "-", command->get_name()), version, directory));
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterManPages(CLI::App* app, Context* context) {
  CLI::App* const man = app->add_subcommand("man-pages", "Write the manual pages into a directory");
  man->group("");
  const auto directory = std::make_shared<std::string>();
  man->add_option("DIRECTORY", *directory, "Where; it is made when it does not exist")
      ->required()
      ->check(IsGiven);
  man->callback([=] {
    context->action = [=] {
      absl::Status status = MakeDirectories(*directory, 0755);
      if (status.ok()) {
        status = WritePages(*app, "syncline", context->created_by.version, *directory);
      }
      return status.ok() ? kDone : Fail(*context, status);
    };
  });
}

}  // namespace syncline::cli
