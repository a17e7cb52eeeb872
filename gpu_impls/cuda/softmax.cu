// softmax in two ways, one block a row. A row of nothing gives zeros; NaN or +inf gives NaN throughout. Every thread
// reads an element for the last time before it writes it: out may be x.
#include "shifting.cuh"

// y = exp(x - m) / total: subtraction, exponential and division each round once.
__device__ void write_softmax(const Row &row, int n, float m, float total, Storage *y, int64 stride) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) store(y + i * stride, expf(row.at(i, -INF) - m) / total);
}

// Maximum, sum, output: the row is read three times.
extern "C" __global__ void __launch_bounds__(1024)
    three_pass(const Storage *x, int64 x_row, int64 x_column, const bool *mask, int64 mask_row, int64 mask_column,
               Storage *out, int64 out_row, int64 out_column, int n) {
  const Row row = row_of_block(x, x_row, x_column, mask, mask_row, mask_column);
  const float m = subtractable(row_maximum(row, n));
  const float total = nonzero(shifted_sum(row, n, m));
  write_softmax(row, n, m, total, out + blockIdx.x * out_row, out_column);
}

constexpr int TILE = 4;

// (m, l) of up to TILE elements, blockDim apart from i on.
__device__ Shifted tile(const Row &row, int i, int n) {
  float values[TILE];
  Shifted part = Online::identity();
#pragma unroll
  for (int k = 0; k < TILE; ++k) {
    const int j = i + k * blockDim.x;
    values[k] = j < n ? row.at(j, -INF) : -INF;
    part.m = Max::merge(part.m, values[k]);
  }
#pragma unroll
  for (int k = 0; k < TILE; ++k) part.l += expf(values[k] - subtractable(part.m));
  return part;
}

// Maximum and sum in one reading, tiles merging into each thread's (m, l) and these in the block's tree; then output.
extern "C" __global__ void __launch_bounds__(1024)
    online(const Storage *x, int64 x_row, int64 x_column, const bool *mask, int64 mask_row, int64 mask_column,
           Storage *out, int64 out_row, int64 out_column, int n) {
  const Row row = row_of_block(x, x_row, x_column, mask, mask_row, mask_column);
  Shifted whole = Online::identity();
  for (int i = threadIdx.x; i < n; i += TILE * blockDim.x) whole = Online::merge(whole, tile(row, i, n));
  whole = block_reduce<Online>(whole);
  write_softmax(row, n, subtractable(whole.m), nonzero(whole.l), out + blockIdx.x * out_row, out_column);
}
