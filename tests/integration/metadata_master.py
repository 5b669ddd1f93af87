# SPDX-License-Identifier: Apache-2.0
"""The master's half of examples/tensorflow_two_partitions. While there is a file `ask` it asks
TensorFlow itself every few steps what it did: its RunMetadata, a line of JSON each in `metadata`.

Such a step uses TensorFlow's profiler, if nobody else does: who would record finds it busy.
"""

import json
import os

from master import batches, step_marker
from model import build_graph, cluster_arguments, cluster_spec, load_images, start_server, v1

EVERY = 5  # steps
EDGE = ("tensor_name", "send_device", "recv_device")


def facts_of(metadata):
    """What the test wants to know of a RunMetadata."""
    graphs, operators, received = [], [], []
    for graph in metadata.partition_graphs:
        edges = {node.name: [0, 0] for node in graph.node}  # data, control edges that lead from it
        for node in graph.node:
            for name in node.input:
                edges[name.lstrip("^").split(":")[0]][name.startswith("^")] += 1
        graphs.append(
            {
                "device": graph.node[0].device,
                "nodes": {node.name: [node.op, *edges[node.name]] for node in graph.node},
                "sends": [
                    [node.attr[key].s.decode() for key in EDGE]
                    for node in graph.node
                    if node.op == "_Send"
                ],
            }
        )
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            if node.node_name == "RecvTensor":
                tensor, _, sender = node.timeline_label.split("] ")[-1].split(" ")[:3]
                size = node.output[0].tensor_description.allocation_description.requested_bytes
                received.append([tensor, sender, size])
            elif node.all_start_nanos:
                begin = node.all_start_nanos
                inside = [begin + node.op_start_rel_nanos, begin + node.op_end_rel_nanos]
                operators.append([device.device, node.node_name, *inside])
    return {"graphs": graphs, "operators": operators, "received": received}


def main():
    parser = cluster_arguments(__doc__)
    cluster = cluster_spec(parser.parse_args(), parser)
    v1.disable_eager_execution()
    server, config = start_server(cluster, "master")
    train_images, train_labels, *_ = load_images()
    images, labels, train_op, loss, _ = build_graph()
    step = step_marker(True)
    asked = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with v1.Session(server.target, config=config) as session, open("metadata", "w") as file:
        session.run(v1.global_variables_initializer())
        for number, (batch, answers) in enumerate(batches(train_images, train_labels), start=1):
            asks = number % EVERY == 0 and os.path.exists("ask")
            metadata = v1.RunMetadata() if asks else None
            with step():
                session.run(
                    [train_op, loss],
                    {images: batch, labels: answers},
                    options=asked if metadata else None,
                    run_metadata=metadata,
                )
            if metadata:
                file.write(json.dumps(facts_of(metadata)) + "\n")
                file.flush()
            if number == 1:
                print("step 1", flush=True)


if __name__ == "__main__":
    main()
