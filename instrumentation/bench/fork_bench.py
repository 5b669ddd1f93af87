# SPDX-License-Identifier: Apache-2.0
"""How long a fork takes in a program that talks TCP: until parent and child go on.

    python3 instrumentation/bench/fork_bench.py
    build/bin/syncline run -- python3 instrumentation/bench/fork_bench.py
"""

import os
import socket
import statistics
import time

FORKS = 100


def fork_once():
    """Seconds from before the fork to behind it, in the parent and in the child."""
    reading, writing = os.pipe()
    begin = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.write(writing, b"%.9f" % (time.perf_counter() - begin))
        os._exit(0)
    parent_seconds = time.perf_counter() - begin
    os.waitpid(child, 0)
    child_seconds = float(os.read(reading, 64))
    os.close(reading)
    os.close(writing)
    return parent_seconds, child_seconds


def main():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client, server.accept()[0] as peer:
            client.sendall(b"x")
            peer.recv(1)
            time.sleep(1)  # our library wakes at the first byte, in a thread of its own
            parents, children = zip(*(fork_once() for _ in range(FORKS)))
    print(
        "medians of %d: the parent goes on after %.2f ms, the child after %.2f ms"
        % (FORKS, statistics.median(parents) * 1e3, statistics.median(children) * 1e3)
    )


if __name__ == "__main__":
    main()
