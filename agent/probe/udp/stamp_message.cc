// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/stamp_message.h"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

namespace syncline::probe {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

template <typename T>
std::optional<T> Content(const cmsghdr& header) {
  if (header.cmsg_len < CMSG_LEN(sizeof(T))) return std::nullopt;
  T content;
  std::memcpy(&content, CMSG_DATA(&header), sizeof content);
  return content;
}

int64_t ToNs(const timespec& time) { return int64_t{time.tv_sec} * kNsPerSecond + time.tv_nsec; }

void ReadSocketLevel(const cmsghdr& header, StampMessage* read) {
  if (header.cmsg_type == SCM_TIMESTAMPING) {
    if (const auto stamps = Content<scm_timestamping>(header)) {
      // ts[1] is history.
      read->software_ns = ToNs(stamps->ts[0]);
      read->hardware_ns = ToNs(stamps->ts[2]);
    }
  } else if (header.cmsg_type == SCM_TIMESTAMPING_PKTINFO) {
    // A packet was received by the device that is told here, whatever it then went through.
    if (const auto info = Content<scm_ts_pktinfo>(header)) read->device_index = info->if_index;
  }
}

void ReadCount(const cmsghdr& header, StampMessage* read) {
  const auto error = Content<sock_extended_err>(header);
  if (error && error->ee_errno == ENOMSG && error->ee_origin == SO_EE_ORIGIN_TIMESTAMPING &&
      error->ee_info == SCM_TSTAMP_SND) {
    read->count = error->ee_data;
  }
}

}  // namespace

bool RequestStamps(int fd, int flags) {
  if ((flags & SOF_TIMESTAMPING_OPT_CMSG) != 0) {
    const int on = 1;
    ::setsockopt(fd, SOL_IP, IP_PKTINFO, &on, sizeof on);
    ::setsockopt(fd, SOL_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);  // refused where there is only v4
  }
  return ::setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) == 0;
}

StampMessage ReadStampMessage(const msghdr& message) {
  StampMessage read;
  uint32_t by_address = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr;
       c = CMSG_NXTHDR(const_cast<msghdr*>(&message), c)) {
    if (c->cmsg_level == SOL_SOCKET) ReadSocketLevel(*c, &read);
    if (c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) ReadCount(*c, &read);
    if (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR) ReadCount(*c, &read);
    if (c->cmsg_level == SOL_IP && c->cmsg_type == IP_PKTINFO) {
      if (const auto info = Content<in_pktinfo>(*c)) {
        by_address = static_cast<uint32_t>(info->ipi_ifindex);
      }
    }
    if (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      if (const auto info = Content<in6_pktinfo>(*c)) by_address = info->ipi6_ifindex;
    }
  }
  // Of a packet that was sent this is the device that it left through; of one that was received,
  // perhaps a VLAN or a bridge, which stamps nothing.
  if (read.count) read.device_index = by_address;
  return read;
}

}  // namespace syncline::probe
