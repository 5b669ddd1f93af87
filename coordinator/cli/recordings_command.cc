// SPDX-License-Identifier: Apache-2.0
// syncline status, stop, release: what is being recorded where; end it; forget it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/duration_text.h"
#include "common/parallel.h"
#include "common/text.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"
#include "coordinator/cli/parse.h"
#include "coordinator/cli/process_text.h"
#include "coordinator/cli/terminal.h"

namespace syncline::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr fleet::AgentClient::Timeout kStatusTimeout{10'000};
constexpr fleet::AgentClient::Timeout kStopTimeout{90'000};

// 0 when it worked on every node, 3 on some, 1 on none.
int ExitFor(size_t good, size_t all) {
  if (good == all) return kDone;
  return good == 0 ? kFailed : kIncomplete;
}

// Asks every node and prints its failures; the answers of those that answered.
template <class Response, class Call>
std::vector<absl::StatusOr<Response>> AskAll(const std::vector<fleet::Member>& members,
                                             const Call& call) {
  std::vector<absl::StatusOr<Response>> answers(members.size(), absl::UnknownError("not asked"));
  InParallel(members.size(), 128, [&](size_t i) { answers[i] = call(*members[i].client); });
  return answers;
}

// "-" without a lease: nothing runs, or it ends now.
std::string LeaseText(const v1::RecordingInfo& info) {
  if (info.lease_remaining_ms() == 0) return "-";
  return DurationText(info.lease_remaining_ms() * 1'000'000);
}

Json ToJson(const v1::RecordingInfo& info) {
  Json json;
  json["recording_id"] = info.recording_id();
  json["state"] = StateName(info.state());
  json["holder"] = info.holder();
  json["lease_remaining_ms"] = info.lease_remaining_ms();
  json["bytes"] = info.bytes();
  json["failure"] = info.failure();
  json["guard_pid"] = info.guard_pid();
  return json;
}

// The process that ends the recording if its agent dies, as `ps` shows it.
std::string GuardText(const v1::RecordingInfo& info) {
  return info.guard_pid() == 0 ? "" : absl::StrCat("syncline-guard ", info.guard_pid());
}

int Status(const Context& context, bool json) {
  const absl::StatusOr<std::vector<fleet::Member>> members = ConnectTargets(context);
  if (!members.ok()) return Fail(context, members.status());
  const auto answers = AskAll<v1::StatusResponse>(*members, [](fleet::AgentClient& client) {
    return client.Status(v1::StatusRequest(), kStatusTimeout);
  });
  Table table({"NODE", "RECORDING", "STATE", "HOLDER", "LEASE", "GUARD", "SIZE", "FAILURE"});
  Json all = Json::array();
  size_t good = 0;
  size_t rows = 0;
  for (size_t i = 0; i < members->size(); ++i) {
    const std::string& name = (*members)[i].node.name;
    Json node;
    node["name"] = name;
    node["reachable"] = answers[i].ok();
    node["recordings"] = Json::array();
    if (!answers[i].ok()) {
      PrintNote(context, "error", name, StdView(answers[i].status().message()), "");
      node["failure"] = std::string(answers[i].status().message());
    } else {
      ++good;
      for (const v1::RecordingInfo& info : answers[i]->recordings()) {
        ++rows;
        node["recordings"].push_back(ToJson(info));
        table.AddRow({name, Printable(info.recording_id()), StateName(info.state()),
                      Printable(info.holder()), LeaseText(info), GuardText(info),
                      FormatSize(info.bytes()), Printable(info.failure())});
      }
    }
    all.push_back(std::move(node));
  }
  if (json) {
    *context.out << all.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else if (rows > 0) {
    table.Print(*context.out);
  } else if (good > 0) {
    *context.out << "No recordings on " << good << (good == 1 ? " node\n" : " nodes\n");
  }
  return ExitFor(good, members->size());
}

// Stop and release: the same shape. A node that never knew the recording is no failure of the
// command unless none did.
template <class Response, class Call>
int ForRecording(const Context& context, const std::string& id, const char* done,
                 const Call& call) {
  const absl::StatusOr<std::vector<fleet::Member>> members = ConnectTargets(context);
  if (!members.ok()) return Fail(context, members.status());
  const auto answers = AskAll<Response>(*members, call);
  size_t good = 0;
  size_t unknown = 0;
  for (size_t i = 0; i < members->size(); ++i) {
    const std::string& name = (*members)[i].node.name;
    if (answers[i].ok()) {
      ++good;
      if (!context.quiet) *context.out << name << ": " << done << '\n';
    } else if (absl::IsNotFound(answers[i].status())) {
      ++unknown;
    } else {
      PrintNote(context, "error", name, StdView(answers[i].status().message()), "");
    }
  }
  if (unknown == members->size()) {
    return Fail(context,
                absl::NotFoundError(absl::StrCat("No node knows the recording \"", id,
                                                 "\"; `syncline status` lists the recordings")));
  }
  return ExitFor(good, members->size() - unknown);
}

int Stop(const Context& context, const std::string& id) {
  v1::StopRequest request;
  request.set_recording_id(id);
  request.set_reason(absl::StrCat("stopped by ", context.created_by.user));
  return ForRecording<v1::StopResponse>(context, id, "stopped", [&](fleet::AgentClient& client) {
    return client.Stop(request, kStopTimeout);
  });
}

int Release(const Context& context, const std::string& id, bool force) {
  v1::ReleaseRequest request;
  request.set_recording_id(id);
  request.set_even_if_not_fetched(force);
  return ForRecording<v1::ReleaseResponse>(
      context, id, "released",
      [&](fleet::AgentClient& client) -> absl::StatusOr<v1::ReleaseResponse> {
        absl::StatusOr<v1::ReleaseResponse> released = client.Release(request, kStopTimeout);
        if (released.ok() && !released->existed()) return absl::NotFoundError("unknown");
        return released;
      });
}

}  // namespace

void RegisterStatus(CLI::App* app, Context* context) {
  CLI::App* const status =
      app->add_subcommand("status", "Show what is being recorded, and on which nodes");
  const auto json = std::make_shared<bool>(false);
  status->add_flag("--json", *json, "As JSON");
  status->footer("Example:\n  syncline status --hosts hosts.txt --tls-dir tls");
  status->callback([=] { context->action = [=] { return Status(*context, *json); }; });
}

void RegisterStop(CLI::App* app, Context* context) {
  CLI::App* const stop =
      app->add_subcommand("stop", "Stop a recording; its data stays on the nodes");
  const auto id = std::make_shared<std::string>();
  stop->add_option("ID", *id, "The recording, as `syncline status` shows it")->required();
  stop->footer("Example:\n  syncline stop 20261121-093012-7f3a --hosts hosts.txt --tls-dir tls");
  stop->callback([=] { context->action = [=] { return Stop(*context, *id); }; });
}

void RegisterRelease(CLI::App* app, Context* context) {
  CLI::App* const release =
      app->add_subcommand("release", "Delete a recording's data on the nodes");
  const auto id = std::make_shared<std::string>();
  const auto force = std::make_shared<bool>(false);
  release->add_option("ID", *id, "The recording, as `syncline status` shows it")->required();
  release->add_flag("--force", *force, "Even if it was never fetched: the data is lost");
  release->footer(
      "Example:\n  syncline release 20261121-093012-7f3a --hosts hosts.txt --tls-dir tls");
  release->callback([=] { context->action = [=] { return Release(*context, *id, *force); }; });
}

}  // namespace syncline::cli
