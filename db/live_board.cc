#include "db/live_board.h"

#include <sys/mman.h>

#include <new>

namespace braiddb {

LiveBoardMemory::LiveBoardMemory(bool shared) {
  if (shared) shared_ = SharedMemory::Create(sizeof(LiveBoard));
  void* memory = shared_ == nullptr ? nullptr : shared_->base();
  if (memory == nullptr) {
    memory = mmap(nullptr, sizeof(LiveBoard), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
  }
  // Zeroed memory is a valid board: atomics and announced numbers need no constructor.
  board_ = static_cast<LiveBoard*>(memory);
}

LiveBoardMemory::~LiveBoardMemory() {
  if (shared_ == nullptr) munmap(board_, sizeof(LiveBoard));
}

}  // namespace braiddb
