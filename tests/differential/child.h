// RunInChild: a life in a process of its own, so that a crash or a hang of either library is a result like others.
#pragma once

#include <string>

#include "tests/differential/life.h"

namespace braiddb::test {

struct ChildResult {
  LifeResult life;
  // Empty, or how the process ended: then life.calls says at which call.
  std::string crash;

  bool failed() const { return !crash.empty() || life.difference.has_value(); }
  // The index of the call at which it failed.
  size_t failed_at() const { return crash.empty() ? life.difference->at : life.calls; }
};

struct Libraries {
  Api expected;
  Api tested;
};

// With `show`, prints each call and its results.
ChildResult RunInChild(const Libraries& libraries, const Life& life, const std::string& directory, bool show);

// The shortest life found that still fails in the same operation.
Life Shrink(const Libraries& libraries, const Life& life, const ChildResult& result, const std::string& directory);

}  // namespace braiddb::test
