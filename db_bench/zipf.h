// Zipf's law over a key space, as in YCSB: few keys are asked for often, and the popular ones lie anywhere.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>

#include "util/random.h"

namespace braiddb::bench {

// Numbers in [0, n); the k-th popular one, from 1, is drawn with a probability proportional to k^-exponent. Takes no memory, and
// a draw some tens of nanoseconds. REQUIRES: n > 0, exponent > 0.
// From: W. Hörmann, G. Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", 1996.
class ZipfDistribution {
 public:
  ZipfDistribution(uint64_t n, double exponent)
      : n_(n),
        exponent_(exponent),
        area_begin_(Area(1.5) - 1),
        area_end_(Area(static_cast<double>(n) + 0.5)),
        sure_(2 - Inverse(Area(2.5) - Density(2))),
        stride_(StrideFor(n)) {}

  uint64_t Draw(Random* random) const {
    // The rank's place among all: neighbours in rank are far apart.
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>(static_cast<Wide>(DrawRank(random) - 1) * stride_ % n_);
  }

  // In [1, n].
  uint64_t DrawRank(Random* random) const {
    for (;;) {
      const double area = area_end_ + random->NextDouble() * (area_begin_ - area_end_);
      const double x = Inverse(area);
      const double nearest = std::fmin(std::fmax(std::floor(x + 0.5), 1), static_cast<double>(n_));
      if (nearest - x <= sure_ || area >= Area(nearest + 0.5) - Density(nearest)) return static_cast<uint64_t>(nearest);
    }
  }

 private:
  double Density(double x) const { return std::exp(-exponent_ * std::log(x)); }
  // The integral of the density, up to a constant; with an exponent of 1 the logarithm, and exact near it.
  double Area(double x) const {
    const double log_x = std::log(x), y = (1 - exponent_) * log_x;
    return log_x * (std::fabs(y) > 1e-8 ? std::expm1(y) / y : 1 + y / 2);
  }
  double Inverse(double area) const {
    const double y = std::fmax((1 - exponent_) * area, -1);
    return std::exp(area * (std::fabs(y) > 1e-8 ? std::log1p(y) / y : 1 - y / 2));
  }
  // Near n over the golden ratio, and without a common divisor: ranks go to different numbers.
  static uint64_t StrideFor(uint64_t n) {
    auto stride = static_cast<uint64_t>(static_cast<double>(n) * 0.6180339887498949) + 1;
    while (std::gcd(stride, n) != 1) ++stride;
    return stride;
  }

  const uint64_t n_;
  const double exponent_;
  const double area_begin_;
  const double area_end_;
  const double sure_;  // so near to the nearest number no rejection is possible
  const uint64_t stride_;
};

}  // namespace braiddb::bench
