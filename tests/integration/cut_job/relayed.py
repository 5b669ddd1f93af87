# SPDX-License-Identifier: Apache-2.0
"""Runs one of the example's programs so that it reaches the other one through a relay.

`relayed.py master` also lets the forward pass sleep for as long as `sleep_ms` says.
"""

import json
import os
import pathlib
import runpy
import subprocess
import sys
import time

SLEEP = pathlib.Path("sleep_ms")


def relay(address):
    """The relay's own address; it lives as long as this process."""
    process = subprocess.Popen(
        [sys.executable, "relay.py", *address.rsplit(":", 1)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, f"127.0.0.1:{int(process.stdout.readline())}"


def sleepy(images):
    try:
        time.sleep(float(SLEEP.read_text()) / 1e3)
    except (OSError, ValueError):
        pass
    return images


def let_the_first_layer_sleep():
    import tensorflow as tf

    plain = tf.nn.conv2d

    def conv2d(images, *arguments, **named):
        tf.nn.conv2d = plain
        slow = tf.numpy_function(sleepy, [images], tf.float32, name="sleepy")
        slow.set_shape(images.shape)
        return plain(slow, *arguments, **named)

    tf.nn.conv2d = conv2d


def main():
    role = sys.argv.pop(1)
    other = {"master": "worker", "worker": "master"}[role]
    config = json.loads(os.environ["TF_CONFIG"])
    held, config["cluster"][other][0] = relay(config["cluster"][other][0])
    os.environ["TF_CONFIG"] = json.dumps(config)
    if role == "master":
        let_the_first_layer_sleep()
    runpy.run_path(f"{role}.py", run_name="__main__")
    held.stdin.close()


if __name__ == "__main__":
    main()
