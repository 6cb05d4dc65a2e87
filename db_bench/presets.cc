#include "db_bench/presets.h"

namespace braiddb::bench {

namespace {

using Arguments = std::vector<std::string>;

// What Cao et al. fitted to ZippyDB's traffic (FAST '20), but for which keys are hot.
Arguments WithSizes(Arguments arguments) {
  const Arguments sizes = {"--key_size=48",
                           "--value_theta=0",
                           "--value_k=0.2615",
                           "--value_sigma=25.45",
                           "--iter_theta=0",
                           "--iter_k=2.517",
                           "--iter_sigma=14.236",
                           "--mix_get_ratio=0.7",
                           "--mix_put_ratio=0.3",
                           "--mix_seek_ratio=0",
                           "--sine_mix_rate_interval_milliseconds=5000",
                           "--sine_mix_rate_noise=0.5",
                           "--sine_a=1000",
                           "--sine_b=0.000073",
                           "--sine_d=4500"};
  arguments.insert(arguments.end(), sizes.begin(), sizes.end());
  return arguments;
}

const Arguments kHotKeys = {"--key_dist_a=0.002312", "--key_dist_b=0.3467"};
const Arguments kHotRanges = {"--key_dist_a=0.002312",     "--key_dist_b=0.3467",      "--keyrange_num=30",
                              "--keyrange_dist_a=14.18",   "--keyrange_dist_b=-2.917", "--keyrange_dist_c=0.0164",
                              "--keyrange_dist_d=-0.08082"};

}  // namespace

const std::vector<Preset>& Presets() {
  static const auto* const kPresets = new std::vector<Preset>{
      {"prefix_dist", "hot keys in hot ranges of keys", WithSizes(kHotRanges)},
      {"all_dist", "hot keys anywhere", WithSizes(kHotKeys)},
      {"all_random", "all keys alike", WithSizes({})},
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
