# SPDX-License-Identifier: Apache-2.0
"""relay.py HOST PORT: passes TCP on to there, every byte as much later as `delay_ms` says.

Says which port it listens on, and ends with its standard input.
"""

import asyncio
import pathlib
import sys
import time

DELAY = pathlib.Path("delay_ms")


def delay_s():
    try:
        return float(DELAY.read_text()) / 1e3
    except (OSError, ValueError):
        return 0.0


async def later(queue, writer):
    while True:
        due, data = await queue.get()
        left = due - time.monotonic()
        if left > 0:
            await asyncio.sleep(left)
        if data is None:
            writer.close()
            return
        writer.write(data)
        await writer.drain()


async def pump(reader, writer):
    queue = asyncio.Queue()
    task = asyncio.create_task(later(queue, writer))
    try:
        while data := await reader.read(1 << 18):
            queue.put_nowait((time.monotonic() + delay_s(), data))
    except ConnectionError:
        pass
    queue.put_nowait((0, None))
    await task


async def serve(reader, writer):
    try:
        far_reader, far_writer = await asyncio.open_connection(sys.argv[1], int(sys.argv[2]))
    except OSError:
        writer.close()
        return
    await asyncio.gather(
        pump(reader, far_writer), pump(far_reader, writer), return_exceptions=True
    )


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
