#include "leaf_tree/entry_cursor.h"

#include <algorithm>

#include "leaf_tree/leaf_cursor.h"

namespace braiddb {
namespace {

class LeafEntryCursor final : public EntryCursor {
 public:
  LeafEntryCursor(const LeafTree* tree, const EntryKeys* keys)
      : EntryCursor(true, keys->usual_bytes()), cursor_(tree), keys_(keys), bytes_(keys->usual_bytes()) {}
  ~LeafEntryCursor() override {
    NoteBytes();
    keys_->NoteUsualBytes(bytes_);
  }

  void SeekToFirst() override {
    cursor_.SeekToFirst();
    BeginForward();
  }
  void SeekToLast() override {
    cursor_.SeekToLast();
    BeginBackward();
  }
  void Seek(const SearchKey& target) override {
    cursor_.Seek(target);
    BeginForward();
  }
  void SeekBefore(const SearchKey& target) override {
    cursor_.SeekBefore(target);
    BeginBackward();
  }
  void Next() override {
    cursor_.Next();
    if (__builtin_expect(!is_forward_, 0)) Begin(true);
    if (--fetched_ < least_) {
      CopyAhead();
      FetchForward(kBlock);
    }
    Load();
  }
  void NextKey() override { LeafEntryCursor::Next(); }
  void Prev() override {
    cursor_.Prev();
    if (__builtin_expect(is_forward_, 0)) Begin(false);
    if (--fetched_ < least_) {
      least_ = std::min(least_ + kFirstLeast, kLeast);
      FetchBackward(kBlock);
    }
    Load();
  }

 private:
  // Prefetches a block of entries when fewer than least_ prefetched ones are left. After a seek, which may be followed by few
  // steps, the first block and the limit are smaller; the limit then grows with each block (docs/design/0004-nvtree.md).
  static constexpr std::ptrdiff_t kFirstBlock = 8;
  static constexpr std::ptrdiff_t kBlock = 12;
  static constexpr std::ptrdiff_t kFirstLeast = 4;
  static constexpr std::ptrdiff_t kLeast = 12;

  void BeginForward() {
    Begin(true);
    FetchForward(kFirstBlock);
    Load();
  }
  void BeginBackward() {
    Begin(false);
    FetchBackward(kFirstBlock);
    Load();
  }
  // A change of direction discards the prefetch state, because the prefetched entries lie on the other side.
  void Begin(bool forward) {
    is_forward_ = forward;
    fetched_ = 0;
    least_ = kFirstLeast;
  }

  // Copies elements early enough that enough of them wait for the prefetch of their entries, and prefetches leaves before that.
  void CopyAhead() {
    if (cursor_.element() == nullptr) return;
    const std::ptrdiff_t left = cursor_.end() - cursor_.element();
    if (left < fetched_ + kBlock) {
      cursor_.CopyMore();
    } else if (left < fetched_ + 2 * kBlock) {
      cursor_.FetchMore();
    }
    least_ = std::min(least_ + kFirstLeast, kLeast);
  }
  void FetchForward(std::ptrdiff_t count) {
    const Element* const element = cursor_.element();
    if (element == nullptr) return;
    fetched_ = std::max<std::ptrdiff_t>(fetched_, 0);
    NoteBytes();
    const std::ptrdiff_t until = std::min(fetched_ + count, cursor_.end() - element);
    for (; fetched_ < until; ++fetched_) keys_->PrefetchWhole(element[fetched_], bytes_);
  }
  // Limited to the copied leaf.
  void FetchBackward(std::ptrdiff_t count) {
    const Element* const element = cursor_.element();
    if (element == nullptr) return;
    fetched_ = std::max<std::ptrdiff_t>(fetched_, 0);
    NoteBytes();
    const std::ptrdiff_t until = std::min(fetched_ + count, element - cursor_.begin() + 1);
    for (; fetched_ < until; ++fetched_) keys_->PrefetchWhole(element[-fetched_], bytes_);
  }
  // Neighboring entries often have similar sizes, so the size of the last one is the estimate for the next prefetches.
  void NoteBytes() {
    if (entry_ != nullptr) bytes_ = static_cast<uint32_t>(std::min<uint64_t>(LogEntrySize(*entry_), EntryKeys::kMostFetched));
  }

  void Load() {
    const Element* const element = cursor_.element();
    entry_ = nullptr;
    if (element == nullptr) return;
    prefix_ = element->key;
    entry_ = keys_->EntryOf(*element);
  }

  LeafCursor cursor_;
  const EntryKeys* const keys_;
  uint32_t bytes_;              // estimated entry size: that of the last entry read
  std::ptrdiff_t fetched_ = 0;  // entries prefetched from the position on, in the cursor's direction
  std::ptrdiff_t least_ = kFirstLeast;
  bool is_forward_ = true;
};

}  // namespace

std::unique_ptr<EntryCursor> NewEntryCursor(const LeafTree* tree, const EntryKeys* keys) {
  return std::make_unique<LeafEntryCursor>(tree, keys);
}

}  // namespace braiddb
