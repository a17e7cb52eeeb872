// The device's words for a C++ compiler, with bounds by the next float outward; for the audit. A block has one thread,
// unless who includes this brings a BLOCK and what its threads say to each other.
#pragma once
#include <cmath>
#include <cstring>

#define __device__
#define __global__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(threads, blocks)

#ifndef BLOCK
#define BLOCK 1
#define WARP 1

struct Index {
  long long x;
};
static Index threadIdx{0}, blockIdx{0}, blockDim{1};
static inline void __syncthreads() {}

static inline unsigned atomicAdd(unsigned *at, unsigned value) { return *at += value, *at - value; }
static inline double __shfl_xor_sync(unsigned, double v, int) { return v; }
static inline double __shfl_up_sync(unsigned, double v, int) { return v; }
static inline double __shfl_sync(unsigned, double v, int) { return v; }
static inline bool __any_sync(unsigned, bool of_one) { return of_one; }
static inline unsigned __ballot_sync(unsigned, bool of_one) { return of_one; }
#endif

static inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
static inline double above(double v) { return std::nextafter(v, INFINITY); }
static inline double below(double v) { return std::nextafter(v, -INFINITY); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dadd_ru(double a, double b) { return above(a + b); }
static inline double __dadd_rd(double a, double b) { return below(a + b); }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __dmul_ru(double a, double b) { return above(a * b); }
static inline double __dmul_rd(double a, double b) { return below(a * b); }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __ddiv_ru(double a, double b) { return above(a / b); }
static inline double __dsqrt_rn(double a) { return std::sqrt(a); }
static inline double __dsqrt_ru(double a) { return above(std::sqrt(a)); }
static inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
static inline double __longlong_as_double(long long bits) {
  double v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}
static inline long long __double_as_longlong(double v) {
  long long bits;
  std::memcpy(&bits, &v, sizeof v);
  return bits;
}
static inline float __uint_as_float(unsigned int bits) {
  float v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}
static inline int max(int a, int b) { return a < b ? b : a; }
using std::isfinite;

extern "C" void block(long long index) { blockIdx.x = index; }
