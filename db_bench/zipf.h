// Zipf's law over a key space, and YCSB's popularity of records: few keys are popular, and the popular keys are spread over the
// space.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>

#include "util/random.h"

namespace braiddb::bench {

// Numbers in [0, n). The k-th popular one, from 1, has a probability proportional to k^-exponent. Needs no table. REQUIRES: n >
// 0, exponent > 0.
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
    // Maps the rank to a number: neighbours in rank are far apart.
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
  // The integral of the density, up to a constant. For an exponent of 1 the logarithm; exact also near 1.
  double Area(double x) const {
    const double log_x = std::log(x), y = (1 - exponent_) * log_x;
    return log_x * (std::fabs(y) > 1e-8 ? std::expm1(y) / y : 1 + y / 2);
  }
  double Inverse(double area) const {
    const double y = std::fmax((1 - exponent_) * area, -1);
    return std::exp(area * (std::fabs(y) > 1e-8 ? std::log1p(y) / y : 1 - y / 2));
  }
  // Near n divided by the golden ratio, and coprime to n. So different ranks map to different numbers.
  static uint64_t StrideFor(uint64_t n) {
    auto stride = static_cast<uint64_t>(static_cast<double>(n) * 0.6180339887498949) + 1;
    while (std::gcd(stride, n) != 1) ++stride;
    return stride;
  }

  const uint64_t n_;
  const double exponent_;
  const double area_begin_;
  const double area_end_;
  const double sure_;  // closer than this to the nearest number, no rejection is possible
  const uint64_t stride_;
};

// The popularity of YCSB's records (ScrambledZipfianGenerator): Zipf's law over 10^10 items, independent of the number of
// records. The FNV-1a hash of an item selects its record. So hot records are less popular than under the law over the records: of
// 30,000 records the hottest hundredth gets 26 % of the requests instead of 56 %.
// REQUIRES: n > 0, exponent > 0.
class ScrambledZipf {
 public:
  ScrambledZipf(uint64_t n, double exponent)
      : law_(kItems, exponent), n_(n), exponent_(exponent), zeta_(Zeta(exponent)), eta_(Eta()) {}

  // In [0, n).
  uint64_t Draw(Random* random) const { return Hash(DrawItem(random)) % n_; }

  // As in YCSB, which takes the absolute value of a signed number.
  static uint64_t Hash(uint64_t item) {
    uint64_t hash = 0xcbf29ce484222325;
    for (int byte = 0; byte < 8; ++byte, item >>= 8) hash = (hash ^ (item & 0xff)) * 1099511628211;
    return hash >> 63 == 0 ? hash : -hash;
  }

 private:
  static constexpr uint64_t kItems = 10'000'000'000;

  // The sum of k^-exponent over all items: the first items directly, the rest by the integral (Euler and Maclaurin).
  static double Zeta(double exponent) {
    constexpr int kSummed = 1000;
    double sum = 0;
    for (int k = 1; k < kSummed; ++k) sum += std::pow(k, -exponent);
    const double first = kSummed, last = static_cast<double>(kItems), power = 1 - exponent;
    const double integral =
        std::fabs(power) < 1e-9 ? std::log(last / first) : (std::pow(last, power) - std::pow(first, power)) / power;
    return sum + integral + (std::pow(first, -exponent) + std::pow(last, -exponent)) / 2;
  }
  double Eta() const {
    const double first_two = 1 + std::pow(0.5, exponent_);
    return (1 - std::pow(2 / static_cast<double>(kItems), 1 - exponent_)) / (1 - first_two / zeta_);
  }

  // YCSB's approximation of the law, by Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD '94. It is
  // valid for exponents below 1. YCSB has no others; larger exponents follow the exact law.
  uint64_t DrawItem(Random* random) const {
    if (exponent_ >= 1) return law_.DrawRank(random) - 1;
    const double uniform = random->NextDouble(), share = uniform * zeta_;
    if (share < 1) return 0;
    if (share < 1 + std::pow(0.5, exponent_)) return 1;
    return static_cast<uint64_t>(static_cast<double>(kItems) * std::pow(eta_ * uniform - eta_ + 1, 1 / (1 - exponent_)));
  }

  const ZipfDistribution law_;
  const uint64_t n_;
  const double exponent_, zeta_, eta_;
};

}  // namespace braiddb::bench
