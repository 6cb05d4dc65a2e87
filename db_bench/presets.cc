#include "db_bench/presets.h"

#include <initializer_list>

namespace braiddb::bench {

namespace {

using Arguments = std::vector<std::string>;

Arguments Join(std::initializer_list<Arguments> parts) {
  Arguments all;
  for (const Arguments& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Distributions that Cao et al. fitted to ZippyDB's traffic (FAST '20): sizes of keys and values, scan lengths, and rate.
Arguments ZippyDb() {
  return {"--key_size=48",
          "--value_theta=0",
          "--value_k=0.2615",
          "--value_sigma=25.45",
          "--iter_theta=0",
          "--iter_k=2.517",
          "--iter_sigma=14.236",
          "--sine_mix_rate_interval_milliseconds=5000",
          "--sine_mix_rate_noise=0.5",
          "--sine_a=1000",
          "--sine_b=0.000073",
          "--sine_d=4500"};
}

Arguments HotKeys() { return {"--key_dist_a=0.002312", "--key_dist_b=0.3467"}; }

Arguments HotRanges() {
  return {"--keyrange_num=30", "--keyrange_dist_a=14.18", "--keyrange_dist_b=-2.917", "--keyrange_dist_c=0.0164",
          "--keyrange_dist_d=-0.08082"};
}

Arguments Mix(const char* gets, const char* puts, const char* seeks) {
  return {std::string("--mix_get_ratio=") + gets, std::string("--mix_put_ratio=") + puts,
          std::string("--mix_seek_ratio=") + seeks};
}

// The shares of gets, puts, and seeks in ZippyDB. The paper compares its four key models with them.
Arguments PaperMix() { return Mix("0.83", "0.14", "0.03"); }

// YCSB's record size and workload order. E gets its own database, because D's insertions must not be in it.
Arguments Ycsb() {
  return {"--benchmarks=ycsb_load,ycsb_a,ycsb_b,ycsb_c,ycsb_f,ycsb_d,ycsb_load,ycsb_e", "--key_size=24", "--value_size=1000"};
}

}  // namespace

const std::vector<Preset>& Presets() {
  static const auto* const kPresets = new std::vector<Preset>{
      {"prefix_dist", "FAST '20: hot keys in hot ranges of keys; 0.83 gets, 0.14 puts, 0.03 seeks",
       Join({ZippyDb(), PaperMix(), HotKeys(), HotRanges()})},
      {"prefix_random", "the same, all keys of a range alike", Join({ZippyDb(), PaperMix(), HotRanges()})},
      {"all_dist", "the same, hot keys anywhere", Join({ZippyDb(), PaperMix(), HotKeys()})},
      {"all_random", "the same, all keys alike", Join({ZippyDb(), PaperMix()})},
      {"zippydb", "RocksDB's pull request 5953: as prefix_dist; 0.85 gets, 0.14 puts, 0.01 seeks",
       Join({ZippyDb(), Mix("0.85", "0.14", "0.01"), HotKeys(), HotRanges()})},
      {"listdb", "ListDB's figure 17: as prefix_dist; 0.7 gets, 0.3 puts, no seeks",
       Join({ZippyDb(), Mix("0.7", "0.3", "0"), HotKeys(), HotRanges()})},
      {"ycsb", "YCSB's load and A to F, keys of 24 bytes, values of 1000", Ycsb()},
  };
  return *kPresets;
}

const Preset* FindPreset(std::string_view name) {
  for (const Preset& preset : Presets()) {
    if (name == preset.name) return &preset;
  }
  return nullptr;
}

}  // namespace braiddb::bench
