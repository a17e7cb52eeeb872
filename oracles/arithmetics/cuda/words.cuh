// Double words with an error bound on the device: |y - (hi + lo)| <= err, |lo| <= u |hi|, u = 2^-53. As
// oracles/arithmetics/double_word.py proves them, with CUDA's directed rounding for the bounds, and fused multiply-add
// for products. Intrinsics throughout: the compiler contracts and reorders nothing of them. exp, log and log1p are good
// to 1 ulp by NVIDIA's documentation (CUDA C++ Programming Guide, mathematical functions, double precision); twice that
// is allowed for.
#pragma once

#ifndef INFINITY
#define INFINITY __longlong_as_double(0x7ff0000000000000ll)
#endif

struct Words {
  double hi, lo, err;
};

constexpr double U = 1.0 / (1ll << 53);
constexpr double OPERATION = 16 * U * U;  // a product, quotient or root, relative
constexpr double DOCUMENTED = 2 * 2 * U;  // two ulps, relative
#define UNDERFLOW 0x1p-1060               // what products that underflow lose at most

__device__ inline double up(double a, double b) { return __dadd_ru(a, b); }
__device__ inline double up_times(double a, double b) { return __dmul_ru(fabs(a), fabs(b)); }

struct Pair {
  double value, error;
};

__device__ inline Pair two_sum(double a, double b) {
  const double s = __dadd_rn(a, b), t = __dadd_rn(s, -a);
  return {s, __dadd_rn(__dadd_rn(a, -__dadd_rn(s, -t)), __dadd_rn(b, -t))};
}

__device__ inline Pair two_product(double a, double b) {
  const double p = __dmul_rn(a, b);
  return {p, __fma_rn(a, b, -p)};
}

__device__ inline Words normal(double hi, double lo, double err) {
  const Pair sum = two_sum(hi, lo);
  return {sum.value, sum.error, err};
}

__device__ inline Words exact(double v) { return {v, 0.0, 0.0}; }
__device__ inline double size(Words a) { return up(fabs(a.hi), fabs(a.lo)); }
__device__ inline Words negative(Words a) { return {-a.hi, -a.lo, a.err}; }

__device__ inline Words add(Words a, Words b) {
  const Pair high = two_sum(a.hi, b.hi), lows = two_sum(a.lo, b.lo), low = two_sum(lows.value, high.error);
  const double dropped = up(fabs(lows.error), fabs(low.error));
  return normal(high.value, low.value, up(dropped, up(a.err, b.err)));
}

__device__ inline Words subtract(Words a, Words b) { return add(a, negative(b)); }

__device__ inline Words multiply(Words a, Words b) {
  const Pair p = two_product(a.hi, b.hi);
  const double low = __dadd_rn(p.error, __fma_rn(a.hi, b.lo, __dmul_rn(a.lo, b.hi)));
  const double inherited = up(up_times(up(size(a), a.err), b.err), up_times(size(b), a.err));
  return normal(p.value, low, up(inherited, up(up_times(OPERATION, p.value), UNDERFLOW)));
}

__device__ inline Words divide(Words a, Words b) {
  const double q = __ddiv_rn(a.hi, b.hi);
  const double remainder = __fma_rn(-q, b.lo, __dadd_rn(__fma_rn(-q, b.hi, a.hi), a.lo));
  const double least = __dadd_rd(__dadd_rd(fabs(b.hi), -fabs(b.lo)), -b.err);
  if (!(least > 0)) return {0.0, 0.0, INFINITY};  // b may be 0: nothing is known
  const Pair sum = two_sum(q, __ddiv_rn(remainder, b.hi));
  const double quotient = up(fabs(sum.value), fabs(sum.error));
  const double inherited = __ddiv_ru(up(a.err, up(up_times(quotient, b.err), UNDERFLOW)), least);
  return {sum.value, sum.error, up(inherited, up(up_times(OPERATION, q), UNDERFLOW))};
}

__device__ inline Words square_root(Words a) {
  if (!(a.hi > 0)) return {0.0, 0.0, a.hi == 0 ? __dsqrt_ru(a.err) : INFINITY};
  const double s = __dsqrt_rn(a.hi);
  const double remainder = __dadd_rn(__fma_rn(-s, s, a.hi), a.lo);
  const double ratio = __ddiv_ru(a.err, __dadd_rd(a.hi, -fabs(a.lo)));
  const double near = __ddiv_ru(up_times(up(s, up_times(4 * U, s)), ratio), __dmul_rd(2.0, __dadd_rd(1.0, -ratio)));
  const double inherited = ratio <= 0.5 ? near : __dsqrt_ru(up(size(a), a.err));
  const double underflow = a.hi < 0x1p-900 ? 0x1p-530 : 0.0;
  return normal(s, __ddiv_rn(remainder, 2 * s), up(inherited, up(up_times(OPERATION, s), underflow)));
}

// exp(hi) (1 + lo) within 2 (lo^2 + err), for err < 1/4; a larger lo belongs to a hi beyond 2^50, where the exponential
// overflows or lies below every float.
__device__ inline Words exponential(Words a) {
  if (!(a.err < 0.25)) return {0.0, 0.0, INFINITY};
  const double value = exp(a.hi);
  const double second = __dmul_ru(2.0, up(up_times(a.lo, a.lo), a.err));
  const double spread = up(second, up_times(8 * U, a.lo));
  const double factor = up(up(DOCUMENTED, up_times(2 * DOCUMENTED, up(fabs(a.lo), spread))), spread);
  const double err = value == 0 ? UNDERFLOW : up(up_times(factor, value), UNDERFLOW);
  return normal(value, value == 0 ? 0.0 : __dmul_rn(value, a.lo), err);
}

// f(hi) + d/base, d = lo + rho with |rho| <= err; log1p(t) is t within t^2 for |t| <= 1/2.
__device__ inline Words logarithm(double value, Words a, double base) {
  const double change = __ddiv_rn(a.lo, base);
  const double t = __ddiv_ru(up(fabs(a.lo), a.err), base);
  if (!(t >= 0 && t < 0.5)) return {0.0, 0.0, INFINITY};
  const double inherited = up(__ddiv_ru(a.err, base), up(up_times(t, t), up_times(8 * U, t)));
  return normal(value, change, up(inherited, up(up_times(DOCUMENTED, value), UNDERFLOW)));
}

__device__ inline Words log_of(Words a) { return logarithm(log(a.hi), a, a.hi); }
__device__ inline Words log1p_of(Words a) { return logarithm(log1p(a.hi), a, __dadd_rn(1.0, a.hi)); }

// Inputs only, which are exact. NaN stays, from either side.
__device__ inline Words larger(Words a, Words b) { return a.hi != a.hi || a.hi >= b.hi ? a : b; }
__device__ inline Words is_equal(Words a, Words b) { return exact(a.hi == b.hi ? 1.0 : 0.0); }

// What bounds are computed in: floats, like NumPy's.
__device__ inline double add(double a, double b) { return a + b; }
__device__ inline double larger(double a, double b) { return a != a || a >= b ? a : b; }
// As frexp has it, of a normal double; of smaller ones it is too large, and of 0 as well.
__device__ inline double exponent_of(double v) {
  return int(__double_as_longlong(v) >> 52 & 0x7ff) - 1022;
}
// NVIDIA's is good to an ulp, and a power of two has to be exact: bounds have ceil(log2).
__device__ inline double log2_of(double v) {
  const bool exactly = !(__double_as_longlong(v) & 0xfffffffffffffll);
  return exactly && v > 0 ? exponent_of(v) - 1 : log2(v);
}
