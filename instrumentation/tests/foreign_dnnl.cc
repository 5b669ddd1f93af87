// SPDX-License-Identifier: Apache-2.0
// oneDNN as distributed: reorders and matrix products, a task for each.
#include <chrono>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

int main() {
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const dnnl::memory::dims dims = {64, 64};
  const dnnl::memory::desc rows(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab);
  const dnnl::memory::desc columns(dims, dnnl::memory::data_type::f32,
                                   dnnl::memory::format_tag::ba);
  dnnl::memory a(rows, engine), b(columns, engine), c(rows, engine);
  dnnl::reorder reorder(a, b);
  dnnl::matmul matmul(
      dnnl::matmul::primitive_desc(dnnl::matmul::desc(rows, columns, rows), engine));
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(3000);
  while (std::chrono::steady_clock::now() < until) {
    reorder.execute(stream, a, b);
    matmul.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream.wait();
  }
}
