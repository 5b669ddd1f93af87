// SPDX-License-Identifier: Apache-2.0
// Datagrams from anywhere: never crash; what decodes encodes to the same; and when somebody who has
// the key says strange things, the endpoint answers at most once, with as many bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "agent/probe/udp/fake_network.h"
#include "agent/probe/udp/packet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace probe = syncline::probe;
  const std::span<const uint8_t> input(data, size);
  if (const auto packet = probe::DecodePacket(input)) {
    const probe::PacketBytes again = probe::EncodePacket(*packet);
    if (!std::equal(again.begin(), again.end() - probe::kMacBytes, input.begin())) std::abort();
  }

  probe::FakeNetwork network;
  probe::FakeHost* host = network.AddHost();
  const probe::Address peer = *probe::Address::Parse("10.0.0.9:1");
  probe::ProbePlan plan{.plan_id = 1};
  plan.edges = {{.edge_id = 1, .initiator = true, .peer = "p", .address = peer},
                {.edge_id = 1, .initiator = false, .peer = "p"}};
  if (!host->endpoint().AddPlan(plan).ok()) std::abort();
  const probe::PacketSealer sealer(plan.key);
  uint64_t fed = 0;
  for (size_t at = 0; at < size && fed < 16; at += probe::kPacketBytes, ++fed) {
    const auto piece = input.subspan(at, std::min(size - at, probe::kPacketBytes));
    probe::PacketBytes bytes{};
    std::copy(piece.begin(), piece.end(), bytes.begin());
    sealer.Seal(&bytes);
    network.Inject({bytes.begin(), bytes.end()}, peer, host->address());
    network.Inject({piece.begin(), piece.end()}, peer, host->address());
  }
  network.Run(1'000'000);
  // 8 are a burst of its own.
  if (host->endpoint().counters().packets_sent > fed + 8) std::abort();
  for (const auto& datagram : network.datagrams()) {
    if (datagram.size() != probe::kPacketBytes) std::abort();
  }
  return 0;
}
