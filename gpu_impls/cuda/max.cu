// Maximum of each row, exact: -inf for a row of nothing, NaN wherever one stands.
#include "shifting.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    maximum(const Storage *x, int64 x_row, int64 x_column, const bool *mask, int64 mask_row, int64 mask_column,
            Storage *out, int64 out_row, int n) {
  const float m = row_maximum(row_of_block(x, x_row, x_column, mask, mask_row, mask_column), n);
  if (threadIdx.x == 0) store(out + blockIdx.x * out_row, m);
}
