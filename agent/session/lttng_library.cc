// SPDX-License-Identifier: Apache-2.0
#include "agent/session/lttng_library.h"

#include <lttng/channel.h>
#include <lttng/destruction-handle.h>
#include <lttng/lttng.h>
#include <lttng/session-descriptor.h>
#include <lttng/tracker.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/session/buffer_sizing.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

// The metadata must be on disk while the session runs: should the session daemon be killed, a trace
// without metadata cannot be read.
constexpr unsigned kMetadataFlushPeriodUs = 200'000;
// For the same reason, and for live counts of bytes: what a kill may cost, at one packet per busy
// CPU.
constexpr unsigned kDataFlushPeriodUs = 1'000'000;
constexpr unsigned kPendingEveryUs = 50'000;

struct HandleDeleter {
  void operator()(lttng_handle* handle) const { lttng_destroy_handle(handle); }
};
using Handle = std::unique_ptr<lttng_handle, HandleDeleter>;

struct ChannelDeleter {
  void operator()(lttng_channel* channel) const { lttng_channel_destroy(channel); }
};
using Channel = std::unique_ptr<lttng_channel, ChannelDeleter>;

struct EventDeleter {
  void operator()(lttng_event* event) const { lttng_event_destroy(event); }
};
using Event = std::unique_ptr<lttng_event, EventDeleter>;

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};

absl::Status LttngStatus(int code, std::string_view what) {
  const int error = code < 0 ? -code : code;
  const std::string message = absl::StrCat(absl::string_view(what.data(), what.size()), ": ",
                                           lttng_strerror(-error), " (LTTng ", error, ")");
  switch (error) {
    case LTTNG_ERR_NO_SESSIOND:
      return absl::UnavailableError(message);
    case LTTNG_ERR_SESS_NOT_FOUND:
    case LTTNG_ERR_NO_SESSION:
      return absl::NotFoundError(message);
    case LTTNG_ERR_EXIST_SESS:
      return absl::AlreadyExistsError(message);
    case LTTNG_ERR_FATAL:  // what it says until it has noticed
    case LTTNG_ERR_NO_CONSUMER:
    case LTTNG_ERR_NO_USTCONSUMERD:
    case LTTNG_ERR_UST_CONSUMER64_FAIL:
    case LTTNG_ERR_UST_CONSUMER32_FAIL:
      return absl::AbortedError(absl::StrCat(message,
                                             "; the session daemon's consumer daemon, "
                                             "which writes the files, has died"));
    case LTTNG_ERR_EPERM:
      return absl::PermissionDeniedError(message);
    default:
      return absl::FailedPreconditionError(message);
  }
}

lttng_domain UstDomain(bool per_process) {
  lttng_domain domain;
  std::memset(&domain, 0, sizeof domain);
  domain.type = LTTNG_DOMAIN_UST;
  domain.buf_type = per_process ? LTTNG_BUFFER_PER_PID : LTTNG_BUFFER_PER_UID;
  return domain;
}

template <size_t kSize>
absl::Status CopyName(const std::string& from, char (&to)[kSize]) {
  if (from.empty() || from.size() >= kSize) {
    return absl::InvalidArgumentError(absl::StrCat("Name is empty or too long: \"", from, "\""));
  }
  std::memcpy(to, from.c_str(), from.size() + 1);
  return absl::OkStatus();
}

absl::Status EnableMetadataChannel(lttng_handle* handle, lttng_domain* domain) {
  Channel channel(lttng_channel_create(domain));
  if (channel == nullptr) return absl::InternalError("Cannot create a metadata channel");
  std::strcpy(channel->name, "metadata");
  channel->enabled = 1;
  channel->attr.subbuf_size = MetadataSubbufferBytes();
  channel->attr.num_subbuf = kMetadataSubbufferCount;
  channel->attr.switch_timer_interval = kMetadataFlushPeriodUs;
  const int result = lttng_enable_channel(handle, channel.get());
  if (result < 0) return LttngStatus(result, "Cannot enable the metadata channel");
  return absl::OkStatus();
}

