# SPDX-License-Identifier: Apache-2.0
"""A rank of a data-parallel job in JAX, on CPUs: two processes with one device each."""

import os
import time

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PROFILER_PORT = 7788


def main():
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    jax.distributed.initialize(address, num_processes=SIZE, process_id=RANK)
    jax.profiler.start_server(PROFILER_PORT)
    mesh = Mesh(jax.devices(), ("data",))
    weights = jax.device_put(jnp.ones((256, 256)), NamedSharding(mesh, PartitionSpec()))
    part = np.ones((128, 256), np.float32)
    batch = jax.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("data")), part)

    def loss(weights, batch):
        return jnp.mean(jnp.tanh(batch @ weights) ** 2)

    @jax.jit
    def update(weights, batch):
        return weights - 0.01 * jax.grad(loss)(weights, batch)

    step = 0
    while True:
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            weights = update(weights, batch)
            weights.block_until_ready()
        step += 1
        if step == 3:
            print("trained 3 steps", flush=True)
        time.sleep(0.005)


if __name__ == "__main__":
    main()
