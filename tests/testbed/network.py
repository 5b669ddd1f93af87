# SPDX-License-Identifier: Apache-2.0
"""Faults of a simulated host's network."""

import json


class Dropping:
    """While entered, `host` drops this share of the packets with data to one of its TCP ports.

    None: to all of them.
    """

    def __init__(self, host, port, share):
        self.host = host
        which = "meta l4proto tcp" if port is None else f"tcp dport {port}"
        data = f"{which} ip length gt 100"
        dropping = "counter name dropped drop"
        self.rules = [
            "table ip dropping {",
            "  counter seen {}",
            "  counter dropped {}",
            "  chain input {",
            "    type filter hook input priority 0;",
            f"    {data} counter name seen",
            f"    {data} numgen random mod 10000 < {round(share * 10_000)} {dropping}",
            "  }",
            "}",
        ]

    def __enter__(self):
        self.host.run(["nft", "-f", "-"], input="\n".join(self.rules) + "\n")
        return self

    def __exit__(self, *_):
        self.host.run(["nft", "delete", "table", "ip", "dropping"])

    def _bytes(self, counter):
        said = self.host.run(["nft", "-j", "list", "counter", "ip", "dropping", counter]).stdout
        listed = json.loads(said)["nftables"]
        return sum(one["counter"]["bytes"] for one in listed if "counter" in one)

    def dropped_bytes(self):
        return self._bytes("dropped")

    def seen_bytes(self):
        return self._bytes("seen")
