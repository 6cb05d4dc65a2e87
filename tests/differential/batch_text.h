// BatchText: what the bytes of a batch say, without what each library numbers on its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace braiddb::test {

// Reads RocksDB's form of batches. Leaves out the sequence number and markers of nothing; ids of families become what `family`
// gives. Bytes that are not of that form stand in the text as they are.
std::string BatchText(std::string_view bytes, const std::function<std::string(uint32_t id)>& family);

}  // namespace braiddb::test
