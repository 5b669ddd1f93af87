// SPDX-License-Identifier: Apache-2.0
#include "agent/tfprofiler/port_prober.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/tfprofiler/profile_shares.h"
#include "agent/tfprofiler/profiler_client.h"
#include "common/parallel.h"

namespace syncline::agent {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr size_t kThreadsMax = 16;
constexpr uint64_t kAnswerBytesMax = 1 << 20;  // of a worker with very many devices

}  // namespace

PortProber::PortKey PortProber::KeyOf(const TensorFlowProcess& process,
                                      const ListeningSocket& socket) {
  return {process.entry.pid, process.entry.start_ticks, socket.inode};
}

PortProber::Answer PortProber::Ask(const Question& question, int64_t until_ns) const {
  const auto left_ms = [&] {
    const int64_t left_ns = until_ns - clock_->MonotonicNs();
    return std::min(options_.port_limit_ms, static_cast<int>(left_ns / kNsPerMs));
  };
  Answer answer;
  answer.refusal = absl::StrCat("port ", question.socket->port, " was not queried in time");
  if (left_ms() <= 0) return answer;
  const auto client = ProfilerClient::Connect({.pid = question.process->entry.pid,
                                               .net_namespace = question.process->net_namespace,
                                               .address = question.socket->address,
                                               .port = question.socket->port},
                                              left_ms(), kAnswerBytesMax);
  const absl::Status is = client.ok() ? (*client)->Check(left_ms()) : client.status();
  answer.is_profiler = is.ok();
  answer.final = is.ok() || absl::IsNotFound(is);
  answer.refusal = is.ok() ? "" : absl::StrCat("port ", question.socket->port, ": ", is.message());
  if (!is.ok()) return answer;
  auto identity = (*client)->Identify(left_ms());
  if (identity.ok()) {
    answer.task = std::move(identity->task);
    answer.incarnation = std::move(identity->incarnation);
  } else {
    answer.final = absl::IsNotFound(identity.status());
  }
  return answer;
}

void PortProber::AskAll(const std::vector<Question>& questions) {
  const int64_t until_ns = clock_->MonotonicNs() + options_.limit_ms * kNsPerMs;
  std::vector<uint32_t> users;
  for (const Question& question : questions) users.push_back(question.process->entry.uid);
  const std::vector<size_t> order = InTurns(users, kPortsOfUserMax);
  std::vector<Answer> answers(questions.size());
  for (size_t i = 0; i < questions.size(); ++i) {
    answers[i].refusal =
        absl::StrCat("port ", questions[i].socket->port, " was not queried: user ", users[i],
                     "'s programs with TensorFlow listen on more than ", kPortsOfUserMax);
  }
  InParallel(order.size(), kThreadsMax,
             [&](size_t i) { answers[order[i]] = Ask(questions[order[i]], until_ns); });
  for (size_t i = 0; i < questions.size(); ++i) {
    answers_[questions[i].key] = std::move(answers[i]);
  }
}

FoundProfiler PortProber::Choose(const TensorFlowProcess& process) {
  FoundProfiler found;
  found.process = process.entry;
  found.net_namespace = process.net_namespace;
  found.absence = "it listens on no port";
  found.runs_collectives = process.runs_collectives;
  found.jax = process.jax;
  for (const ListeningSocket& socket : process.sockets) {
    const Answer& answer = answers_[KeyOf(process, socket)];
    // One profile at a time in a process, whatever port it is asked at: a worker's own is the one
    // that tells who it is.
    const bool better = found.port == 0 || (found.task.empty() && !answer.task.empty());
    if (answer.is_profiler && better) {
      found.port = socket.port;
      found.address = socket.address;
      found.task = answer.task;
      found.incarnation = answer.incarnation;
      found.absence.clear();
    } else if (found.port == 0) {
      found.absence = answer.refusal;
    }
  }
  if (found.jax && found.port == 0) {
    found.absence = "it serves no profiler (jax.profiler.start_server(PORT) in the program does)";
  }
  return found;
}

std::vector<FoundProfiler> PortProber::Find() {
  const std::vector<TensorFlowProcess> processes = FindTensorFlow(options_.proc, options_.only_uid);
  const std::lock_guard lock(mutex_);
  std::map<PortKey, Answer> known;
  std::vector<Question> questions;
  for (const TensorFlowProcess& process : processes) {
    for (const ListeningSocket& socket : process.sockets) {
      const PortKey key = KeyOf(process, socket);
      const auto it = answers_.find(key);
      if (it != answers_.end() && it->second.final) {
        known.insert(*it);
      } else {
        questions.push_back({key, &process, &socket});
      }
    }
  }
  answers_ = std::move(known);  // and what belongs to processes that have ended is forgotten
  AskAll(questions);
  std::vector<FoundProfiler> found;
  for (const TensorFlowProcess& process : processes) found.push_back(Choose(process));
  return found;
}

}  // namespace syncline::agent
