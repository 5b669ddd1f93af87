# SPDX-License-Identifier: Apache-2.0
"""The master's half: builds the graph over both hosts and trains it on small images of digits.

Each step is marked as Intel's recipe for ITT does, with the PyPI package `ittapi`; --no-marks
leaves the marks out. Without a collector (INTEL_LIBITTNOTIFY64) a mark does nothing.
"""

import contextlib
import time

import numpy as np

from model import (
    BATCH_SIZE,
    build_graph,
    cluster_arguments,
    cluster_spec,
    load_images,
    start_server,
    v1,
)


def step_marker(wanted):
    """A function that returns a context manager around one training step.

    The name is the same for every step: a name per step number would be a new string for the
    profiler to keep each time, for as long as the job runs.
    """
    if not wanted:
        return contextlib.nullcontext
    import ittapi  # only here, so that --no-marks needs no ittapi

    return lambda: ittapi.task("train_step", domain="training")


def batches(images, labels):
    rng = np.random.default_rng(1)
    while True:
        order = rng.permutation(len(labels))
        for begin in range(0, len(order) - BATCH_SIZE + 1, BATCH_SIZE):
            chosen = order[begin : begin + BATCH_SIZE]
            yield images[chosen], labels[chosen]


def train(session, graph, data, options):
    images, labels, train_op, loss, accuracy = graph
    train_images, train_labels, test_images, test_labels = data
    step = step_marker(not options.no_marks)
    begin = time.monotonic()
    for number, (batch, answers) in enumerate(batches(train_images, train_labels), start=1):
        with step():
            _, loss_now = session.run([train_op, loss], {images: batch, labels: answers})
        seconds = time.monotonic() - begin
        done = (options.steps and number >= options.steps) or (
            options.seconds and seconds >= options.seconds
        )
        if number == 1 or number % options.report_every == 0 or done:
            right = session.run(accuracy, {images: test_images, labels: test_labels})
            print(
                f"step {number}: loss {loss_now:.4f}, accuracy {100 * right:.1f} % of "
                f"{len(test_labels)} "
                f"unseen digits, {number / seconds:.1f} steps/s",
                flush=True,
            )
        if done:
            return


def main():
    parser = cluster_arguments(__doc__)
    parser.add_argument("--steps", type=int, default=0, help="end after this many steps")
    parser.add_argument(
        "--seconds", type=float, default=0, help="end after this time; default: never"
    )
    parser.add_argument("--report-every", type=int, default=100, metavar="STEPS")
    parser.add_argument("--no-marks", action="store_true", help="do not mark the steps with ittapi")
    options = parser.parse_args()
    cluster = cluster_spec(options, parser)
    v1.disable_eager_execution()
    server, config = start_server(cluster, "master")
    data = load_images()
    graph = build_graph()
    print("master: waiting for the worker", flush=True)
    with v1.Session(server.target, config=config) as session:
        session.run(v1.global_variables_initializer())
        train(session, graph, data, options)


if __name__ == "__main__":
    main()
