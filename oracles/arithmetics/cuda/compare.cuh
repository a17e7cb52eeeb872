// Comparing one stored result with its enclosure, and what is kept of a row. SHARP, in ulps, is that of oracles/truth.py.
#pragma once
#include "storage.cuh"
#include "words.cuh"

struct Statistics {
  double error;       // the largest, in ulps of the exact value
  double error_sum;   // in ulps
  double distance;    // the largest |z - y|
  double magnitude;   // the largest |y|
  int compared, worst, misrounded, misrounded_high, special, open;
};

__device__ inline Statistics nothing() { return {-1.0, 0.0, 0.0, 0.0, 0, -1, 0, 0, 0, 0}; }

__device__ inline Statistics merge(Statistics a, Statistics b) {
  const bool first = a.error > b.error || (a.error == b.error && a.worst < b.worst);
  return {first ? a.error : b.error,
          a.error_sum + b.error_sum,
          fmax(a.distance, b.distance),
          fmax(a.magnitude, b.magnitude),
          a.compared + b.compared,
          first ? a.worst : b.worst,
          a.misrounded + b.misrounded,
          a.misrounded_high + b.misrounded_high,
          a.special + b.special,
          a.open + b.open};
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

__device__ inline Statistics compare(Words y, Storage stored, int index) {
  Statistics s = nothing();
  const double z = widen(stored);
  if (!(y.err < INFINITY) || !isfinite(y.hi)) {
    s.open = 1;
    return s;
  }
  s.compared = 1;
  s.magnitude = fabs(y.hi);
  if (!isfinite(z)) {
    s.special = 1;
    return s;
  }
  const int unit = unit_exponent(y);
  const Pair d = two_sum(z, -y.hi);
  const double signed_distance = __dadd_rn(d.value, __dadd_rn(d.error, -y.lo));
  const double distance = fabs(signed_distance), slack = up(y.err, up_times(2 * U, distance));
  const double half = half_gap(stored, signed_distance < 0);  // y lies above z where z - y < 0
  s.error = distance * power_of_two(-unit);
  s.error_sum = s.error;
  s.distance = distance;
  s.worst = index;
  s.misrounded = __dadd_rd(distance, -slack) > half;
  s.misrounded_high = up(distance, slack) >= half;
  s.open = y.err > SHARP * power_of_two(unit) || unit_is_open(y);
  return s;
}
