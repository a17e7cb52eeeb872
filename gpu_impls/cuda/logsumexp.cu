// log(sum exp(x)) of each row as m + log(sum exp(x - m)): maximum, then sum. -inf for a row of nothing, +inf beside +inf.
#include "shifting.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    logsumexp(const Storage *x, int64 x_row, int64 x_column, const bool *mask, int64 mask_row, int64 mask_column,
              Storage *out, int64 out_row, int n) {
  const Row row = row_of_block(x, x_row, x_column, mask, mask_row, mask_column);
  const float m = row_maximum(row, n);
  const float total = shifted_sum(row, n, subtractable(m));
  if (threadIdx.x == 0) store(out + blockIdx.x * out_row, m == INF || m == -INF ? m : m + logf(total));
}
