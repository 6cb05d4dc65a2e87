// RelocationProgress: ends relocations that gain nothing.
#pragma once

#include <cstdint>

namespace braiddb {

// A relocation copies to the regions of the originals, and leaves a partly filled segment in each. If old and new versions of the
// same keys are in several regions, the copies of one region's segments make another region's segments the sparsest. So a single
// relocation may gain nothing and yet lead to one that does, or two regions may be copied in turns for ever. Only the garbage
// after several relocations tells.
// Thread safety: none.
class RelocationProgress {
 public:
  // Returns true if a relocation may begin, and counts it. `garbage`: bytes of sealed segments that no live entry takes.
  // `written`: bytes that users have written. `segment`: bytes of a segment.
  bool MayBegin(uint64_t garbage, uint64_t written, uint64_t segment) {
    const bool writes = written - written_ >= 2 * segment;  // they make garbage, too
    if (is_over_ && !writes && garbage < garbage_ + segment && garbage_ < garbage + segment) return false;
    if (rounds_ == kRounds && !is_over_ && !writes && garbage + segment / 16 > garbage_) {
      is_over_ = true;
      garbage_ = garbage;
      written_ = written;
      return false;
    }
    if (is_over_ || rounds_ == kRounds) rounds_ = 0;
    is_over_ = false;
    if (rounds_++ == 0) {
      garbage_ = garbage;
      written_ = written;
    }
    return true;
  }

  // The relocation that has begun made no copies, for want of space or memory. It does not count.
  void NoteFailed() { rounds_ -= rounds_ > 0; }

 private:
  static constexpr uint32_t kRounds = 32;

  uint64_t garbage_ = 0;  // at the first of the relocations that are counted, or when they ended; written_ likewise
  uint64_t written_ = 0;
  uint32_t rounds_ = 0;
  bool is_over_ = false;
};

}  // namespace braiddb
