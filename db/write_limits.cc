#include "db/write_limits.h"

#include <string>

#include "util/thread_index.h"

namespace braiddb {

Status CheckSizes(Slice key, Slice value) {
  if (key.size() > kMaxKeySize) {
    return Status::InvalidArgument("a key of " + std::to_string(key.size()) + " bytes; at most 65536 are possible");
  }
  if (value.size() > kMaxValueSize) {
    return Status::InvalidArgument("a value of " + std::to_string(value.size()) + " bytes; at most 1 GiB is possible");
  }
  return Status::OK();
}

Status TooManyThreads() {
  return Status::Busy("more than " + std::to_string(kMaxThreads) + " threads use databases; end some, then write again");
}

}  // namespace braiddb
