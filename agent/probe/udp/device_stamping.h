// SPDX-License-Identifier: Apache-2.0
// Whether a network device stamps packets in hardware, and if not, why: asked, never changed, for
// the setting belongs to the machine's administrator (ptp4l, chrony).
#ifndef SYNCLINE_AGENT_PROBE_UDP_DEVICE_STAMPING_H_
#define SYNCLINE_AGENT_PROBE_UDP_DEVICE_STAMPING_H_

#include <cstdint>
#include <optional>
#include <string>

namespace syncline::probe {

// What the kernel says about one device; see ETHTOOL_GET_TS_INFO and SIOCGHWTSTAMP.
struct DeviceFacts {
  std::string device;
  std::string driver;            // "" when not told
  int error_number = 0;          // why it does not tell what follows
  uint32_t so_timestamping = 0;  // SOF_TIMESTAMPING_*
  int clock = -1;                // N of /dev/ptpN
  uint32_t tx_types = 0;         // 1 << HWTSTAMP_TX_*
  uint32_t rx_filters = 0;       // 1 << HWTSTAMP_FILTER_*
  struct Setting {
    int tx_type = 0;
    int rx_filter = 0;
  };
  std::optional<Setting> setting;  // nothing: many drivers do not tell
  // net.core.tstamp_allow_data: a packet may come back with its stamp, which then says through
  // which device it left.
  bool packets_come_back = true;
};

// Needs no privileges. `fd`: any socket.
DeviceFacts InspectDevice(int fd, const std::string& device);

// Why packets through it cannot have hardware stamps, and what an administrator could do; "" when
// they can, as far as is known.
std::string WhyNoHardwareStamps(const DeviceFacts& facts);

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_DEVICE_STAMPING_H_
