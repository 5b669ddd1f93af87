// SPDX-License-Identifier: Apache-2.0
// The commands of `syncline`, one Register function each: adds a subcommand to `app` whose callback
// sets context->action. `context` outlives the app's parsing.
#ifndef SYNCLINE_COORDINATOR_CLI_COMMANDS_H_
#define SYNCLINE_COORDINATOR_CLI_COMMANDS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace syncline::cli {

struct Context;

// A check of an option whose value must not be empty: `--hosts "$UNSET"` must not fall back to
// another fleet, nor `--out "$UNSET"` to another directory. "" when it is fine, else what is wrong.
std::string IsGiven(const std::string& text);

// The subcommands of `app` that help shows. Those without a name are groups of options.
std::vector<const CLI::App*> ShownCommands(const CLI::App& app);

// --assume-asymmetry, of the commands that tell what is likely from what is proven.
void AddAsymmetry(CLI::App* command, int64_t* percent);

void RegisterCerts(CLI::App* app, Context* context);
void RegisterNodes(CLI::App* app, Context* context);
void RegisterRecord(CLI::App* app, Context* context);
void RegisterVtune(CLI::App* app, Context* context);
void RegisterFetch(CLI::App* app, Context* context);
void RegisterStatus(CLI::App* app, Context* context);
void RegisterStop(CLI::App* app, Context* context);
void RegisterRelease(CLI::App* app, Context* context);
void RegisterClocks(CLI::App* app, Context* context);
void RegisterMerge(CLI::App* app, Context* context);
void RegisterEvents(CLI::App* app, Context* context);
void RegisterReport(CLI::App* app, Context* context);
void RegisterWhy(CLI::App* app, Context* context);
void RegisterStacks(CLI::App* app, Context* context);
void RegisterSelftest(CLI::App* app, Context* context);
void RegisterRun(CLI::App* app, Context* context);
void RegisterEnv(CLI::App* app, Context* context);
void RegisterPack(CLI::App* app, Context* context);
void RegisterCompletion(CLI::App* app, Context* context);
void RegisterManPages(CLI::App* app, Context* context);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_COMMANDS_H_
