// ArrayCursor: an EntryCursor over entries whose key prefixes and addresses are in DRAM, in an array in entry order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "index/cursor.h"
#include "index/prefix_steps.h"
#include "log/log_entry.h"
#include "pmem/region_set.h"
#include "util/prefetch.h"

namespace braiddb {

// Where it stands is known without a look at the entry, which is fetched before its turn comes.
// Item: prefix, KeyOrder::Prefix of the key; Entry(); and IsOlder(), than the item before it, of the same key. False: not known.
template <class Item>
class ArrayCursor final : public EntryCursor {
 public:
  // `steps`: built of the items. `fetch_bytes`: TypicalEntryBytes of them. `owner`: what keeps items and steps, or null if the
  // user of the cursor does.
  ArrayCursor(const RegionSet* regions, const KeyOrder* order, const Item* items, size_t size, const PrefixSteps* steps,
              uint64_t fetch_bytes, std::shared_ptr<const void> owner)
      : EntryCursor(true, fetch_bytes),
        regions_(regions),
        order_(order),
        items_(items),
        size_(size),
        steps_(steps),
        owner_(std::move(owner)) {}

  void SetReadAhead(size_t entries) override { ahead_ = entries; }
  uint64_t entries() const override { return size_; }
  bool FetchForSeek(const SearchKey& target) override {
    switch (found_) {
      case Found::kNothing:
        sought_ = steps_->FindAbove(target.prefix);
        found_ = Found::kAbove;
        return true;
      case Found::kAbove:
        group_ = steps_->FindBelow(sought_, target.prefix);
        found_ = Found::kGroup;
        PrefetchAll(items_ + group_, PrefixSteps::kFanout * sizeof(Item));
        return true;
      case Found::kGroup:
        sought_ = FirstNotLess(target.prefix);
        found_ = Found::kItem;
        if (sought_ < size_ && (ahead_ > 0 || items_[sought_].prefix == target.prefix)) FetchAt(sought_);
        return false;
      case Found::kItem:
        return false;
    }
    return false;
  }
  void SeekToFirst() override { Begin(0); }
  void SeekToLast() override { Begin(size_ - 1); }
  void Seek(const SearchKey& target) override { Begin(FindFirst(target)); }
  void SeekBefore(const SearchKey& target) override { Begin(FindFirst(target) - 1); }
  void Next() override { Move(1); }
  void Prev() override { Move(-size_t{1}); }  // from the first one to the end, as above
  void NextKey() override {
    size_t step = 1;
    while (at_ + step < size_ && items_[at_ + step].IsOlder()) ++step;
    if (step > 1) Pass(step - 1);
    Move(1);
  }

 protected:
  void ForgetFetched() override { found_ = Found::kNothing; }

 private:
  // Behind a seek, of which there may be one for each of several arrays and few steps, the distance grows by kGrowth with each
  // step.
  static constexpr size_t kGrowth = 3;
  // Of many cursors each is asked seldom, so the array's lines are fetched, too, before the entries that they lead to.
  static constexpr size_t kItemsAhead = 2 * kCacheLine / sizeof(Item);

  // For the next seek, what sought_ is.
  enum class Found : uint8_t { kNothing, kAbove, kGroup, kItem };

  void Begin(size_t at) {
    found_ = Found::kNothing;
    fetched_ = 0;
    step_ = 0;
    if (ahead_ > 0) FetchAt(at);
    Set(at);
  }
  void Move(size_t step) {
    if (step != step_) fetched_ = 0;
    step_ = step;
    const size_t at = at_ + step;
    const size_t ahead = step == 1 || ahead_ > 0 ? ahead_ : kUsualReadAhead;
    FetchItems(at + step * (ahead + kItemsAhead));
    if (fetched_ > 0) {
      --fetched_;
    } else {
      FetchAt(at);
    }
    for (size_t i = 0; i < kGrowth && fetched_ < ahead; ++i) FetchAhead(at + step * ++fetched_, step);
    Set(at);
  }
  // Goes on by so many items without a look at them.
  void Pass(size_t items) {
    at_ += items;
    fetched_ -= std::min(fetched_, items);
  }
  void FetchItems(size_t at) const {
    if (at < size_) Prefetch(&items_[at]);
  }
  // Forward, older versions are seldom wanted.
  void FetchAhead(size_t at, size_t step) const {
    if (at < size_ && !(step == 1 && items_[at].IsOlder())) FetchAt(at);
  }
  void FetchAt(size_t at) const {
    if (at < size_) Fetch(regions_->Resolve<LogEntry>(items_[at].Entry()));
  }
  void Set(size_t at) {
    at_ = at;
    entry_ = nullptr;
    if (at >= size_) return;
    prefix_ = items_[at].prefix;
    entry_ = regions_->Resolve<LogEntry>(items_[at].Entry());
  }
  // In the group.
  size_t FirstNotLess(uint64_t prefix) const {
    return group_ + PrefixSteps::CountLessOf(size_, group_, prefix, [this](size_t i) { return items_[i].prefix; });
  }
  // The first that is not before the target.
  size_t FindFirst(const SearchKey& target) {
    while (FetchForSeek(target)) {
    }
    const size_t end = std::min(group_ + PrefixSteps::kFanout, size_);
    if (sought_ == end || items_[sought_].prefix != target.prefix) return sought_;
    const auto before = [this](const Item& item, const SearchKey& of) {
      return item.prefix == of.prefix && CompareEntry(*order_, *regions_->Resolve<LogEntry>(item.Entry()), of) < 0;
    };
    const size_t past = items_[end - 1].prefix == target.prefix ? size_ : end;
    return static_cast<size_t>(std::lower_bound(items_ + sought_, items_ + past, target, before) - items_);
  }

  const RegionSet* const regions_;
  const KeyOrder* const order_;
  const Item* const items_;
  const size_t size_;
  const PrefixSteps* const steps_;
  const std::shared_ptr<const void> owner_;
  size_t at_ = size_;
  size_t ahead_ = kUsualReadAhead;
  size_t step_ = 0;     // the last one: 1, or -1 as a size_t; 0 behind a seek
  size_t fetched_ = 0;  // entries ahead in this direction
  Found found_ = Found::kNothing;
  size_t sought_ = 0;
  size_t group_ = 0;  // of steps_, from Found::kGroup on
};

}  // namespace braiddb
