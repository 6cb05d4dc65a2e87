#include "check/leaf_walk.h"

#include <algorithm>
#include <optional>
#include <string>

#include "check/level_entries.h"
#include "check/media.h"
#include "index/leaf_space.h"
#include "leaf_tree/inner_image.h"
#include "log/log_reader.h"
#include "util/check.h"

namespace braiddb {
namespace {

// Follows the leaves of one tree.
class LeafWalk {
 public:
  LeafWalk(const LevelCheck& check, const LeafReader& reader, const LeafTreeRoot& root)
      : reader_(reader),
        media_(check.media),
        family_(check.family),
        order_(check.order),
        judge_(check),
        findings_(check.findings),
        root_(root),
        leaf_bytes_(static_cast<uint32_t>(root_.leaf_bytes)),
        seen_(check.media.segments().size()) {}

  void Run() {
    uint64_t link = root_.first;
    uint64_t owner = root_.tree_id;
    std::string origin = std::string("root of the ") + reader_.name();
    do {
      if (!IsLink(owner, link)) return Bad("a damaged link to a leaf", origin);
      const PmPtr place = LinkTarget(link);
      if (!TakeBlock(place)) return Bad("a link that leads to no leaf, or to one that was there before", origin);
      const uint8_t* const leaf = media_.Resolve(place);
      if (!reader_.IsValid(leaf, place)) return Bad("a damaged leaf", media_.Place(place));
      leaves_.push_back({place, nullptr, nullptr});
      VisitLeaf(leaf, place);
      if (broken_) return;
      link = reader_.LinkOf(leaf);
      owner = place.raw();
      origin = media_.Place(place);
    } while (!LinkTarget(link).is_null() || !IsLink(owner, link));
    judge_.Finish();
    if (root_.image != 0) CheckImage();
  }

  const LevelCounts& counts() const { return judge_.counts(); }

 private:
  struct Entry {
    const LogEntry* entry;
    Element element;
    PmPtr place;
    size_t segment;
  };
  struct WalkedLeaf {
    PmPtr place;
    const LogEntry* first;  // null: it is empty
    const LogEntry* last;
  };

  void Bad(const std::string& what, const std::string& where) {
    broken_ = true;
    findings_->Add(what, where + ", last level" + family_.suffix());
  }

  // Returns true if the block lies in a segment of leaves, at a leaf's position, and no link has led to it before.
  bool TakeBlock(PmPtr place) {
    const std::vector<MediaSegment>& segments = media_.segments();
    const auto behind = std::upper_bound(segments.begin(), segments.end(), place.raw(),
                                         [](uint64_t raw, const MediaSegment& s) { return raw < s.start().raw(); });
    if (behind == segments.begin()) return false;
    const MediaSegment& segment = *(behind - 1);
    if (segment.state != SegmentState::kIndex || segment.region != place.region()) return false;
    const uint64_t offset = place.offset() - segment.data;
    const uint64_t first = LeafSpace::FirstBlock(reader_.start(), segment.start(), leaf_bytes_);
    if (segment.capacity < first || offset < first || (offset - first) % leaf_bytes_ != 0) return false;
    const uint64_t block = (offset - first) / leaf_bytes_;
    if (block >= (segment.capacity - first) / leaf_bytes_) return false;
    std::vector<bool>& seen = seen_[static_cast<size_t>(&segment - segments.data())];
    if (seen.empty()) {
      seen.resize(segment.capacity / leaf_bytes_);
      if (!IsSpaceHeader(*media_.Resolve<SpaceHeader>(segment.start()), root_.tree_id, segment.generation, leaf_bytes_))
        Bad("a damaged header of a segment of leaves", media_.Place(segment.start()));
    }
    if (seen[block]) return false;
    seen[block] = true;
    return true;
  }