absl::Status EnableDataChannel(lttng_handle* handle, lttng_domain* domain,
                               const SessionSpec& spec) {
  Channel channel(lttng_channel_create(domain));
  if (channel == nullptr) return absl::InternalError("Cannot create a channel");
  SYNCLINE_RETURN_IF_ERROR(CopyName(spec.channel, channel->name));
  channel->enabled = 1;
  channel->attr.overwrite = 0;
  channel->attr.subbuf_size = spec.subbuffer_bytes;
  channel->attr.num_subbuf = spec.subbuffer_count;
  channel->attr.switch_timer_interval = kDataFlushPeriodUs;
  channel->attr.read_timer_interval = 0;
  channel->attr.output = LTTNG_EVENT_MMAP;
  const int result = lttng_enable_channel(handle, channel.get());
  if (result < 0) {
    return LttngStatus(result,
                       absl::StrCat("Cannot enable channel \"", spec.channel, "\" with ",
                                    spec.subbuffer_count, " x ", spec.subbuffer_bytes, " bytes"));
  }
  return absl::OkStatus();
}

struct TrackerDeleter {
  void operator()(lttng_process_attr_tracker_handle* tracker) const {
    lttng_process_attr_tracker_handle_destroy(tracker);
  }
};

// Before the session starts: LTTng says nothing to programs of others then.
absl::Status RecordOnly(const std::string& session, const std::vector<uint32_t>& users) {
  lttng_process_attr_tracker_handle* found = nullptr;
  const lttng_error_code code = lttng_session_get_tracker_handle(
      session.c_str(), LTTNG_DOMAIN_UST, LTTNG_PROCESS_ATTR_VIRTUAL_USER_ID, &found);
  const std::unique_ptr<lttng_process_attr_tracker_handle, TrackerDeleter> tracker(found);
  if (code != LTTNG_OK) return LttngStatus(code, "Cannot choose the users of a session");
  bool done =
      lttng_process_attr_tracker_handle_set_tracking_policy(
          found, LTTNG_TRACKING_POLICY_INCLUDE_SET) == LTTNG_PROCESS_ATTR_TRACKER_HANDLE_STATUS_OK;
  for (const uint32_t user : users) {
    done = done && lttng_process_attr_virtual_user_id_tracker_handle_add_uid(found, user) ==
                       LTTNG_PROCESS_ATTR_TRACKER_HANDLE_STATUS_OK;
  }
  if (!done) return absl::InternalError("LTTng does not let the users of a session be chosen");
  return absl::OkStatus();
}

absl::Status EnableEvent(lttng_handle* handle, const std::string& pattern,
                         const std::string& channel) {
  Event event(lttng_event_create());
  if (event == nullptr) return absl::InternalError("Cannot create an event rule");
  event->type = LTTNG_EVENT_TRACEPOINT;
  SYNCLINE_RETURN_IF_ERROR(CopyName(pattern, event->name));
  event->loglevel_type = LTTNG_EVENT_LOGLEVEL_ALL;
  event->loglevel = -1;
  const int result =
      lttng_enable_event_with_exclusions(handle, event.get(), channel.c_str(), nullptr, 0, nullptr);
  if (result < 0)
    return LttngStatus(result, absl::StrCat("Cannot enable events \"", pattern, "\""));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> LttngLibrary::DaemonAlive() { return lttng_session_daemon_alive() == 1; }

absl::Status LttngLibrary::Create(const SessionSpec& spec) {
  lttng_session_descriptor* descriptor =
      lttng_session_descriptor_local_create(spec.name.c_str(), spec.trace_directory.c_str());
  if (descriptor == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("Cannot describe session \"", spec.name,
                                                   "\" at \"", spec.trace_directory, "\""));
  }
  const lttng_error_code created = lttng_create_session_ext(descriptor);
  lttng_session_descriptor_destroy(descriptor);
  if (created != LTTNG_OK) {
    return LttngStatus(created, absl::StrCat("Cannot create session \"", spec.name, "\""));
  }
  lttng_domain domain = UstDomain(spec.buffers_per_process);
  Handle handle(lttng_create_handle(spec.name.c_str(), &domain));
  if (handle == nullptr) return absl::InternalError("Cannot create an LTTng handle");
  SYNCLINE_RETURN_IF_ERROR(EnableMetadataChannel(handle.get(), &domain));
  if (!spec.only_users.empty()) {
    SYNCLINE_RETURN_IF_ERROR(RecordOnly(spec.name, spec.only_users));
  }
  SYNCLINE_RETURN_IF_ERROR(EnableDataChannel(handle.get(), &domain, spec));
  for (const std::string& pattern : spec.events) {
    SYNCLINE_RETURN_IF_ERROR(EnableEvent(handle.get(), pattern, spec.channel));
  }
  return absl::OkStatus();
}

