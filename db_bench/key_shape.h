// Keys of --key_shape and --key_file: how the number of a key becomes its bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/slice.h"

namespace braiddb::bench {

struct KeyShape {
  const char* name;
  const char* what;  // describes the keys, for --help
  bool in_order;     // keys ascend with their numbers, up to 2^32
  // Appends the key. Different numbers below `numbers` have different keys.
  void (*append)(uint64_t number, std::string* key);
  uint64_t numbers = UINT64_MAX;
};

const std::vector<KeyShape>& KeyShapes();

// Maps numbers to keys. Immutable, so threads and processes share it.
class ShapedKeys {
 public:
  // Throws std::invalid_argument if no shape has the name.
  static std::shared_ptr<const ShapedKeys> OfShape(const std::string& name);
  // Reads one key a line. A line ends at "\n" or at the end of the file; all other bytes belong to the key. Throws
  // std::invalid_argument if the file cannot be read, has no keys, or has a key that is empty, too long, or present twice.
  static std::shared_ptr<const ShapedKeys> OfFile(const std::string& path);

  // Appends the key. Numbers from count() on have keys that are not in the file.
  void Append(uint64_t number, std::string* key) const;
  // The number of keys of a file, or the number of different keys of a shape.
  uint64_t count() const { return shape_ == nullptr ? ends_.size() : shape_->numbers; }
  bool is_file() const { return shape_ == nullptr; }
  bool in_order() const { return shape_ != nullptr && shape_->in_order; }
  // The average size of the keys below `num` in bytes, rounded up. For a shape: of a sample.
  uint64_t AverageSize(uint64_t num) const;

 private:
  explicit ShapedKeys(const KeyShape* shape) : shape_(shape) {}
  void ReadFile(const std::string& path);
  std::string_view LineAt(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1] + 1;
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

  const KeyShape* const shape_;  // null: the keys of a file
  std::string bytes_;
  std::vector<size_t> ends_;  // end of each line in bytes_
};

}  // namespace braiddb::bench
