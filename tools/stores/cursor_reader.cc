#include "tools/stores/cursor_reader.h"

#include <charconv>

namespace braiddb::tools {

// The key, in hexadecimal digits as other tools take it.
std::string CursorReader::Position() const {
  std::string text = "entry " + std::to_string(done_) + ", key 0x";
  AppendHex(last_key_, &text);
  return text;
}

std::string CursorReader::SaveState() const {
  const bool has_key = is_taken() ? has_last_ : has_before_;
  return std::to_string(family_) + (has_key ? " k" + (is_taken() ? last_key_ : before_) : " -");
}

Status CursorReader::RestoreState(std::string_view state) {
  const Status damaged = Status::InvalidArgument("the saved position is damaged");
  const auto [end, error] = std::from_chars(state.data(), state.data() + state.size(), family_);
  if (error != std::errc() || family_ > families_.size()) return damaged;
  state.remove_prefix(static_cast<size_t>(end - state.data()));
  if (!state.starts_with(" k") && state != " -") return damaged;
  has_last_ = state[1] == 'k';
  last_key_ = has_last_ ? state.substr(2) : std::string_view();
  is_positioned_ = must_move_ = false;
  if (!has_last_ || family_ == families_.size()) return Status::OK();
  if (Status status = Seek(family_, last_key_); !status.ok()) return status;
  is_positioned_ = true;
  Slice key;
  Slice value;
  must_move_ = Current(&key, &value) && key == last_key_;
  return Status::OK();
}

RecordReader::Result CursorReader::ReadNext(Record* record) {
  Slice key;
  Slice value;
  for (; family_ < families_.size(); ++family_, is_positioned_ = has_last_ = has_before_ = false) {
    const Status status = !is_positioned_ ? Seek(family_, {}) : must_move_ ? Next() : Status::OK();
    if (!status.ok()) {  // the last record was given out, so SaveState is the point behind it
      has_before_ = has_last_;
      before_ = last_key_;
      return Failed(status);
    }
    is_positioned_ = true;
    must_move_ = false;
    if (Current(&key, &value)) break;
  }
  if (family_ == families_.size()) return Result::kEnd;
  record->family = families_[family_];
  record->key = key;
  record->value = value;
  has_before_ = has_last_;
  std::swap(before_, last_key_);
  last_key_ = record->key;
  has_last_ = true;
  ++done_;
  must_move_ = true;
  if (has_before_ && before_ == last_key_)
    return Broken("the key is there already: duplicates of one key cannot be kept", *record);
  return Result::kRecord;
}

}  // namespace braiddb::tools
