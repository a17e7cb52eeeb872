// rms_norm: x / sqrt(mean(x^2) + eps) * weight + bias. The mean square, then the output. out may be x.
#include "affine.cuh"
#include "block.cuh"
#include "row.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    rms_norm(const Storage *x, int64 x_row, int64 x_column, const Storage *weight, int64 weight_stride,
             const Storage *bias, int64 bias_stride, Storage *out, int64 out_row, int64 out_column, float eps, int n) {
  const Row row = row_of_block(x, x_row, x_column);
  const Affine affine = {weight, weight_stride, bias, bias_stride};
  float squares = Sum::identity();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float value = row.at(i, 0.0f);
    squares += value * value;
  }
  const float reciprocal = rsqrtf(block_reduce<Sum>(squares) / n + eps);
  Storage *y = out + blockIdx.x * out_row;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    store(y + i * out_column, affine.apply(row.at(i, 0.0f) * reciprocal, i));
}
