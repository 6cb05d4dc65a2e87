#include "txn/ttl_filter.h"

#include <chrono>
#include <utility>

#include "txn/ttl_value.h"

namespace braiddb {
namespace {

int64_t SystemTime() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class TtlFilter final : public CompactionFilter {
 public:
  // `users`: the user's filter; may be null. `own`: owns the user's filter, or null.
  TtlFilter(std::shared_ptr<const TtlClock> clock, const CompactionFilter* users, std::unique_ptr<CompactionFilter> own)
      : clock_(std::move(clock)), users_(users), own_(std::move(own)) {}

  Decision Filter(int level, Slice key, Slice value, std::string* new_value) const override {
    if (!HasTime(value)) return Decision::kKeep;  // a read of the value reports the missing time
    if (clock_->IsOver(value)) return Decision::kRemove;
    if (users_ == nullptr) return Decision::kKeep;
    const Decision decision = users_->Filter(level, key, WithoutTime(value), new_value);
    if (decision == Decision::kChangeValue) new_value->append(value.substr(value.size() - kTimeBytes));
    return decision;
  }
  const char* Name() const override { return "ttl"; }
  bool IgnoreSnapshots() const override { return users_ == nullptr || users_->IgnoreSnapshots(); }

 private:
  const std::shared_ptr<const TtlClock> clock_;
  const CompactionFilter* const users_;
  const std::unique_ptr<CompactionFilter> own_;
};

class TtlFilterFactory final : public CompactionFilterFactory {
 public:
  TtlFilterFactory(std::shared_ptr<const TtlClock> clock, const CompactionFilter* users_filter,
                   std::shared_ptr<CompactionFilterFactory> users_factory)
      : clock_(std::move(clock)), users_filter_(users_filter), users_factory_(std::move(users_factory)) {}

  std::unique_ptr<CompactionFilter> CreateCompactionFilter(const CompactionFilter::Context& context) override {
    std::unique_ptr<CompactionFilter> own;
    if (users_filter_ == nullptr && users_factory_ != nullptr) own = users_factory_->CreateCompactionFilter(context);
    const CompactionFilter* const users = own != nullptr ? own.get() : users_filter_;
    return std::make_unique<TtlFilter>(clock_, users, std::move(own));
  }
  const char* Name() const override { return "ttl"; }

 private:
  const std::shared_ptr<const TtlClock> clock_;
  const CompactionFilter* const users_filter_;
  const std::shared_ptr<CompactionFilterFactory> users_factory_;
};

}  // namespace

TtlClock::TtlClock(const TtlOptions& options, int32_t ttl)
    : now_(options.clock ? options.clock : std::function<int64_t()>(SystemTime)), ttl_(ttl) {}

bool TtlClock::IsOver(Slice stored) const {
  const int64_t ttl = ttl_.load(std::memory_order_relaxed);
  return ttl > 0 && TimeOf(stored) + ttl < Now();
}

std::shared_ptr<CompactionFilterFactory> MakeTtlFilterFactory(std::shared_ptr<const TtlClock> clock,
                                                              const CompactionFilter* users_filter,
                                                              std::shared_ptr<CompactionFilterFactory> users_factory) {
  return std::make_shared<TtlFilterFactory>(std::move(clock), users_filter, std::move(users_factory));
}

}  // namespace braiddb
