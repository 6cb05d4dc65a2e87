#include "levels/hybrid/hybrid_media.h"

#include <algorithm>
#include <string>

#include "check/level_entries.h"
#include "check/media.h"
#include "index/leaf_space.h"
#include "index/link.h"
#include "log/log_reader.h"

namespace braiddb {
namespace {

// Collects the entries of one hash index.
class PageWalk {
 public:
  struct Entry {
    const LogEntry* entry;
    PmPtr place;
    size_t segment;
  };

  PageWalk(const LevelCheck& check, const HashRoot& root) : check_(check), media_(check.media), root_(root) {}

  std::vector<Entry> Run() {
    FindPages();
    const CountingPages pages(std::move(pages_), root_.used);
    if (pages.damage() != nullptr) Bad(pages.damage(), "hash index");
    for (const CountingPages::Page& page : pages.counting()) WalkChain(page);
    return std::move(entries_);
  }
  bool is_broken() const { return is_broken_; }

 private:
  void Bad(const std::string& what, const std::string& where) {
    is_broken_ = true;
    check_.findings->Add(what, where + ", last level" + check_.family.suffix());
  }

  void FindPages() {
    for (const MediaSegment& segment : media_.segments()) {
      if (segment.state != SegmentState::kIndex || segment.capacity < HashPage::kBytes) continue;
      if (!IsSpaceHeader(*media_.Resolve<SpaceHeader>(segment.start()), root_.tree_id, segment.generation, HashPage::kBytes))
        continue;
      const uint64_t blocks = HashMark::Blocks(media_.Resolve<uint8_t>(segment.start()), root_.tree_id, segment.generation,
                                               segment.capacity / HashPage::kBytes - 1);
      for (uint64_t block = 1; block <= blocks; ++block) {
        const PmPtr place = segment.start() + block * HashPage::kBytes;
        const HashPage& page = *media_.Resolve<HashPage>(place);
        if (!page.IsValid(root_.tree_id, place)) continue;
        if (HashPage::IsOverflow(page.state)) {
          overflow_.push_back(place.raw());
        } else {
          pages_.push_back({place, page.range()});
        }
      }
    }
    std::sort(overflow_.begin(), overflow_.end());
  }

  void WalkChain(const CountingPages::Page& first) {
    size_t length = 0;
    for (PmPtr place = first.place;;) {
      const HashPage& page = *media_.Resolve<HashPage>(place);
      for (const HashPage::Bucket& bucket : page.buckets) {
        for (const uint64_t slot : bucket) {
          if (first.range.IsUsed(slot)) VisitSlot(first.range, slot, place);
        }
      }
      if (!IsLink(place.raw() ^ root_.tree_id, page.next)) return Bad("a damaged link to an overflow page", media_.Place(place));
      const PmPtr next = LinkTarget(page.next);
      if (next.is_null()) return;
      if (!std::binary_search(overflow_.begin(), overflow_.end(), next.raw()) ||
          media_.Resolve<HashPage>(next)->prefix != first.place.raw() || ++length > overflow_.size())
        return Bad("a link that leads to no overflow page of this page", media_.Place(place));
      place = next;
    }
  }

  void VisitSlot(const HashPage::Range& range, uint64_t slot, PmPtr page) {
    const PmPtr place = HashPage::EntryOf(slot);
    size_t segment = 0;
    const LogEntry* const entry = media_.EntryAt(place, &segment);
    if (entry == nullptr || !IsValid(place, segment)) return Bad("a slot that names no valid entry", media_.Place(page));
    if (entry->family() != check_.family.id) return Bad("a slot of another column family", media_.Place(page));
    if (!range.Matches(slot, KeySignature(root_.tree_id, entry->key())))
      return Bad("a slot of another key than its entry", media_.Place(page));
    entries_.push_back({entry, place, segment});
  }

  bool IsValid(PmPtr place, size_t segment) const {
    const MediaSegment& home = media_.segments()[segment];
    const LogReader reader(media_.Resolve(home.start()), home.entry_seed, home.limit());
    return reader.ValidAt(place.offset() - home.data);
  }

  const LevelCheck& check_;
  const Media& media_;
  const HashRoot& root_;
  std::vector<CountingPages::Page> pages_;
  std::vector<uint64_t> overflow_;  // places of overflow pages, sorted
  std::vector<Entry> entries_;
  bool is_broken_ = false;
};

}  // namespace

bool HybridMedia::Load(Media* media, const MediaFamily& family, Findings* findings) {
  const auto* root = reinterpret_cast<const HashRoot*>(media->FindPlace(family, 0, sizeof(HashRoot)));
  if (root == nullptr || !IsHashRoot(*root, media->root(0)->database_id, family.number)) {
    findings->Add("the root of the hash index is missing or damaged", "region 0" + family.suffix());
    return false;
  }
  root_ = root;
  return true;
}

LevelCounts HybridMedia::Check(const LevelCheck& check) const {
  PageWalk walk(check, *root_);
  std::vector<PageWalk::Entry> entries = walk.Run();
  std::sort(entries.begin(), entries.end(), [&check](const PageWalk::Entry& a, const PageWalk::Entry& b) {
    return CompareEntries(check.order, *a.entry, *b.entry) < 0;
  });
  LevelEntries judge(check);
  for (const PageWalk::Entry& entry : entries) judge.Visit(*entry.entry, entry.place, entry.segment);
  if (!walk.is_broken()) judge.Finish();
  return judge.counts();
}

}  // namespace braiddb