absl::Status LttngLibrary::Start(const std::string& session) {
  const int result = lttng_start_tracing(session.c_str());
  if (result < 0 && result != -LTTNG_ERR_TRACE_ALREADY_STARTED) {
    return LttngStatus(result, absl::StrCat("Cannot start session \"", session, "\""));
  }
  return absl::OkStatus();
}

absl::Status LttngLibrary::Stop(const std::string& session) {
  const int result = lttng_stop_tracing(session.c_str());
  if (result >= 0) return absl::OkStatus();
  if (result != -LTTNG_ERR_TRACE_ALREADY_STOPPED) {
    return LttngStatus(result, absl::StrCat("Cannot stop session \"", session, "\""));
  }
  // Who stopped it may have been replaced before the data was written.
  while (lttng_data_pending(session.c_str()) == 1) ::usleep(kPendingEveryUs);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ChannelCounters>> LttngLibrary::Counters(const std::string& session) {
  lttng_domain* listed = nullptr;
  const int domains = lttng_list_domains(session.c_str(), &listed);
  const std::unique_ptr<lttng_domain, FreeDeleter> domains_owner(listed);
  if (domains < 0) {
    return LttngStatus(domains, absl::StrCat("Cannot list session \"", session, "\""));
  }
  std::vector<ChannelCounters> counters;
  for (int d = 0; d < domains; ++d) {
    Handle handle(lttng_create_handle(session.c_str(), &listed[d]));
    lttng_channel* channels = nullptr;
    const int count = lttng_list_channels(handle.get(), &channels);
    const std::unique_ptr<lttng_channel, FreeDeleter> channels_owner(channels);
    if (count < 0) return LttngStatus(count, "Cannot list channels");
    for (int i = 0; i < count; ++i) {
      ChannelCounters one;
      one.name = channels[i].name;
      if (one.name == "metadata") continue;
      lttng_channel_get_discarded_event_count(&channels[i], &one.discarded_events);
      lttng_channel_get_lost_packet_count(&channels[i], &one.lost_packets);
      counters.push_back(std::move(one));
    }
  }
  return counters;
}

absl::Status LttngLibrary::Destroy(const std::string& session, int wait_ms) {
  lttng_destruction_handle* handle = nullptr;
  const lttng_error_code code = lttng_destroy_session_ext(session.c_str(), &handle);
  if (code != LTTNG_OK) {
    return LttngStatus(code, absl::StrCat("Cannot destroy session \"", session, "\""));
  }
  const auto waited = lttng_destruction_handle_wait_for_completion(handle, wait_ms);
  lttng_destruction_handle_destroy(handle);
  if (waited == LTTNG_DESTRUCTION_HANDLE_STATUS_COMPLETED) return absl::OkStatus();
  if (waited == LTTNG_DESTRUCTION_HANDLE_STATUS_TIMEOUT) {
    return absl::DeadlineExceededError(
        absl::StrCat("Session \"", session, "\" was not flushed within ", wait_ms, " ms"));
  }
  return absl::UnavailableError(absl::StrCat(
      "The session daemon closed the connection while destroying session \"", session, "\""));
}

absl::StatusOr<std::vector<std::string>> LttngLibrary::Sessions() {
  lttng_session* sessions = nullptr;
  const int count = lttng_list_sessions(&sessions);
  const std::unique_ptr<lttng_session, FreeDeleter> owner(sessions);
  if (count == -LTTNG_ERR_NO_SESSIOND) return std::vector<std::string>();
  if (count < 0) return LttngStatus(count, "Cannot list sessions");
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.emplace_back(sessions[i].name);
  return names;
}

absl::StatusOr<std::vector<int32_t>> LttngLibrary::Programs() {
  lttng_domain domain = UstDomain(false);
  Handle handle(lttng_create_handle("", &domain));
  if (handle == nullptr) return absl::InternalError("Cannot create an LTTng handle");
  lttng_event* events = nullptr;
  const int count = lttng_list_tracepoints(handle.get(), &events);
  const std::unique_ptr<lttng_event, FreeDeleter> owner(events);
  if (count < 0) return LttngStatus(count, "Cannot list the programs of the session daemon");
  std::set<int32_t> pids;
  for (int i = 0; i < count; ++i) pids.insert(events[i].pid);
  return std::vector<int32_t>(pids.begin(), pids.end());
}

}  // namespace syncline::agent
