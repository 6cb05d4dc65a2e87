#include "levels/braided_skiplist/braided_media.h"

#include <algorithm>
#include <string>

#include "check/list_walk.h"
#include "check/media.h"

namespace braiddb {

bool BraidedMedia::Load(Media* media, const MediaFamily& family, Findings* findings) {
  heads_.assign(media->regions(), nullptr);
  bool sound = true;
  for (uint32_t region = 0; region < media->regions(); ++region) {
    const auto* head = reinterpret_cast<const SkipListHead*>(media->FindPlace(family, region, sizeof(SkipListHead)));
    const std::string where = "region " + std::to_string(region) + family.suffix();
    const char* what = nullptr;
    if (head == nullptr || head->magic != SkipListHead::kMagic) {
      what = "the head of the last level is missing";
    } else if (head->checksum != SkipListHead::ComputeChecksum(head->next)) {
      what = "the checksum of the head of the last level is wrong";
    } else if (std::any_of(std::begin(head->reserved), std::end(head->reserved), [](uint64_t word) { return word != 0; }) ||
               (region != 0 && head->next[0] != 0)) {
      findings->Add("unused words are not zero", "head of the last level in " + where);
    }
    if (what == nullptr) {
      heads_[region] = head;
    } else {
      findings->Add(what, where);
      sound = false;
    }
  }
  return sound;
}

LevelCounts BraidedMedia::Check(const LevelCheck& check) const {
  std::vector<uint64_t> heads;
  for (const SkipListHead* head : heads_) heads.insert(heads.end(), head->next, head->next + kMaxHeight);
  ListWalk walk(check.media, check.family.id, check.order, "last level" + check.family.suffix(), std::move(heads),
                {.end_sequence = check.media.manifest().log_boundary}, check.reached, check.findings);
  walk.Run();
  return {walk.entries(), walk.obsolete()};
}

}  // namespace braiddb
