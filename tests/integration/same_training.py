# SPDX-License-Identifier: Apache-2.0
"""Trains the same small network from the same start, again and again until its input ends, and
prints a digest of what it learned each time. A TensorFlow worker of its own, not started for
tracing."""

import hashlib
import sys
import threading

import numpy as np

import tensorflow as tf

v1 = tf.compat.v1
STEPS = 60


def train(session, images, labels, step, rng):
    session.run(v1.global_variables_initializer())
    for _ in range(STEPS):
        batch = {images: rng.random((32, 64)), labels: rng.integers(0, 10, 32)}
        session.run(step, batch)
    digest = hashlib.sha256()
    for variable in session.run(v1.trainable_variables()):
        digest.update(variable.tobytes())
    print(digest.hexdigest(), flush=True)


def main():
    v1.disable_eager_execution()
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    server = tf.distribute.Server.create_local_server(config=config)
    v1.set_random_seed(0)
    images = v1.placeholder(tf.float32, [None, 64])
    labels = v1.placeholder(tf.int32, [None])
    hidden = tf.nn.relu(tf.matmul(images, v1.get_variable("hidden", [64, 32])))
    logits = tf.matmul(hidden, v1.get_variable("logits", [32, 10]))
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    step = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.is_set():
        with v1.Session(server.target, config=config) as session:
            train(session, images, labels, step, np.random.default_rng(1))


main()
