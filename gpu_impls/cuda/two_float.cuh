// Numbers of twice float's precision, as hi + lo with lo at most half a unit of hi: for devices on which double is
// slow. The algorithms, and the errors they are named for, are those of Joldes, Muller and Popescu (ACM TOMS 44(2),
// 2017); all hold where nothing overflows and the products' errors do not underflow.
#pragma once
#include "warp.cuh"

struct TwoFloat {
  float hi, lo;
  TwoFloat() = default;
  __device__ TwoFloat(float value) : hi(value), lo(0.0f) {}
  __device__ TwoFloat(float hi, float lo) : hi(hi), lo(lo) {}
};

__device__ inline TwoFloat exchanged(TwoFloat value, int distance) {
  return {exchanged(value.hi, distance), exchanged(value.lo, distance)};
}

// a + b exactly. The intrinsics keep the compiler from contracting what has to be rounded on its own.
__device__ inline TwoFloat exact_sum(float a, float b) {
  const float s = __fadd_rn(a, b), of_b = __fsub_rn(s, a), of_a = __fsub_rn(s, of_b);
  return {s, __fadd_rn(__fsub_rn(a, of_a), __fsub_rn(b, of_b))};
}

// The same, where |a| >= |b|.
__device__ inline TwoFloat exact_sum_of_ordered(float a, float b) {
  const float s = __fadd_rn(a, b);
  return {s, __fsub_rn(b, __fsub_rn(s, a))};
}

__device__ inline TwoFloat exact_product(float a, float b) {
  const float p = __fmul_rn(a, b);
  return {p, __fmaf_rn(a, b, -p)};
}

__device__ inline TwoFloat operator-(TwoFloat a) { return {-a.hi, -a.lo}; }

// Relative error at most 3 u^2 and a trace, also where the terms cancel.
__device__ inline TwoFloat operator+(TwoFloat a, TwoFloat b) {
  const TwoFloat s = exact_sum(a.hi, b.hi), t = exact_sum(a.lo, b.lo);
  const TwoFloat v = exact_sum_of_ordered(s.hi, __fadd_rn(s.lo, t.hi));
  return exact_sum_of_ordered(v.hi, __fadd_rn(t.lo, v.lo));
}

__device__ inline TwoFloat operator-(TwoFloat a, TwoFloat b) { return a + (-b); }

// Relative error at most 5 u^2.
__device__ inline TwoFloat operator*(TwoFloat a, TwoFloat b) {
  const TwoFloat p = exact_product(a.hi, b.hi);
  return exact_sum_of_ordered(p.hi, __fmaf_rn(a.lo, b.hi, __fmaf_rn(a.hi, b.lo, p.lo)));
}

// Relative error at most 15 u^2.
__device__ inline TwoFloat operator/(TwoFloat a, TwoFloat b) {
  const float q = __fdiv_rn(a.hi, b.hi);
  const TwoFloat r = a - b * TwoFloat(q);
  return exact_sum_of_ordered(q, __fdiv_rn(r.hi, b.hi));
}

// 1 / sqrt(a) by one step of Newton's from the float's: r + r (1 - a r^2) / 2.
__device__ inline TwoFloat reciprocal_root(TwoFloat a) {
  const float r = rsqrtf(a.hi);
  const TwoFloat rest = TwoFloat(1.0f) - a * exact_product(r, r);
  return exact_sum_of_ordered(r, __fmul_rn(0.5f * r, rest.hi));
}

__device__ inline TwoFloat product_less(TwoFloat a, TwoFloat b, TwoFloat c) { return a * b - c; }

__device__ inline float narrowed(TwoFloat value) { return value.hi; }
