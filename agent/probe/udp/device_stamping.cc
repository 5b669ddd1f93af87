// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/device_stamping.h"

#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace syncline::probe {
namespace {

constexpr uint32_t kTransmitFlags = SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
constexpr uint32_t kReceiveFlags = SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;

bool Has(uint32_t bits, uint32_t wanted) { return (bits & wanted) == wanted; }

// False with errno set.
bool Ask(int fd, unsigned long request, const std::string& device, void* data) {
  ifreq question{};
  if (device.empty() || device.size() >= sizeof question.ifr_name) {
    errno = ENODEV;
    return false;
  }
  std::memcpy(question.ifr_name, device.data(), device.size());
  question.ifr_data = static_cast<char*>(data);
  return ::ioctl(fd, request, &question) == 0;
}

std::string SwitchOn(const std::string& device) {
  return absl::StrCat(" (an administrator can: hwstamp_ctl -i ", device, " -t 1 -r 1)");
}

// Of a device that has a clock and stamps with it: whether it does so now, with packets like ours.
std::string WhyNotNow(const DeviceFacts& facts) {
  if (!facts.setting) return "";
  if (facts.setting->tx_type == HWTSTAMP_TX_OFF &&
      facts.setting->rx_filter == HWTSTAMP_FILTER_NONE) {
    return absl::StrCat(facts.device, " can stamp in hardware, but that is switched off",
                        SwitchOn(facts.device));
  }
  if (facts.setting->tx_type == HWTSTAMP_TX_OFF) {
    return absl::StrCat(facts.device, " does not stamp what it sends", SwitchOn(facts.device));
  }
  if (facts.setting->rx_filter == HWTSTAMP_FILTER_NONE) {
    return absl::StrCat(facts.device, " does not stamp what it receives", SwitchOn(facts.device));
  }
  if (facts.setting->rx_filter != HWTSTAMP_FILTER_ALL) {
    return absl::StrCat(facts.device, " stamps only packets of PTP or NTP that it receives",
                        SwitchOn(facts.device));
  }
  return "";
}

}  // namespace

DeviceFacts InspectDevice(int fd, const std::string& device) {
  DeviceFacts facts{.device = device};
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (Ask(fd, SIOCETHTOOL, device, &driver)) {
    facts.driver.assign(driver.driver, ::strnlen(driver.driver, sizeof driver.driver));
  }
  ethtool_ts_info info{};
  info.cmd = ETHTOOL_GET_TS_INFO;
  if (!Ask(fd, SIOCETHTOOL, device, &info)) {
    facts.error_number = errno;
    return facts;
  }
  facts.so_timestamping = info.so_timestamping;
  facts.clock = info.phc_index;
  facts.tx_types = info.tx_types;
  facts.rx_filters = info.rx_filters;
  hwtstamp_config config{};
  if (Ask(fd, SIOCGHWTSTAMP, device, &config)) {
    facts.setting = {.tx_type = config.tx_type, .rx_filter = config.rx_filter};
  }
  char allowed = '1';
  std::ifstream("/proc/sys/net/core/tstamp_allow_data") >> allowed;
  facts.packets_come_back = allowed != '0';
  return facts;
}

std::string WhyNoHardwareStamps(const DeviceFacts& facts) {
  const std::string& device = facts.device;
  if (device.empty()) return "the network device towards the peer is not known";
  if (facts.driver == "bonding" || facts.driver == "team") {
    return absl::StrCat(device, " joins several devices, over which hardware stamps are not used");
  }
  if (facts.driver == "bridge") {
    return absl::StrCat(device, " is a bridge, which has no hardware clock");
  }
  if (facts.error_number != 0) {
    return absl::StrCat(device, " does not report whether it stamps in hardware: ",
                        std::strerror(facts.error_number));
  }
  const bool transmits =
      Has(facts.so_timestamping, kTransmitFlags) && Has(facts.tx_types, 1u << HWTSTAMP_TX_ON);
  const bool receives =
      Has(facts.so_timestamping, kReceiveFlags) && Has(facts.rx_filters, 1u << HWTSTAMP_FILTER_ALL);
  const bool any =
      Has(facts.so_timestamping, kTransmitFlags) || Has(facts.so_timestamping, kReceiveFlags);
  if (facts.clock < 0) {
    return any ? absl::StrCat(device, " stamps in hardware with a clock that this host cannot read")
               : absl::StrCat(device, " has no hardware clock");
  }
  if (!any) return absl::StrCat(device, " has a hardware clock, but stamps no packets with it");
  if (!transmits) return absl::StrCat(device, " cannot stamp in hardware what it sends");
  if (!receives) return absl::StrCat(device, " can stamp only packets of PTP or NTP in hardware");
  if (std::string why = WhyNotNow(facts); !why.empty()) return why;
  return facts.packets_come_back
             ? ""
             : "hardware stamps need net.core.tstamp_allow_data = 1 (sysctl), which is 0";
}

}  // namespace syncline::probe
