// Counters of a thread: the engine counts for each database, see the property "braiddb.stats", so all of these are 0.
#include "capi/objects.h"
#include "capi/result.h"

struct braiddb_perfcontext_t {};

void braiddb_set_perf_level(int) {}
braiddb_perfcontext_t* braiddb_perfcontext_create() { return braiddb::capi::Make<braiddb_perfcontext_t>(); }
void braiddb_perfcontext_destroy(braiddb_perfcontext_t* context) { delete context; }
void braiddb_perfcontext_reset(braiddb_perfcontext_t*) {}
char* braiddb_perfcontext_report(braiddb_perfcontext_t*, unsigned char) { return braiddb::capi::CopyBytes(""); }
uint64_t braiddb_perfcontext_metric(braiddb_perfcontext_t*, int) { return 0; }
