# SPDX-License-Identifier: Apache-2.0
"""What master and worker share: the cluster's addresses, and the network cut in two.

An in-graph split, TF1 style: the master's process holds the input and the first convolution, the
worker's the second convolution and the classifier. Activations cross the network forward, gradients
backward.
"""

import argparse
import json
import os

import numpy as np
from sklearn.datasets import load_digits

# On some processors TensorFlow uses oneDNN, whose primitives are tasks here, only if told so.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
import tensorflow as tf

v1 = tf.compat.v1

BATCH_SIZE = 128
IMAGE_SIDE = 16  # the 8x8 digits, each pixel doubled: enough work per step to look at


def cluster_arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--master", metavar="HOST:PORT", help="address of the master's server")
    parser.add_argument("--worker", metavar="HOST:PORT", help="address of the worker's server")
    return parser


def cluster_spec(options, parser):
    """From the arguments, or as TensorFlow's own launchers pass it, from TF_CONFIG."""
    if options.master and options.worker:
        return {"master": [options.master], "worker": [options.worker]}
    if "TF_CONFIG" in os.environ:
        return json.loads(os.environ["TF_CONFIG"])["cluster"]
    parser.error("say --master HOST:PORT and --worker HOST:PORT, or set TF_CONFIG")
    return None


def start_server(cluster, job):
    # One compute thread: in a demonstration master and worker often share a small machine.
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    return tf.distribute.Server(cluster, job_name=job, task_index=0, config=config), config


def load_images():
    """scikit-learn's bundled digits: (train images, train labels, test images, test labels)."""
    digits = load_digits()
    scale = IMAGE_SIDE // 8
    images = np.kron(digits.images / 16.0, np.ones((1, scale, scale)))[..., np.newaxis].astype(
        np.float32
    )
    labels = digits.target.astype(np.int32)
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = order[:1500], order[1500:]
    return images[train], labels[train], images[test], labels[test]


def build_graph():
    """Returns (image placeholder, label placeholder, training op, loss, accuracy)."""
    v1.set_random_seed(0)
    with tf.device("/job:master/task:0"):
        images = v1.placeholder(tf.float32, [None, IMAGE_SIDE, IMAGE_SIDE, 1], name="images")
        labels = v1.placeholder(tf.int32, [None], name="labels")
        filters = v1.get_variable("conv1", [3, 3, 1, 32])
        hidden = tf.nn.relu(tf.nn.conv2d(images, filters, 1, "SAME"))
        hidden = tf.nn.max_pool2d(hidden, 2, 2, "VALID")
    with tf.device("/job:worker/task:0"):
        filters = v1.get_variable("conv2", [3, 3, 32, 64])
        hidden = tf.nn.relu(tf.nn.conv2d(hidden, filters, 1, "SAME"))
        hidden = tf.nn.max_pool2d(hidden, 2, 2, "VALID")
        features = (IMAGE_SIDE // 4) ** 2 * 64
        hidden = tf.reshape(hidden, [-1, features])
        weights = v1.get_variable("dense", [features, 10])
        logits = tf.matmul(hidden, weights) + v1.get_variable(
            "bias", [10], initializer=tf.zeros_initializer()
        )
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )
        hits = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
        accuracy = tf.reduce_mean(tf.cast(hits, tf.float32))
    optimizer = v1.train.MomentumOptimizer(0.02, 0.9)
    train = optimizer.minimize(loss, colocate_gradients_with_ops=True)
    return images, labels, train, loss, accuracy
