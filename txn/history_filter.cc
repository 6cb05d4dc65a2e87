#include "txn/history_filter.h"

#include <string>
#include <utility>

#include "db/timestamped_entry.h"

namespace braiddb {
namespace {

class HistoryFilter final : public CompactionFilter {
 public:
  // `limit`: empty if nothing is to be trimmed. `own`: owns the user's filter, or null.
  HistoryFilter(std::shared_ptr<TimestampedFamily> family, std::string limit, const CompactionFilter* users,
                std::unique_ptr<CompactionFilter> own)
      : family_(std::move(family)), limit_(std::move(limit)), users_(users), own_(std::move(own)) {}

  Decision Filter(int level, Slice key, Slice value, std::string* new_value) const override {
    const size_t timestamp_size = family_->timestamp_size();
    if (!IsTimestamped(key, value, timestamp_size)) return Decision::kKeep;  // a read reports it
    const SplitKey version(key, timestamp_size);
    const SplitValue stored(value);
    if (IsObsolete(version, stored.kind)) {
      family_->CountTrimmed();
      return Decision::kRemove;
    }
    if (users_ == nullptr || stored.kind != VersionKind::kPut) return Decision::kKeep;
    const Decision decision = users_->Filter(level, key, stored.value, new_value);
    if (decision == Decision::kKeep) return decision;
    if (decision == Decision::kRemove) {
      *new_value = StoredValue(Slice(), VersionKind::kDelete);
    } else {
      new_value->push_back(static_cast<char>(VersionKind::kPut));
    }
    return Decision::kChangeValue;
  }
  const char* Name() const override { return "history"; }
  bool IgnoreSnapshots() const override { return false; }

 private:
  // Calls come in the order of keys, with few exceptions. Where they do not, more versions stay. The versions of the first key
  // may begin before the keys of this filter.
  bool IsObsolete(const SplitKey& version, VersionKind kind) const {
    const Comparator& comparator = family_->comparator();
    if (limit_.empty() || comparator.CompareTimestamp(version.timestamp, limit_) > 0) return false;
    if (has_newer_ && family_->IsSameKey(newer_key_, version.key) &&
        comparator.CompareTimestamp(newer_timestamp_, version.timestamp) > 0)
      return true;
    const bool is_first = !std::exchange(is_called_, true);
    if (is_first && family_->HasNewer(version.key, version.timestamp, limit_)) return true;
    has_newer_ = true;
    newer_key_.assign(version.key);
    newer_timestamp_.assign(version.timestamp);
    if (kind == VersionKind::kPut || comparator.CompareTimestamp(version.timestamp, limit_) == 0) return false;
    if (family_->HasOlder(version.key, version.timestamp)) return false;
    has_newer_ = false;  // it goes, so no other version is obsolete because of it
    return true;
  }

  const std::shared_ptr<TimestampedFamily> family_;
  const std::string limit_;
  const CompactionFilter* const users_;
  const std::unique_ptr<CompactionFilter> own_;
  // The newest version at or below the limit of the key that the filter was called for. One thread uses the filter.
  mutable bool is_called_ = false;
  mutable bool has_newer_ = false;
  mutable std::string newer_key_;
  mutable std::string newer_timestamp_;
};

class HistoryFilterFactory final : public CompactionFilterFactory {
 public:
  HistoryFilterFactory(std::shared_ptr<TimestampedFamily> family, const CompactionFilter* users_filter,
                       std::shared_ptr<CompactionFilterFactory> users_factory)
      : family_(std::move(family)), users_filter_(users_filter), users_factory_(std::move(users_factory)) {}

  std::unique_ptr<CompactionFilter> CreateCompactionFilter(const CompactionFilter::Context& context) override {
    std::unique_ptr<CompactionFilter> own;
    if (users_filter_ == nullptr && users_factory_ != nullptr) own = users_factory_->CreateCompactionFilter(context);
    const CompactionFilter* const users = own != nullptr ? own.get() : users_filter_;
    std::string limit = family_->Limit();
    if (limit.empty() && users == nullptr) return nullptr;
    return std::make_unique<HistoryFilter>(family_, std::move(limit), users, std::move(own));
  }
  const char* Name() const override { return "history"; }

 private:
  const std::shared_ptr<TimestampedFamily> family_;
  const CompactionFilter* const users_filter_;
  const std::shared_ptr<CompactionFilterFactory> users_factory_;
};

}  // namespace

std::shared_ptr<CompactionFilterFactory> MakeHistoryFilterFactory(std::shared_ptr<TimestampedFamily> family,
                                                                  const CompactionFilter* users_filter,
                                                                  std::shared_ptr<CompactionFilterFactory> users_factory) {
  return std::make_shared<HistoryFilterFactory>(std::move(family), users_filter, std::move(users_factory));
}

}  // namespace braiddb
