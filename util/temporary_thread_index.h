// TemporaryThreadIndex: a ThreadIndex for one call of a thread whose thread_local objects are being destroyed.
#pragma once

#include "util/thread_index.h"

namespace braiddb {

// Such a thread has no index of its own, since nobody would give it back. That is so in destructors of thread_local objects that
// were made before the thread had its index, in those of pthread keys, and in static destructors that the main thread runs. While
// this object lives, the thread has an index, if one is free. The object does nothing in other threads, or inside another one.
// Thread safety: the object is of one thread.
class TemporaryThreadIndex {
 public:
  TemporaryThreadIndex() {
    if (__builtin_expect(PeekThreadIndex() == kNoThreadIndex, 0)) Take();
  }
  ~TemporaryThreadIndex() {
    if (__builtin_expect(is_taken_, 0)) Give();
  }
  TemporaryThreadIndex(const TemporaryThreadIndex&) = delete;
  TemporaryThreadIndex& operator=(const TemporaryThreadIndex&) = delete;

 private:
  void Take();
  static void Give();

  bool is_taken_ = false;
};

}  // namespace braiddb
