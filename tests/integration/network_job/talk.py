# SPDX-License-Identifier: Apache-2.0
"""talk.py ROLE MASTER: the worker sends what it can to the master, up to 40 MB a second.

The master sleeps for as many ms as the file slow_ms says before each read.
"""

import socket
import sys
import time

PORT = 5555
PIECE = 100_000
PIECES_A_SECOND = 400


def slow_s():
    try:
        with open("slow_ms", encoding="utf-8") as file:
            return float(file.read()) / 1000
    except (OSError, ValueError):
        return 0


def listen():
    with socket.create_server(("", PORT)) as server:
        print("talking", flush=True)
        connection, _ = server.accept()
        while connection.recv(PIECE):
            time.sleep(slow_s())


def talk(master):
    while True:
        try:
            connection = socket.create_connection((master, PORT))
            break
        except OSError:
            time.sleep(0.1)
    piece = bytes(PIECE)
    due = time.monotonic()
    while True:
        connection.sendall(piece)
        due = max(due + 1 / PIECES_A_SECOND, time.monotonic() - 0.1)
        time.sleep(max(0, due - time.monotonic()))


if sys.argv[1] == "master":
    listen()
else:
    talk(sys.argv[2])
