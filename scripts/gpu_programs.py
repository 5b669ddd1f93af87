# SPDX-License-Identifier: Apache-2.0
"""The programs of scripts/try-gpu, as text."""

TORCH_PROGRAM = """
import os, sys, time, torch
import torch.distributed as dist
out, steps, sleep_s, extra = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
torch.cuda.set_device(0)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 512))
model = torch.nn.parallel.DistributedDataParallel(model.cuda())
optimizer = torch.optim.SGD(model.parameters(), 0.01)
batch, more = torch.randn(64, 512), torch.randn(2048, 2048, device="cuda")
def step():
    if rank == 0: time.sleep(sleep_s)
    for _ in range(extra if rank == 1 else 0): torch.mm(more, more)
    model(batch.cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
def agreed(done):
    flag = torch.tensor([float(done)])
    dist.all_reduce(flag)
    return flag.item() > 0
for _ in range(5): step()
if steps:
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    def ready(profile): profile.export_chrome_trace(os.path.join(out, f"rank{rank}.json.gz"))
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=steps)
    with torch.profiler.profile(activities=kinds, schedule=schedule, on_trace_ready=ready) as p:
        for _ in range(steps + 3):
            step()
            p.step()
else:
    open(os.path.join(out, f"ready{rank}"), "w").close()
    while not agreed(os.path.exists(os.path.join(out, "stop"))):
        for _ in range(10): step()
dist.destroy_process_group()
"""

NCCL_PROGRAM = """
import os, sys, time, torch
import torch.distributed as dist
out, sleep_s = sys.argv[1], float(sys.argv[2])
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
factor, gradient = torch.randn(2048, 2048, device="cuda"), torch.randn(1 << 20, device="cuda")
waited = [0.0, 0]
def step():
    for _ in range(10): torch.mm(factor, factor)
    torch.cuda.synchronize()
    if rank == ranks - 1: time.sleep(sleep_s)
    began = time.perf_counter()
    dist.all_reduce(gradient)
    torch.cuda.synchronize()
    waited[0] += time.perf_counter() - began
    waited[1] += 1
def agreed(done):
    flag = torch.tensor([float(done)], device="cuda")
    dist.all_reduce(flag)
    return flag.item() > 0
for _ in range(10): step()
waited[:] = [0.0, 0]
open(os.path.join(out, f"ready{rank}"), "w").close()
while not agreed(os.path.exists(os.path.join(out, "stop"))):
    for _ in range(10): step()
with open(os.path.join(out, f"waited{rank}"), "w") as file:
    file.write(str(waited[0] / waited[1]))
dist.destroy_process_group()
"""

CUDA_PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <string>
#include <syncline/annotate.h>
#include <thread>
#include <unistd.h>
__global__ void long_kernel(long long n) { long long t = clock64(); while (clock64() - t < n) {} }
__global__ void short_kernel(float* p) { p[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
static std::string out;
static bool is(const char* name) { return access((out + "/" + name).c_str(), F_OK) == 0; }
static double event_ms;  // of long_kernel, the mean
static void work(bool timed) {
  float *d, *h = new float[1 << 20]; cudaStream_t s; cudaEvent_t a, b;
  cudaMalloc(&d, 4 << 20); cudaStreamCreate(&s); cudaEventCreate(&a); cudaEventCreate(&b);
  double sum = 0; int count = 0;
  for (unsigned long n = 0; !is("stop"); ++n) {
    syncline::Step step(n);
    { syncline::Phase copy("copy in");
      cudaMemcpyAsync(d, h, 4 << 20, cudaMemcpyHostToDevice, s);
      cudaMemsetAsync(d, 0, 1 << 20, s); }
    cudaStreamSynchronize(s);
    { syncline::Phase phase("long");
      cudaEventRecord(a, s); long_kernel<<<1, 1, 0, s>>>(2000000); cudaEventRecord(b, s); }
    { syncline::Phase phase("short"); short_kernel<<<4096, 256, 0, s>>>(d); }
    cudaStreamSynchronize(s);
    float ms = 0; cudaEventElapsedTime(&ms, a, b); if (n > 10) { sum += ms; ++count; }
    usleep(1000);
  }
  if (timed) event_ms = sum / count;
}
int main(int, char** arguments) {
  out = arguments[1];
  cudaFree(nullptr);
  std::thread one(work, true), two(work, false);
  fclose(fopen((out + "/ready").c_str(), "w"));
  one.join(); two.join();
  FILE* truth = fopen((out + "/truth").c_str(), "w");
  fprintf(truth, "%.6f %s\n", event_ms, cudaGetErrorString(cudaGetLastError()));
  fclose(truth);
  return 0;
}
"""

COST_PROGRAM = r"""
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <vector>
__global__ void nothing() {}
int main(int, char** arguments) {
  const std::string out = arguments[1];
  const auto is = [&](const char* name) { return access((out + "/" + name).c_str(), F_OK) == 0; };
  cudaFree(nullptr);
  fclose(fopen((out + "/ready").c_str(), "w"));
  std::vector<double> batches;
  while (!is("stop")) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 64; ++i) nothing<<<1, 1>>>();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    cudaDeviceSynchronize();
    if (is("go")) batches.push_back(took.count() / 64);
  }
  std::nth_element(batches.begin(), batches.begin() + batches.size() / 2, batches.end());
  FILE* truth = fopen((out + "/truth").c_str(), "w");
  fprintf(truth, "%.1f\n", batches[batches.size() / 2]);
  return fclose(truth);
}
"""

JAX_PROGRAM = """
import os, sys, time, jax, jax.numpy as jnp
out = sys.argv[1]
jax.profiler.start_server(7789)
w, x = jnp.ones((1024, 1024)), jnp.ones((256, 1024))
step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w))
w = step(w, x).block_until_ready()
open(os.path.join(out, "ready"), "w").close()
n = 0
while not os.path.exists(os.path.join(out, "stop")):
    with jax.profiler.StepTraceAnnotation("train", step_num=n): w = step(w, x).block_until_ready()
    n += 1
    time.sleep(0.003)
"""
