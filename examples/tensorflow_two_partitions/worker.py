# SPDX-License-Identifier: Apache-2.0
"""The worker's half: serves its partition of the graph until it is ended from outside."""

from model import cluster_arguments, cluster_spec, start_server


def main():
    parser = cluster_arguments(__doc__)
    cluster = cluster_spec(parser.parse_args(), parser)
    server, _ = start_server(cluster, "worker")
    print(f"worker: serving at {cluster['worker'][0]}", flush=True)
    server.join()


if __name__ == "__main__":
    main()
