// Test support: the media of a closed database, as `check` reads them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "braiddb/check.h"
#include "check/findings.h"
#include "check/media.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

// Null if the load fails, which is a failure of the test.
inline std::unique_ptr<Media> LoadMedia(const std::string& path) {
  CheckReport report;
  Findings findings(&report);
  std::unique_ptr<Media> media;
  EXPECT_OK(Media::Load(path, {}, &findings, &media));
  return media;
}

}  // namespace braiddb::test
