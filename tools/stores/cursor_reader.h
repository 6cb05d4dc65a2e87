// CursorReader: what readers of other stores have in common. They walk over each family in the order of its keys.
#pragma once

#include <string>
#include <vector>

#include "tools/record.h"

namespace braiddb::tools {

class CursorReader : public RecordReader {
 public:
  std::string Position() const override;
  uint64_t Done() const override { return done_; }
  // The family's number, a space, whether a key was read, and that key: the next reader goes on behind it.
  std::string SaveState() const override;
  Status RestoreState(std::string_view state) override;

 protected:
  explicit CursorReader(std::vector<std::string> families) : families_(std::move(families)) {}
  Result ReadNext(Record* record) override;

  // Moves to the first entry of a family with a key >= `key`.
  virtual Status Seek(size_t family, Slice key) = 0;
  virtual Status Next() = 0;
  // The current entry, valid until the next call. Returns false at the end of the family.
  virtual bool Current(Slice* key, Slice* value) const = 0;

 private:
  const std::vector<std::string> families_;
  size_t family_ = 0;
  bool is_positioned_ = false;
  bool must_move_ = false;  // the cursor is at a record that was given out; a damaged store may fail to leave it
  bool has_last_ = false;
  std::string last_key_;
  bool has_before_ = false;  // the entry before the last one
  std::string before_;
  uint64_t done_ = 0;
};

}  // namespace braiddb::tools
