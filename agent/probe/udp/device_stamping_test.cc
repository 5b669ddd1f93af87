// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/device_stamping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/net_tstamp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace syncline::probe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A device as `ethtool -T` shows many: clock 0, everything possible and switched on.
DeviceFacts Usable() {
  return {.device = "eth0",
          .driver = "igb",
          .so_timestamping = SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE |
                             SOF_TIMESTAMPING_RAW_HARDWARE | SOF_TIMESTAMPING_TX_SOFTWARE |
                             SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE,
          .clock = 0,
          .tx_types = 1u << HWTSTAMP_TX_OFF | 1u << HWTSTAMP_TX_ON,
          .rx_filters = 1u << HWTSTAMP_FILTER_NONE | 1u << HWTSTAMP_FILTER_ALL,
          .setting = DeviceFacts::Setting{HWTSTAMP_TX_ON, HWTSTAMP_FILTER_ALL}};
}

TEST(WhyNoHardwareStamps, NothingWhereTheyAreOnOrTheDriverDoesNotTell) {
  DeviceFacts facts = Usable();
  EXPECT_EQ(WhyNoHardwareStamps(facts), "");
  facts.setting.reset();
  EXPECT_EQ(WhyNoHardwareStamps(facts), "");
}

TEST(WhyNoHardwareStamps, DevicesWithoutAClock) {
  DeviceFacts facts = Usable();
  facts.so_timestamping = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE;
  facts.clock = -1;
  facts.tx_types = facts.rx_filters = 0;
  EXPECT_EQ(WhyNoHardwareStamps(facts), "eth0 has no hardware clock");
  facts.clock = 1;
  EXPECT_THAT(WhyNoHardwareStamps(facts), HasSubstr("stamps no packets with it"));
  facts = Usable();
  facts.clock = -1;
  EXPECT_THAT(WhyNoHardwareStamps(facts), HasSubstr("cannot read"));
}

TEST(WhyNoHardwareStamps, WhatIsSwitchedOffCanBeSwitchedOn) {
  DeviceFacts facts = Usable();
  facts.setting = DeviceFacts::Setting{HWTSTAMP_TX_OFF, HWTSTAMP_FILTER_NONE};
  EXPECT_EQ(WhyNoHardwareStamps(facts),
            "eth0 can stamp in hardware, but that is switched off (an administrator can: "
            "hwstamp_ctl -i eth0 -t 1 -r 1)");
  facts.setting = DeviceFacts::Setting{HWTSTAMP_TX_OFF, HWTSTAMP_FILTER_ALL};
  EXPECT_THAT(WhyNoHardwareStamps(facts), HasSubstr("does not stamp what it sends"));
  facts.setting = DeviceFacts::Setting{HWTSTAMP_TX_ON, HWTSTAMP_FILTER_NONE};
  EXPECT_THAT(WhyNoHardwareStamps(facts), HasSubstr("does not stamp what it receives"));
  // As ptp4l sets it on devices that could do more.
  facts.setting = DeviceFacts::Setting{HWTSTAMP_TX_ON, HWTSTAMP_FILTER_PTP_V2_EVENT};
  EXPECT_THAT(WhyNoHardwareStamps(facts), HasSubstr("only packets of PTP"));
  EXPECT_THAT(WhyNoHardwareStamps(facts), HasSubstr("hwstamp_ctl"));
}

TEST(WhyNoHardwareStamps, WhatADeviceCannotDoIsNotAdvised) {
  DeviceFacts facts = Usable();
  facts.rx_filters = 1u << HWTSTAMP_FILTER_NONE | 1u << HWTSTAMP_FILTER_PTP_V2_EVENT;
  facts.setting = DeviceFacts::Setting{HWTSTAMP_TX_OFF, HWTSTAMP_FILTER_NONE};
  EXPECT_THAT(WhyNoHardwareStamps(facts), HasSubstr("can stamp only packets of PTP"));
  EXPECT_THAT(WhyNoHardwareStamps(facts), Not(HasSubstr("hwstamp_ctl")));
  facts = Usable();
  facts.tx_types = 1u << HWTSTAMP_TX_OFF;
  EXPECT_THAT(WhyNoHardwareStamps(facts), HasSubstr("cannot stamp in hardware what it sends"));
}

TEST(WhyNoHardwareStamps, DevicesMadeOfOthersAndOtherHindrances) {
  DeviceFacts facts = Usable();
  facts.driver = "bonding";
  EXPECT_THAT(WhyNoHardwareStamps(facts), HasSubstr("joins several devices"));
  facts.driver = "bridge";
  EXPECT_THAT(WhyNoHardwareStamps(facts), HasSubstr("is a bridge"));
  facts = Usable();
  facts.packets_come_back = false;
  EXPECT_THAT(WhyNoHardwareStamps(facts), HasSubstr("net.core.tstamp_allow_data"));
  facts = {.device = "eth0", .error_number = EOPNOTSUPP};
  EXPECT_THAT(WhyNoHardwareStamps(facts), HasSubstr("eth0 does not report"));
  EXPECT_THAT(WhyNoHardwareStamps({}), HasSubstr("not known"));
}

// The kernel itself, about devices that every machine has or has not.
TEST(InspectDevice, AsksTheKernel) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  const DeviceFacts loopback = InspectDevice(fd, "lo");
  const DeviceFacts missing = InspectDevice(fd, "no-such-device");
  const DeviceFacts too_long = InspectDevice(fd, std::string(200, 'x'));
  ::close(fd);
  EXPECT_EQ(WhyNoHardwareStamps(loopback), "lo has no hardware clock");
  EXPECT_EQ(missing.error_number, ENODEV);
  EXPECT_EQ(too_long.error_number, ENODEV);
}

}  // namespace
}  // namespace syncline::probe
