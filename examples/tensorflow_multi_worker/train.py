# SPDX-License-Identifier: Apache-2.0
"""Trains one model on several workers with MultiWorkerMirroredStrategy: each takes its share of
every batch, and their gradients are summed by a collective.

The workers are told of each other by TF_CONFIG, as TensorFlow's launchers do.
"""

import argparse
import os
import time

import numpy as np
from sklearn.datasets import load_digits

# On some processors TensorFlow uses oneDNN, whose primitives are tasks here, only if told so.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
import tensorflow as tf

BATCH_SIZE = 64  # of one worker
LEARNING_RATE = 0.05


def load_images():
    """scikit-learn's bundled digits."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., np.newaxis]
    return images, digits.target.astype(np.int32)


class Model(tf.Module):
    """Two convolutions and a classifier."""

    def __init__(self):
        super().__init__()
        make = tf.random.Generator.from_seed(1).normal
        self.conv1 = tf.Variable(make([3, 3, 1, 32]) * 0.3)
        self.conv2 = tf.Variable(make([3, 3, 32, 32]) * 0.05)
        self.dense = tf.Variable(make([4 * 4 * 32, 10]) * 0.05)

    def __call__(self, images):
        hidden = tf.nn.relu(tf.nn.conv2d(images, self.conv1, 1, "SAME"))
        hidden = tf.nn.relu(tf.nn.conv2d(hidden, self.conv2, 2, "SAME"))
        return tf.reshape(hidden, [-1, 4 * 4 * 32]) @ self.dense


def make_step(strategy, model):
    """A function of one worker's batch that returns the loss on every worker."""

    def train(images, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images))
            loss = tf.reduce_mean(losses)
        variables = model.trainable_variables
        context = tf.distribute.get_replica_context()
        gradients = context.all_reduce("mean", tape.gradient(loss, variables))
        for variable, gradient in zip(variables, gradients):
            variable.assign_sub(LEARNING_RATE * gradient)
        return context.all_gather(tf.reshape(loss, [1]), axis=0)

    @tf.function
    def step(images, labels):
        return strategy.run(train, args=(images, labels))

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=0, help="end after this many; default: never")
    parser.add_argument("--report-every", type=int, default=100, metavar="STEPS")
    options = parser.parse_args()
    # One thread: in a demonstration the workers often share a small machine.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    worker = strategy.cluster_resolver.task_id
    images, labels = load_images()
    with strategy.scope():
        model = Model()
    step = make_step(strategy, model)
    rng = np.random.default_rng(worker)
    begin = time.monotonic()
    number = 0
    while not options.steps or number < options.steps:
        number += 1
        chosen = rng.integers(0, len(labels), BATCH_SIZE)
        losses = step(images[chosen], labels[chosen])
        if number == 1 or number % options.report_every == 0:
            text = ", ".join(f"{loss:.4f}" for loss in losses.numpy())
            rate = number / (time.monotonic() - begin)
            print(f"step {number}: losses {text}, {rate:.1f} steps/s", flush=True)


if __name__ == "__main__":
    main()
