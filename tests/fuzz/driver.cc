// The main() of the fuzz targets: runs a target over files, or over inputs that it makes.
//
//   <target> [--seconds=S] [--runs=N] [--seed=N] [--keep=FILE] [FILE...]
//
// With files, it runs each of them once. Without, it makes inputs until S seconds (default 10) or N runs have passed: random
// bytes, and mutations of inputs that it made before. Inputs follow from the seed (default 1). Each input is written to FILE
// (default ./fuzz-input.<pid>) before it runs. The file is removed at the end, so after a crash it holds the input that caused
// it.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/fuzz_input.h"

namespace {

using Input = std::vector<uint8_t>;

class InputMaker {
 public:
  explicit InputMaker(uint64_t seed) : random_(seed) {}

  const Input& Next() {
    Input input;
    if (pool_.empty() || Below(4) == 0) {
      input.resize(Below(Below(3) == 0 ? 4096 : 256) + 1);
      for (uint8_t& byte : input) byte = static_cast<uint8_t>(random_());
    } else {
      input = pool_[Below(pool_.size())];
      for (uint64_t times = Below(8) + 1; times > 0; --times) Mutate(&input);
    }
    if (pool_.size() < kPoolInputs) {
      pool_.push_back(input);
      return pool_.back();
    }
    Input& slot = pool_[Below(pool_.size())];
    slot = std::move(input);
    return slot;
  }

 private:
  static constexpr size_t kPoolInputs = 256;
  static constexpr size_t kMaxInputBytes = 8192;

  uint64_t Below(uint64_t n) { return random_() % n; }

  void Mutate(Input* input) {
    const size_t at = Below(input->size());
    switch (Below(5)) {
      case 0:
        (*input)[at] = static_cast<uint8_t>(random_());
        break;
      case 1:
        (*input)[at] ^= static_cast<uint8_t>(1u << Below(8));
        break;
      case 2:
        if (input->size() > 1) input->erase(input->begin() + static_cast<ptrdiff_t>(at));
        break;
      case 3:
        if (input->size() < kMaxInputBytes)
          input->insert(input->begin() + static_cast<ptrdiff_t>(at), static_cast<uint8_t>(random_()));
        break;
      default: {
        const Input& other = pool_[Below(pool_.size())];
        const size_t from = Below(other.size());
        input->resize(at + 1);
        input->insert(input->end(), other.begin() + static_cast<ptrdiff_t>(from), other.end());
        if (input->size() > kMaxInputBytes) input->resize(kMaxInputBytes);
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<Input> pool_;
};

void Write(const std::string& path, const Input& input) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
}

int RunFiles(const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      fprintf(stderr, "%s: cannot be read\n", path.c_str());
      return 2;
    }
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  printf("%zu inputs passed\n", files.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 10;
  uint64_t max_runs = UINT64_MAX;
  uint64_t seed = 1;
  std::string keep = "fuzz-input." + std::to_string(getpid());
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--seconds=")) {
      seconds = atof(argv[i] + strlen("--seconds="));
    } else if (argument.starts_with("--runs=")) {
      max_runs = strtoull(argv[i] + strlen("--runs="), nullptr, 10);
    } else if (argument.starts_with("--seed=")) {
      seed = strtoull(argv[i] + strlen("--seed="), nullptr, 10);
    } else if (argument.starts_with("--keep=")) {
      keep = argument.substr(strlen("--keep="));
    } else if (argument.starts_with("-")) {
      fprintf(stderr, "usage: %s [--seconds=S] [--runs=N] [--seed=N] [--keep=FILE] [FILE...]\n", argv[0]);
      return 2;
    } else {
      files.emplace_back(argument);
    }
  }
  if (!files.empty()) return RunFiles(files);

  InputMaker inputs(seed);
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  uint64_t runs = 0;
  do {
    const Input& input = inputs.Next();
    Write(keep, input);
    LLVMFuzzerTestOneInput(input.data(), input.size());
    ++runs;
  } while (runs < max_runs && elapsed() < seconds);
  unlink(keep.c_str());
  printf("%llu inputs passed in %.1f s, seed %llu\n", static_cast<unsigned long long>(runs), elapsed(),
         static_cast<unsigned long long>(seed));
  return 0;
}
