// ReadManifest: reads the MANIFEST of a database, also while another process has the database open.
#pragma once

#include <string>

#include "braiddb/options.h"
#include "braiddb/status.h"
#include "lsm/manifest.h"

namespace braiddb {

// Sets *manifest to a state that was the newest at some time during the call. NotFound if there is no database, or if its
// creation or removal is not complete. Takes no lock.
// Thread safety: any thread.
Status ReadManifest(const Options& options, const std::string& path, ManifestState* manifest);

}  // namespace braiddb