  // Checks the live elements of a leaf, in entry order.
  void VisitLeaf(const uint8_t* leaf, PmPtr place) {
    live_.clear();
    reader_.Collect(leaf, &live_);
    found_.clear();
    for (const Element& element : live_) {
      const PmPtr pointer(element.value);
      size_t segment = 0;
      const LogEntry* entry = media_.EntryAt(pointer, &segment);
      if (entry == nullptr || !IsValid(pointer, segment)) return Bad("an element that names no valid entry", media_.Place(place));
      if (entry->family() != family_.id) return Bad("an element of another column family", media_.Place(place));
      if (!reader_.Fits(order_, leaf, element, entry->key()))
        return Bad("an element of another key than its entry", media_.Place(place));
      found_.push_back({entry, element, pointer, segment});
    }
    std::sort(found_.begin(), found_.end(),
              [this](const Entry& a, const Entry& b) { return CompareEntries(order_, *a.entry, *b.entry) < 0; });
    for (const Entry& found : found_) VisitEntry(found);
  }

  bool IsValid(PmPtr pointer, size_t segment) const {
    const MediaSegment& home = media_.segments()[segment];
    const LogReader reader(media_.Resolve(home.start()), home.entry_seed, home.limit());
    return reader.ValidAt(pointer.offset() - home.data);
  }

  void VisitEntry(const Entry& found) {
    judge_.Visit(*found.entry, found.place, found.segment);
    broken_ |= judge_.is_broken();
    if (leaves_.back().first == nullptr) leaves_.back().first = found.entry;
    leaves_.back().last = found.entry;
  }

  // Compares the image of the inner nodes, which a clean close has written, with the leaves.
  void CheckImage() {
    const auto bad = [this](const char* what) { Bad(what, "inner nodes of the last clean close"); };
    const PmPtr place = LinkTarget(root_.image);
    if (!IsLink(ImageOwner(root_), root_.image)) return bad("a damaged link");
    const auto segment = std::find_if(media_.segments().begin(), media_.segments().end(),
                                      [&](const MediaSegment& s) { return s.start() == place; });
    InnerNodes::NewChildren children;
    std::optional<uint64_t> elements;
    if (segment == media_.segments().end() || segment->state != SegmentState::kIndex ||
        !ReadImage(media_.Resolve(place), segment->capacity, segment->generation, root_.tree_id, &children, &elements)) {
      return bad("they are damaged");
    }
    if (elements.has_value() && *elements != counts().entries) return bad("they have another number of entries than the leaves");
    if (children.size() != leaves_.size()) return bad("they have another number of leaves than the list");
    const LogEntry* left = nullptr;  // the last entry before the leaf
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const InnerNodes::Child& child = children.all()[i];
      const WalkedLeaf& leaf = leaves_[i];
      if (!(child.leaf == leaf.place)) return bad("they have other leaves than the list");
      if (!reader_.IsHint(media_.Resolve(leaf.place), child.hint)) return bad("they do not fit a leaf");
      const auto before = [&](const LogEntry* entry) {
        return CompareToSeparator(order_, SearchKey(order_, entry->key(), entry->sequence()), child.low) < 0;
      };
      // The first leaf's range begins before all keys, so it has no border.
      if (i > 0 && left != nullptr && !before(left)) return bad("a border is before a key of the range on its left");
      if (i > 0 && leaf.first != nullptr && before(leaf.first)) return bad("a border is behind a key of its range");
      if (leaf.last != nullptr) left = leaf.last;
    }
  }

  const LeafReader& reader_;
  const Media& media_;
  const MediaFamily& family_;
  const KeyOrder& order_;
  LevelEntries judge_;
  Findings* const findings_;
  const LeafTreeRoot& root_;
  const uint32_t leaf_bytes_;
  std::vector<std::vector<bool>> seen_;  // blocks that a link has led to, by segment
  std::vector<Element> live_;            // elements of the present leaf
  std::vector<Entry> found_;
  std::vector<WalkedLeaf> leaves_;
  bool broken_ = false;
};

}  // namespace

LevelCounts CheckLeafTree(const LevelCheck& check, const LeafReader& reader, const LeafTreeRoot& root) {
  BRAIDDB_DCHECK(check.reached->segments() == check.media.segments().size());
  LeafWalk walk(check, reader, root);
  walk.Run();
  return walk.counts();
}

}  // namespace braiddb
