// ReadManifest: what the MANIFEST of a database says, whoever has it open.
#pragma once

#include <string>

#include "braiddb/options.h"
#include "braiddb/status.h"
#include "lsm/manifest.h"

namespace braiddb {

// A state that counted at some moment of the call. NotFound if there is no database, or it is being created. Takes no lock.
// Thread safety: any thread.
Status ReadManifest(const Options& options, const std::string& path, ManifestState* manifest);

}  // namespace braiddb
