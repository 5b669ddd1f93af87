// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/cli/commands.h"

namespace syncline::cli {

std::string IsGiven(const std::string& text) { return text.empty() ? "must not be empty" : ""; }

std::vector<const CLI::App*> ShownCommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* child) {
    return !child->get_name().empty() && !child->get_group().empty();
  });
}

namespace {

void AddGlobalOptions(CLI::App* app, Context* context) {
  app->set_version_flag(
      "--version", absl::StrCat("syncline ", context->created_by.version, context->commit_text));
  app->add_option("--hosts", context->hosts_file,
                  "File with a node a line: name address[:port] [role=...]")
      ->check(IsGiven);
  app->add_option("-H,--host", context->host_list,
                  "Nodes a,b,node[01-16], each its own address; with --hosts: only these of the "
                  "file;\nlocal: this machine")
      ->check(IsGiven);
  app->add_option("--tls-dir", context->tls_directory,
                  "Certificates made by `syncline certs` (default: $SYNCLINE_TLS_DIR)");
  app->add_flag("-q,--quiet", context->quiet, "Only results, warnings and errors");
  const auto choice = CLI::IsMember({"auto", "always", "never"});
  app->add_option("--color", context->color, "auto, always or never")->check(choice);
  app->add_option("--progress", context->progress, "auto, always or never")->check(choice);
  app->footer(
      "Without --hosts and -H, nodes come from $SYNCLINE_HOSTS: the path of a hosts file, or a "
      "list.\n"
      "Without all three, this machine is meant: commands then use an agent of your own here, "
      "which "
      "is\n"
      "started when none runs and ends when nobody has called it for 10 minutes. No root is "
      "needed.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but incomplete, 130 interrupted.\n\n"
      "One machine:\n"
      "  syncline run -- torchrun --nproc-per-node 2 train.py\n"
      "  syncline why                                   # in another terminal, while the job runs\n"
      "  syncline record --for 5s                       # or: look at everything\n\n"
      "A cluster:\n"
      "  syncline certs init tls --hosts hosts.txt      # then start syncline-agent on each node\n"
      "  syncline nodes --hosts hosts.txt --tls-dir tls\n"
      "  syncline record --for 10s --hosts hosts.txt --tls-dir tls");
}

// Takes the words after "--" away when the command is `run`: they are a program with options of its
// own, which CLI11 would look at.
std::optional<std::vector<std::string>> TakeProgram(const CLI::App& app,
                                                    std::vector<std::string>* words) {
  const auto dashes = std::find(words->begin(), words->end(), "--");
  const auto command = std::find_if(words->begin(), dashes, [&](const std::string& word) {
    const auto commands =
        app.get_subcommands([&](const CLI::App* one) { return one->check_name(word); });
    return !commands.empty();
  });
  if (dashes == words->end() || command == dashes || *command != "run") return std::nullopt;
  std::vector<std::string> program(dashes + 1, words->end());
  words->erase(dashes, words->end());
  return program;
}

}  // namespace

std::optional<int> ParseCommandLine(const std::vector<std::string>& words, Context* context) {
  const auto app = std::make_shared<CLI::App>(
      "One timeline across machines, with an honest error bar", "syncline");
  app->require_subcommand(1);
  app->fallthrough();
  app->get_formatter()->column_width(28);
  AddGlobalOptions(app.get(), context);
  RegisterCerts(app.get(), context);
  RegisterNodes(app.get(), context);
  RegisterWhy(app.get(), context);
  RegisterStacks(app.get(), context);
  RegisterRecord(app.get(), context);
  RegisterVtune(app.get(), context);
  RegisterFetch(app.get(), context);
  RegisterStatus(app.get(), context);
  RegisterStop(app.get(), context);
  RegisterRelease(app.get(), context);
  RegisterClocks(app.get(), context);
  RegisterSelftest(app.get(), context);
  RegisterRun(app.get(), context);
  RegisterEnv(app.get(), context);
  RegisterMerge(app.get(), context);
  RegisterEvents(app.get(), context);
  RegisterReport(app.get(), context);
  RegisterPack(app.get(), context);
  RegisterCompletion(app.get(), context);
  RegisterManPages(app.get(), context);
  std::vector<std::string> left = words;
  context->program = TakeProgram(*app, &left);
  std::reverse(left.begin(), left.end());  // as CLI11 wants them
  try {
    app->parse(left);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app->exit(error, *context->out, *context->err);
      return kDone;
    }
    const auto chosen = app->get_subcommands();
    const std::vector<std::string> unknown = app->remaining();
    const std::string what = chosen.empty() && !unknown.empty()
                                 ? absl::StrCat("there is no \"", unknown.front(), "\"")
                                 : error.what();
    return Fail(*context,
                absl::InvalidArgumentError(absl::StrCat(
                    what, "\n`syncline ", chosen.empty() ? "" : chosen.front()->get_name() + " ",
                    "--help` says what there is")));
  }
  // Actions may look at the definition of the command line, which must outlive this call.
  context->action = [app, action = std::move(context->action)] { return action(); };
  return std::nullopt;
}

}  // namespace syncline::cli
