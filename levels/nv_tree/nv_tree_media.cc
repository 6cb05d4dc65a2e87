#include "levels/nv_tree/nv_tree_media.h"

#include "check/media.h"
#include "levels/nv_tree/tree_check.h"

namespace braiddb {

bool NvTreeMedia::Load(Media* media, const MediaFamily& family, Findings* findings) {
  const auto* root = reinterpret_cast<const NvTreeRoot*>(media->FindPlace(family, 0, sizeof(NvTreeRoot)));
  if (root == nullptr || !IsNvTreeRoot(*root, media->root(0)->database_id, family.number)) {
    findings->Add("the root of the NV-Tree is missing or damaged", "region 0" + family.suffix());
    return false;
  }
  root_ = root;
  return true;
}

LevelCounts NvTreeMedia::Check(const LevelCheck& check) const { return CheckTree(check, *root_); }

}  // namespace braiddb
