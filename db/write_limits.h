// The limits that every write is checked against: sizes of key and value, and the number of threads that write.
#pragma once

#include "braiddb/db.h"
#include "braiddb/slice.h"
#include "braiddb/status.h"

namespace braiddb {

inline bool AreSizesValid(Slice key, Slice value) { return key.size() <= kMaxKeySize && value.size() <= kMaxValueSize; }
// InvalidArgument, with the size and the limit, if AreSizesValid is false.
Status CheckSizes(Slice key, Slice value);
// Busy. The status of a write by a thread for which there is no ThreadState.
Status TooManyThreads();

}  // namespace braiddb
