# SPDX-License-Identifier: Apache-2.0
"""Simulated hosts with exactly known clock errors; see testbed.py."""

from tests.testbed.testbed import AGENT_PORT, Host, HostSpec, Testbed, TestbedError

__all__ = ["AGENT_PORT", "Host", "HostSpec", "Testbed", "TestbedError"]
