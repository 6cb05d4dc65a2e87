// DeferredSyncs: the creation of a database syncs its pools once, at the end.
//
// WHY IT IS SOUND  In PersistMode::kPage each fence is an msync(2), and PMDK makes about nine of them for each allocation. The
//   file CREATING of the database stands during the whole creation. If a crash leaves CREATING, the next open removes the files
//   of all regions, by the identity in their PARTS and CREATING, and reads no pool. So what the pools hold counts only from the
//   rename of CREATING on, and the order in which it became durable before has no meaning. [CC-1]
// COMMIT POINT  As without: CREATING becomes DATABASE. Before that, End() makes everything durable.
#pragma once

namespace braiddb {

class Persistence;

// While one lives, the drains of the calling thread in PersistMode::kPage sync nothing. Other modes and other threads do as ever.
// REQUIRES: one at a time on a thread; the pages of the pools stay mapped until End or destruction.
class DeferredSyncs {
 public:
  DeferredSyncs();
  ~DeferredSyncs();
  DeferredSyncs(const DeferredSyncs&) = delete;
  DeferredSyncs& operator=(const DeferredSyncs&) = delete;

  // Syncs what was put off. False if that fails, as Persistence::Drain.
  bool End(Persistence* persistence);

  // Whether one lives on the calling thread.
  static bool active();
};

}  // namespace braiddb
