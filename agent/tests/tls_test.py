# SPDX-License-Identifier: Apache-2.0
"""Mutual TLS: roles by certificate, nothing in plain text (see harness.py)."""

import os
import re
import resource
import socket
import subprocess
import tempfile
import unittest

from harness import BUILD, OTHER_UID, Agent, CallError, as_user, main, wait_until


class TlsTest(unittest.TestCase):
    """Roles by certificate; nothing in plain text."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="syncline-tls-")
        cls.tls = cls.scratch.name
        cls.certificate("ca", "/O=Syncline/CN=test authority")
        cls.certificate("node", "/O=Syncline/OU=syncline node/CN=n1", "ca")
        cls.certificate("operator", "/O=Syncline/OU=syncline operator/CN=ann", "ca")
        cls.certificate("nobody", "/O=Syncline/OU=visitor/CN=eve", "ca")
        cls.certificate("otherca", "/O=Syncline/CN=another authority")
        cls.certificate("foreign", "/O=Syncline/OU=syncline operator/CN=eve", "otherca")
        cls.agent = Agent(cls.tls, arguments=["--tls-dir", cls.tls, "--listen", "127.0.0.1:0"],
                          limits=(1024, 4096))
        cls.port = re.search(r" port=(\d+)", cls.agent.log_text()).group(1)

    @classmethod
    def tearDownClass(cls):
        assert cls.agent.end() == 0
        cls.scratch.cleanup()

    @classmethod
    def certificate(cls, name, subject, authority=None):
        signer = ["-CA", f"{cls.tls}/{authority}.pem", "-CAkey", f"{cls.tls}/{authority}.key",
                  "-addext", "subjectAltName=DNS:n1",
                  "-addext", "basicConstraints=critical,CA:FALSE"] if authority else []
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
             "-subj", subject, "-keyout", f"{cls.tls}/{name}.key", "-out", f"{cls.tls}/{name}.pem",
             *signer],
            check=True, capture_output=True,
        )

    def call(self, method, role, **request):
        return self.agent.call(method, target=f"127.0.0.1:{self.port}",
                               extra=["--tls", self.tls, role, "n1"], **request)

    def test_an_operator_is_served(self):
        self.assertEqual(self.call("Describe", "operator")["protocol"], "syncline.v1")
        self.assertIn("peer=ann role=operator", self.agent.log_text())

    def test_a_node_may_compare_clocks_and_nothing_else(self):
        self.assertTrue(self.call("ClockExchange", "node")["ordered"])
        without = ("Describe", "Stacks")
        for method in (*without, "Prepare", "Start", "Stop", "Status", "Release", "Fetch"):
            with self.assertRaises(CallError) as refused:
                self.call(method, "node", **({} if method in without else {"recording_id": "x"}))
            self.assertEqual(refused.exception.code, 7, method)

    def test_a_certificate_without_a_role_may_do_nothing(self):
        for method in ("Describe", "ClockExchange"):
            with self.assertRaises(CallError) as refused:
                self.call(method, "nobody")
            self.assertEqual(refused.exception.code, 7, method)

    def test_another_authority_is_not_let_in(self):
        with self.assertRaises(CallError) as refused:
            self.call("Describe", "foreign")
        self.assertEqual(refused.exception.code, 14)

    def test_plain_text_is_not_spoken(self):
        with self.assertRaises(CallError) as refused:
            self.agent.call("Describe", target=f"127.0.0.1:{self.port}")
        self.assertEqual(refused.exception.code, 14)
        started = subprocess.run(
            [f"{BUILD}/bin/syncline-agent", "--data-dir", f"{self.tls}/x",
             "--listen", "127.0.0.1:0"],
            capture_output=True, text=True, check=False,
        )
        self.assertEqual(started.returncode, 2)
        self.assertIn("--tls-dir", started.stderr)

    def test_idle_connections_without_a_certificate_do_not_starve_it(self):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        descriptors = f"/proc/{self.agent.process.pid}/fd"
        before = len(os.listdir(descriptors))
        idle = [socket.create_connection(("127.0.0.1", int(self.port))) for _ in range(1100)]
        wait_until(lambda: len(os.listdir(descriptors)) > 1000, what="they are accepted")
        self.assertEqual(self.call("Describe", "operator")["protocol"], "syncline.v1")
        wait_until(lambda: len(os.listdir(descriptors)) < before + 50, seconds=20,
                   what="the agent has closed them")
        for connection in idle:
            connection.close()

    def test_the_socket_is_for_its_user_only(self):
        os.chmod(self.tls, 0o755)
        call = as_user(OTHER_UID) + [f"{BUILD}/tests/agent_call", f"unix:{self.agent.socket}",
                                     "Describe"]
        self.assertNotEqual(subprocess.run(call, capture_output=True, check=False).returncode, 0)


if __name__ == "__main__":
    main()
