#include "pmem/deferred_syncs.h"

#include "pmem/persistence.h"

namespace braiddb {
namespace {

thread_local bool is_active = false;

}  // namespace

DeferredSyncs::DeferredSyncs() { is_active = true; }
DeferredSyncs::~DeferredSyncs() { is_active = false; }

bool DeferredSyncs::End(Persistence* persistence) {
  is_active = false;
  return persistence->Drain();
}

bool DeferredSyncs::active() { return is_active; }

}  // namespace braiddb
