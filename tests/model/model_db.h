// The model of a database: an ordinary map, with a whole copy for each view that must stay as it was.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "tests/model/reference_iterator.h"

namespace braiddb::test {

class ModelDb {
 public:
  using Content = std::map<std::string, std::string>;

  void Put(const std::string& key, std::string value) { content_[key] = std::move(value); }
  void Delete(const std::string& key) { content_.erase(key); }
  void DeleteRange(const std::string& begin, const std::string& end) {
    content_.erase(content_.lower_bound(begin), content_.lower_bound(end));
  }
  const Content& content() const { return content_; }
  std::shared_ptr<const Content> Freeze() const { return std::make_shared<const Content>(content_); }

 private:
  Content content_;
};

// What Get must give: the value, or null if the key is not there.
inline const std::string* Lookup(const ModelDb::Content& content, const std::string& key) {
  const auto found = content.find(key);
  return found == content.end() ? nullptr : &found->second;
}

inline testing::AssertionResult Agrees(const std::string& key, const std::string* expected, const Status& status, Slice value) {
  if (status.IsNotFound() && expected == nullptr) return testing::AssertionSuccess();
  if (status.ok() && expected != nullptr && value == *expected) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "key " << Printable(key) << ": expected "
                                     << (expected != nullptr ? Printable(*expected) : "nothing") << ", got "
                                     << (status.ok() ? Printable(value) : status.ToString());
}

}  // namespace braiddb::test
