// Comparing one stored result with its enclosure and with what it is allowed, and what is kept of a row. SHARP, in ulps,
// is that of oracles/truth.py, BINS, CAP and UNIT_BITS are those of oracles/ulp.py.
#pragma once
#include "storage.cuh"
#include "words.cuh"

// A limit is kept this far away from: NumPy computes it with other roundings.
#define MARGIN (1 - 0x1p-30)

// Errors from 2^(LOWEST - 1) to 2^HIGHEST have a bin, BINS to a binade, and so has 0, before them.
constexpr int BIN_COUNT = (HIGHEST - LOWEST + 1) * BINS + 1;
#define SMALLEST power_of_two(LOWEST - 1)
#define LARGEST power_of_two(HIGHEST)

__device__ inline unsigned *block_bins() {
  __shared__ unsigned bins[BIN_COUNT];
  return bins;
}

__device__ inline void empty_bins() {
  for (int k = threadIdx.x; k < BIN_COUNT; k += blockDim.x) block_bins()[k] = 0;
  __syncthreads();
}

// The exponent and the first bits of the fraction are the bin's number.
__device__ inline void count(double error) {
  const long long number = (__double_as_longlong(error) >> 46) - (long long)(1022 + LOWEST) * BINS;
  atomicAdd(&block_bins()[error == 0 ? 0 : 1 + int(number)], 1u);
}

__device__ inline void add_bins(unsigned *histogram) {
  for (int k = threadIdx.x; k < BIN_COUNT; k += blockDim.x)
    if (block_bins()[k]) atomicAdd(&histogram[k], block_bins()[k]);
}

__device__ inline long long in_units(double error) { return (long long)rint(error * (1 << UNIT_BITS)); }

struct Statistics {
  double error;      // the largest, in ulps of the exact value
  double distance;   // the largest |z - y|
  double spent;      // of what is allowed, where the share is largest
  double granted;    // what is allowed there
  long long units;   // sum of the errors, in 2^-UNIT_BITS ulps
  long long capped;  // the same, of errors of at most CAP
  int unit;          // the largest exponent of ulp(y)
  int compared, worst, misrounded, misrounded_high, special, open, unsettled;
};

__device__ inline Statistics nothing() { return {-1.0, 0.0, 0.0, 1.0, 0, 0, EMIN - PRECISION + 1, 0, -1, 0, 0, 0, 0, 0}; }

__device__ inline Statistics merge(Statistics a, Statistics b) {
  const bool first = a.error > b.error || (a.error == b.error && a.worst < b.worst);
  const bool more = a.spent * b.granted >= b.spent * a.granted;
  return {first ? a.error : b.error,
          fmax(a.distance, b.distance),
          more ? a.spent : b.spent,
          more ? a.granted : b.granted,
          a.units + b.units,
          a.capped + b.capped,
          max(a.unit, b.unit),
          a.compared + b.compared,
          first ? a.worst : b.worst,
          a.misrounded + b.misrounded,
          a.misrounded_high + b.misrounded_high,
          a.special + b.special,
          a.open + b.open,
          a.unsettled + b.unsettled};
}

// The exponent of ulp(y): a power of two that lo pulls down lies one binade lower.
__device__ inline int unit_exponent(Words y) {
  const long long bits = __double_as_longlong(y.hi) & 0x7fffffffffffffffll;
  const bool below = !(bits & 0xfffffffffffffll) && ((y.hi < 0) == (y.lo > 0)) && y.lo != 0;
  const int exponent = int(bits >> 52) - 1023 - below;
  return max(exponent, EMIN) - PRECISION + 1;
}

// Whether an enclosure reaches a power of two, where the unit doubles.
__device__ inline bool unit_is_open(Words y) {
  const long long bits = __double_as_longlong(y.hi) & 0x7fffffffffffffffll;
  const int exponent = int(bits >> 52) - 1023;
  if (exponent < EMIN || y.err == 0) return false;
  const double lo = (y.hi < 0) == (y.lo < 0) ? fabs(y.lo) : -fabs(y.lo), size = fabs(y.hi);
  const double above = fabs(__dadd_rn(__dadd_rn(size, -power_of_two(exponent)), lo));
  const double below = fabs(__dadd_rn(__dadd_rn(power_of_two(exponent + 1), -size), -lo));
  return fmin(above, below) <= y.err;
}

// What is kept of y and a stored result: with a bound before storage, half an ulp of storage and both with what else is
// allowed (properties/judge.py), or with a claim, in ulps, that counts in their place unless it is 0. Unsettled is what
// lies near a limit, or beyond it.
__device__ inline Statistics compare(Words y, Storage stored, int index, double bound, double half, double allowed,
                                     double claim) {
  Statistics s = nothing();
  const double z = widen(stored);
  s.unsettled = 1;
  if (!(y.err < INFINITY) || !isfinite(y.hi)) {
    s.open = 1;
    return s;
  }
  s.compared = 1;
  const int unit = s.unit = unit_exponent(y);
  if (!isfinite(z)) {
    s.special = 1;
    return s;
  }
  const Pair d = two_sum(z, -y.hi);
  const double signed_distance = __dadd_rn(d.value, __dadd_rn(d.error, -y.lo));
  const double distance = fabs(signed_distance), slack = up(y.err, up_times(2 * U, distance));
  const double gap = half_gap(stored, signed_distance < 0);  // y lies above z where z - y < 0
  s.error = distance * power_of_two(-unit);
  s.distance = distance;
  s.worst = index;
  s.misrounded = __dadd_rd(distance, -slack) > gap;
  s.misrounded_high = up(distance, slack) >= gap;
  s.open = y.err > SHARP * power_of_two(unit) || unit_is_open(y);
  s.units = in_units(fmin(s.error, LARGEST));
  s.capped = in_units(fmin(s.error, CAP));

  const double furthest = up(distance, slack);
  bool within;
  s.spent = distance;
  if (claim > 0) {
    s.granted = claim * power_of_two(unit);
    within = furthest <= s.granted * MARGIN;
  } else if (bound == 0) {  // only the correct rounding will do, which lies as far off as it lies
    within = !s.misrounded_high;
    s.granted = distance + (allowed - half);
    if (PRECISION < 24) s.spent = 0;
  } else {
    within = bound < INFINITY && furthest <= allowed * MARGIN;
    s.granted = PRECISION >= 24 ? allowed : allowed - half;
    if (PRECISION < 24) s.spent = fmax(distance - half, 0.0);
  }
  if (s.spent == 0) s.granted = 1;
  const bool countable = s.error == 0 || (s.error >= SMALLEST && s.error < LARGEST);
  if (countable) count(s.error);
  s.unsettled = !(within && countable && !s.open && s.misrounded == s.misrounded_high);
  return s;
}
