// log_softmax as (x - m) - log(sum exp(x - m)): maximum, sum, output. A row of nothing gives -inf throughout.
#include "shifting.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    log_softmax(const Storage *x, int64 x_row, int64 x_column, const bool *mask, int64 mask_row, int64 mask_column,
                Storage *out, int64 out_row, int64 out_column, int n) {
  const Row row = row_of_block(x, x_row, x_column, mask, mask_row, mask_column);
  const float m = subtractable(row_maximum(row, n));
  const float log_total = logf(nonzero(shifted_sum(row, n, m)));
  Storage *y = out + blockIdx.x * out_row;
  for (int i = threadIdx.x; i < n; i += blockDim.x) store(y + i * out_column, row.at(i, -INF) - m - log_total);
}
