// sum of each row: every thread adds every blockDim-th element, then the block's tree. 0 for a row of nothing.
#include "block.cuh"
#include "row.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    sum(const Storage *x, int64 x_row, int64 x_column, const bool *mask, int64 mask_row, int64 mask_column,
        Storage *out, int64 out_row, int n) {
  const Row row = row_of_block(x, x_row, x_column, mask, mask_row, mask_column);
  float total = Sum::identity();
  for (int i = threadIdx.x; i < n; i += blockDim.x) total += row.at(i, 0.0f);
  total = block_reduce<Sum>(total);
  if (threadIdx.x == 0) store(out + blockIdx.x * out_row, total);
}
