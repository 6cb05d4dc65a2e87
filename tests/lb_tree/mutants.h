// The bugs that lb_tree_power_cut_test puts into LB+-Tree, one at a time (util/mutant.h).
#pragma once

namespace braiddb::test {

inline constexpr char kMarkFirst[] = "commit mark before payload";
inline constexpr char kNeverFlushed[] = "metadata never flushed";
inline constexpr char kNotAtomic[] = "multi-word update taken for atomic";
inline constexpr char kUnpersisted[] = "effect based on unpersisted stores";
inline constexpr char kAckFirst[] = "ack before durable";
inline constexpr char kFound[] = "what a killed process left in the caches taken for durable";

struct LbMutant {
  const char* name;
  const char* bug_class;
  const char* place;
};

inline constexpr LbMutant kLbMutants[] = {
    {"lb-bitmap-before-entry", kMarkFirst, "lb_tree/lb_leaf.cc"},
    {"lb-header-not-flushed", kAckFirst, "lb_tree/lb_leaf.cc"},
    {"lb-moved-line-not-flushed", kMarkFirst, "lb_tree/lb_leaf.cc"},
    {"lb-moved-line-not-fenced", kMarkFirst, "lb_tree/lb_leaf.cc"},
    {"lb-move-in-two-stores", kNotAtomic, "lb_tree/lb_leaf.cc"},
    {"lb-update-not-flushed", kAckFirst, "lb_tree/lb_leaf.cc"},
    {"lb-delete-not-flushed", kAckFirst, "lb_tree/lb_leaf.cc"},
    {"lb-new-leaf-not-flushed", kMarkFirst, "lb_tree/lb_leaf.cc"},
    {"lb-sibling-not-flushed", kMarkFirst, "lb_tree/lb_leaf.cc"},
    {"lb-other-bitmaps-not-flushed", kMarkFirst, "lb_tree/lb_leaf.cc"},
    {"lb-split-not-fenced", kMarkFirst, "lb_tree/changes.cc"},
    {"lb-alt-in-two-stores", kNotAtomic, "lb_tree/lb_leaf.cc"},
    {"lb-split-not-flushed", kNeverFlushed, "lb_tree/lb_leaf.cc"},
    {"lb-link-not-persisted", kUnpersisted, "lb_tree/changes.cc"},
    {"lb-found-leaves-not-flushed", kFound, "lb_tree/rebuild.cc"},
};

}  // namespace braiddb::test
