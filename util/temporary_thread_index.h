// TemporaryThreadIndex: a ThreadIndex for one call of a thread whose thread_local objects are being destroyed.
#pragma once

#include "util/thread_index.h"

namespace braiddb {

// Such a thread has no index of its own, since no code would return it. This concerns destructors of thread_local objects that
// were created before the thread had its index, destructors of pthread keys, and static destructors in the main thread. While
// this object lives, the thread has an index, if one is free. In other threads, and inside another such object, the object does
// nothing.
// CONCURRENCY  The object belongs to one thread.
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
