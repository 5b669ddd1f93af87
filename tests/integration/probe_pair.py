# SPDX-License-Identifier: Apache-2.0
"""Two hosts, as far as clock probes go: network namespaces a wire or a bridge apart, of which one
has clocks that are an exactly known hour ahead (and may drift by an exactly known function)."""

import itertools
import json
import os
import subprocess

BUILD = os.environ.get("SYNCLINE_BUILD_DIR", "build")
SYNCLINE = os.path.join(BUILD, "bin", "syncline")
AGENT = os.path.join(BUILD, "bin", "syncline-agent")
GRPC_BENCH = os.path.join(BUILD, "tests", "syncline-grpc-probe-bench")
BENCH = os.path.join(BUILD, "bin", "syncline-probe-bench")
RELAY = os.path.join(BUILD, "bin", "syncline-testbed-relay")
JUDGE = os.path.join(BUILD, "bin", "syncline-testbed-judge")
WALLCLOCK = os.path.join(BUILD, "lib", "libsyncline_testbed_wallclock.so")
PORT = 7700
HOUR_S = 3600
HOUR_NS = HOUR_S * 1_000_000_000
AN_HOUR_AHEAD = ["unshare", "-T", "--fork", "--kill-child", "--monotonic", str(HOUR_S)]
ANSWERING, ASKING, RELAYING = "10.99.0.1", "10.99.0.2", "10.99.0.3"
_numbers = itertools.count()


def run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


class Pair:
    """Two namespaces with an eth0 each, joined directly or by a bridge in a third."""

    def __init__(self, bridge, own_processors=False):
        number = f"{os.getpid()}-{next(_numbers)}"
        self.answering, self.asking, self.middle = (f"sp{number}{x}" for x in "abm")
        self.names = [self.answering, self.asking, self.middle]
        # Two hosts have processors of their own. On one, who waits without sleeping keeps the other
        # from answering.
        self.processor = {self.answering: 0, self.asking: 1} if own_processors else {}
        try:
            self._connect(bridge)
        except BaseException:
            self.close()
            raise

    def _connect(self, bridge):
        for name in self.names:
            run("ip", "netns", "add", name)
        if bridge:
            run("ip", "-n", self.middle, "link", "add", "name", "br0", "type", "bridge")
            run("ip", "-n", self.middle, "link", "set", "br0", "up")
            for name, port in ((self.answering, "pa"), (self.asking, "pb")):
                run("ip", "link", "add", "eth0", "netns", name, "type", "veth",
                    "peer", "name", port, "netns", self.middle)  # fmt: skip
                run("ip", "-n", self.middle, "link", "set", port, "master", "br0", "up")
            run("ip", "-n", self.middle, "addr", "add", f"{RELAYING}/24", "dev", "br0")
        else:
            run("ip", "link", "add", "eth0", "netns", self.answering, "type", "veth",
                "peer", "name", "eth0", "netns", self.asking)  # fmt: skip
        for name, address in ((self.answering, ANSWERING), (self.asking, ASKING)):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def answer(self, seconds, *options, environment=None):
        """The responder, an hour ahead of the prober."""
        return self._start(
            self.answering,
            AN_HOUR_AHEAD,
            ["respond", "--listen", f"{ANSWERING}:{PORT}", "--seconds", str(seconds), *options],
            environment,
        )

    def ask(self, seconds, *options, environment=None, by_way_of=ANSWERING):
        return self._start(
            self.asking,
            [],
            ["probe", "--listen", f"{ASKING}:{PORT}", "--peer", f"{by_way_of}:{PORT}",
             "--seconds", str(seconds), "--truth-ns", str(HOUR_NS), *options],
            environment,
        )  # fmt: skip

    def relay(self, out_us, back_us, jitter_us):
        """Delays what is asked by way of RELAYING (only with a bridge)."""
        ends = [f"{RELAYING}:{PORT}", f"{ANSWERING}:{PORT}"]
        delays = ["--out-us", str(out_us), "--back-us", str(back_us), "--jitter-us", str(jitter_us)]
        command = ["ip", "netns", "exec", self.middle, RELAY, *ends, *delays]
        return subprocess.Popen(command)

    def agent(self, directory, environment=None):
        """A real agent, an hour ahead of the prober, and its fleet's certificates (`tls`)."""
        with open(os.path.join(directory, "hosts.txt"), "w", encoding="utf-8") as file:
            file.write(f"answering {ANSWERING}:{PORT}\n")
        tls = os.path.join(directory, "tls")
        run(SYNCLINE, "certs", "init", tls, "--hosts", file.name)
        data = os.path.join(directory, "agent")
        options = ["--data-dir", data, "--tls-dir", os.path.join(tls, "nodes", "answering")]
        return subprocess.Popen(
            ["ip", "netns", "exec", self.answering, *AN_HOUR_AHEAD,
             AGENT, *options, "--listen", f"{ANSWERING}:{PORT}"],
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip

    def ask_over_grpc(self, directory, samples, seconds):
        """Exchanges with the agent as the coordinator does; returns when it has its samples."""
        tls = os.path.join(directory, "tls", "operator")
        run("ip", "netns", "exec", self.asking, GRPC_BENCH, "probe", f"{ANSWERING}:{PORT}",
            "--samples", samples, "--seconds", str(seconds),
            "--tls", tls, "operator", "answering")  # fmt: skip

    def _start(self, namespace, wrapper, arguments, environment):
        if namespace in self.processor:
            wrapper = [*wrapper, "taskset", "-c", str(self.processor[namespace])]
        return subprocess.Popen(
            ["ip", "netns", "exec", namespace, *wrapper, BENCH, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )


def end_agent(process, patience_s=20):
    """Ends an agent as an operator does, so that it ends the session daemon that it started."""
    # `process` is unshare, which passes nothing on.
    subprocess.run(["pkill", "-TERM", "-P", str(process.pid)], check=False)
    try:
        process.wait(patience_s)
    finally:
        process.kill()
        process.wait()


def result_of(process, patience_s=60):
    out, _ = process.communicate(timeout=patience_s)
    assert process.returncode == 0
    return json.loads(out)


def judge(samples_paths, drift):
    """What a model made of the samples (a path or two) is worth, against the truth."""
    command = [JUDGE, *samples_paths, "--truth-ns", str(HOUR_NS), "--drift", drift]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
