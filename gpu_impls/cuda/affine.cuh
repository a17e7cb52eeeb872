// The last step of the norms: weight and bias, one value a column; null where there is none.
#pragma once
#include "storage.cuh"

struct Affine {
  const Storage *weight;
  int64 weight_stride;
  const Storage *bias;
  int64 bias_stride;

  __device__ float apply(float z, int i) const {
    if (weight != nullptr) z *= widen(weight[i * weight_stride]);
    if (bias != nullptr) z += widen(bias[i * bias_stride]);
    return z;
  }
};
