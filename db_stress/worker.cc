#include "db_stress/worker.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

namespace braiddb::stress {

namespace {

// Must never be visible, because a later update of the same batch overwrites the key.
constexpr char kOverwritten[] = "overwritten in its own batch";

Violation In(const char* what, Violation wrong) {
  if (wrong) wrong->insert(0, std::string(what) + ": ");
  return wrong;
}

}  // namespace

Worker::Worker(const Oracle& oracle, Store* store, Bank* bank, const WorkerOptions& options)
    : oracle_(oracle),
      store_(store),
      db_(store->db()),
      bank_(bank),
      options_(options),
      plan_(*options.plan),
      random_(options.plan->seed + options.thread) {
  read_.verify_checksums = plan_.verify_checksums;
  write_.sync = plan_.sync;
  for (uint32_t lane = options.thread; lane < KeyTable::kLanes; lane += plan_.threads) lanes_.push_back(lane);
}

Worker::~Worker() {
  for (const Held& held : held_) db_->ReleaseSnapshot(held.snapshot);
}

void Worker::Run() {
  Counters& counters = oracle_.expected->counters();
  for (uint64_t i = 0; options_.operations == 0 || i < options_.operations; ++i) {
    if (oracle_.expected->stop().load(kRelaxed) || oracle_.expected->failed()) return;
    if (auto wrong = Step()) {
      oracle_.expected->Fail("thread " + std::to_string(options_.thread) + ": " + *wrong);
      return;
    }
    counters.operations.fetch_add(1, kRelaxed);
  }
}

Violation Worker::Step() {
  if (random_.OneIn(plan_.admin_one_in)) return Administer();
  if (store_->has_accounts() && Percent(plan_.bank_percent)) return In("bank", UseBank());
  Counters& counters = oracle_.expected->counters();
  if (Percent(plan_.write_percent)) {
    counters.writes.fetch_add(1, kRelaxed);
    if (!Percent(plan_.shared_percent)) return WriteSome();
    return store_->has_transactions() && Percent(plan_.transaction_percent) ? UpdateShared() : WriteShared();
  }
  counters.reads.fetch_add(1, kRelaxed);
  if (Percent(plan_.shared_percent)) return In("MultiGet of shared keys", GetShared());
  switch (random_.Uniform(16)) {
    case 0:
      return In("iterator", WalkAround());
    case 1:
      return In("snapshot", HoldSnapshot());
    case 2:
    case 3:
      return In("MultiGet of a group", GetGroup());
    default:
      return In("Get", Get());
  }
}

// ---- Choice of keys

uint32_t Worker::DrawLane() { return lanes_[random_.Uniform(lanes_.size())]; }

uint32_t Worker::DrawSingle(uint32_t lane) {
  uint64_t range = oracle_.keys->singles_of_lane();
  if (plan_.hot && !random_.OneIn(8)) range = std::max<uint64_t>(1, range / 32);
  return KeyTable::SingleKey(lane, static_cast<uint32_t>(random_.Uniform(range)));
}

uint32_t Worker::DrawAny() {
  if (random_.OneIn(2)) return DrawSingle(static_cast<uint32_t>(random_.Uniform(KeyTable::kLanes)));
  return static_cast<uint32_t>(random_.Uniform(oracle_.keys->size()));
}

std::vector<uint32_t> Worker::DrawWindow(size_t most) {
  const uint32_t begin = static_cast<uint32_t>(random_.Uniform(oracle_.keys->size()));
  const uint32_t border = oracle_.keys->end(oracle_.keys->family_of(oracle_.keys->id_at(begin)));
  const uint32_t end = static_cast<uint32_t>(std::min<uint64_t>(begin + Between(1, most), border));
  std::vector<uint32_t> ids;
  for (uint32_t position = begin; position < end; ++position) ids.push_back(oracle_.keys->id_at(position));
  return ids;
}

std::vector<uint32_t> Worker::DrawPrefix(std::string* prefix) {
  constexpr size_t kMost = 64;
  const uint32_t drawn = DrawAny();
  const uint32_t family = oracle_.keys->family_of(drawn);
  if (oracle_.keys->comparator(family) != BytewiseComparator()) return {};
  const std::string& key = oracle_.keys->key(drawn);
  *prefix = key.substr(0, key.size() - std::min<size_t>(key.size(), Between(1, 2)));
  std::vector<uint32_t> ids;
  for (uint32_t position = oracle_.keys->LowerBound(family, *prefix); position < oracle_.keys->end(family); ++position) {
    const uint32_t id = oracle_.keys->id_at(position);
    if (!oracle_.keys->key(id).starts_with(*prefix)) break;
    if (ids.size() == kMost) return {};
    ids.push_back(id);
  }
  return ids;
}

// ---- Writes

Violation Worker::WriteSome() {
  const uint32_t lane = DrawLane();
  std::vector<uint32_t> keys;
  if (!Percent(plan_.batch_percent)) {
    keys.push_back(DrawSingle(lane));
  } else if (random_.OneIn(2)) {
    const size_t count = Between(2, Lane::kMaxBatch);
    while (keys.size() < count) {
      const uint32_t key = DrawSingle(lane);
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) break;
      keys.push_back(key);
    }
  } else {
    const uint32_t group = lane + KeyTable::kLanes * static_cast<uint32_t>(random_.Uniform(KeyTable::kGroups / KeyTable::kLanes));
    for (uint32_t i = 0; i < KeyTable::kGroupSize; ++i) keys.push_back(KeyTable::GroupedKey(group, i));
  }
  if (store_->has_transactions() && Percent(plan_.transaction_percent)) return WriteByTransaction(lane, keys);
  return WriteKeys(lane, keys);
}

// The next key of the same family. A range up to it contains this key alone. Null: do not delete the key by a range. Transactions
// cannot delete ranges.
const std::string* Worker::RangeEnd(uint32_t id) {
  if (store_->has_transactions() || !random_.OneIn(4)) return nullptr;
  const uint32_t next = oracle_.keys->position_of(id) + 1;
  return next < oracle_.keys->end(oracle_.keys->family_of(id)) ? &oracle_.keys->key(oracle_.keys->id_at(next)) : nullptr;
}

template <class Updates>
auto Worker::Update(Updates* updates, uint32_t id) const {
  const auto value = oracle_.content->ValueOf(id, oracle_.expected->intended(id));
  const std::string& key = oracle_.keys->key(id);
  return value ? updates->Put(FamilyOf(id), key, *value) : updates->Delete(FamilyOf(id), key);
}

Violation Worker::WriteKeys(uint32_t lane, const std::vector<uint32_t>& keys) {
  ExpectedState* expected = oracle_.expected;
  if (Inject(Injection::kStaleWrite) && keys.size() == 1 && expected->acknowledged(keys[0]) > 2) {
    const auto stale = oracle_.content->ValueOf(keys[0], expected->acknowledged(keys[0]) - 2);
    return stale ? Judge(db_->Put(write_, FamilyOf(keys[0]), oracle_.keys->key(keys[0]), *stale), "Put") : std::nullopt;
  }
  expected->Begin(lane, keys);
  Status status;
  const auto content = [&](uint32_t id) { return oracle_.content->ValueOf(id, expected->intended(id)); };
  if (keys.size() == 1) {
    const auto value = content(keys[0]);
    const std::string& key = oracle_.keys->key(keys[0]);
    ColumnFamilyHandle* const family = FamilyOf(keys[0]);
    if (Inject(Injection::kLostWrite)) {  // skips the write
    } else if (value) {
      status = db_->Put(write_, family, key, *value);
    } else if (const std::string* const end = RangeEnd(keys[0])) {
      status = db_->DeleteRange(write_, family, key, *end);
    } else {
      status = db_->Delete(write_, family, key);
    }
  } else {
    WriteBatch batch;
    const size_t count = Inject(Injection::kTornBatch) ? keys.size() / 2 : keys.size();
    const bool twice = random_.OneIn(8);
    for (size_t i = 0; twice && i < count; ++i) batch.Put(FamilyOf(keys[i]), oracle_.keys->key(keys[i]), kOverwritten);
    for (size_t i = 0; i < count; ++i) {
      const std::string* const end = RangeEnd(keys[i]);
      if (end != nullptr) batch.DeleteRange(FamilyOf(keys[i]), oracle_.keys->key(keys[i]), *end);
      if (end == nullptr || content(keys[i])) Update(&batch, keys[i]);
    }
    status = db_->Write(write_, batch);
    expected->counters().batches.fetch_add(1, kRelaxed);
  }
  if (!status.ok()) return Judge(status, "write");
  expected->Acknowledge(lane);
  return std::nullopt;
}

Violation Worker::WriteShared() {
  ExpectedState* expected = oracle_.expected;
  const size_t count = random_.OneIn(4) ? Between(2, 4) : 1;
  const uint32_t first = static_cast<uint32_t>(random_.Uniform(KeyTable::kShared));
  std::vector<Event*> events;
  WriteBatch batch;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t id = (first + i) % KeyTable::kShared;
    Event* event = expected->BeginWrite(options_.thread, id, expected->NewTag(), events.empty() ? nullptr : events[0]);
    if (event == nullptr) break;
    events.push_back(event);
    batch.Put(FamilyOf(id), oracle_.keys->key(id), oracle_.content->TaggedValue(event->tag));
  }
  if (events.empty()) return std::nullopt;
  if (events.size() > 1 && Inject(Injection::kSplitBatch)) {
    for (const Event* event : events) {
      const std::string value = oracle_.content->TaggedValue(event->tag);
      if (Status status = db_->Put(write_, FamilyOf(event->key), oracle_.keys->key(event->key), value); !status.ok())
        return Judge(status, "write");
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
  } else if (!Inject(Injection::kLostSharedWrite)) {
    if (Status status = db_->Write(write_, batch); !status.ok()) return Judge(status, "write");
  }
  for (Event* event : events) expected->EndWrite(event);
  return std::nullopt;
}

// No other thread writes these keys. So only an optimistic transaction can be refused: it reports false conflicts for deleted
// keys.
Violation Worker::WriteByTransaction(uint32_t lane, const std::vector<uint32_t>& keys) {
  ExpectedState* expected = oracle_.expected;
  Counters& counters = expected->counters();
  counters.transactions.fetch_add(1, kRelaxed);
  const auto transaction = store_->Begin(write_, random_.OneIn(2));
  if (random_.OneIn(2)) transaction->SetSnapshot();
  Status status;
  if (random_.OneIn(2)) {  // reverted updates must leave no trace
    transaction->SetSavePoint();
    for (const uint32_t id : keys) {
      if (status.ok()) status = transaction->Put(FamilyOf(id), oracle_.keys->key(id), kOverwritten);
    }
    if (status.ok()) status = transaction->RollbackToSavePoint();
    if (!status.ok()) return Judge(status, "transaction");
  }
  if (random_.OneIn(8)) {
    counters.rollbacks.fetch_add(1, kRelaxed);
    status = transaction->Put(FamilyOf(keys[0]), oracle_.keys->key(keys[0]), kOverwritten);
    if (!status.ok()) return Judge(status, "Put of a transaction");
    const bool kept = options_.injection == Injection::kKeptUpdate && random_.OneIn(4);
    if (kept) return Judge(transaction->Commit(), "Commit");
    // otherwise the destructor ends the transaction
    return random_.OneIn(2) ? Judge(transaction->Rollback(), "Rollback") : std::nullopt;
  }
  if (random_.OneIn(2)) {
    std::string value;
    status = transaction->GetForUpdate(read_, FamilyOf(keys[0]), oracle_.keys->key(keys[0]), &value);
    if (!status.ok() && !status.IsNotFound()) return Judge(status, "GetForUpdate");
  }
  expected->Begin(lane, keys);
  for (const uint32_t id : keys) {
    status = Update(transaction.get(), id);
    if (!status.ok()) return Judge(status, "update of a transaction");
  }
  status = transaction->Commit();
  if (status.IsBusy() && plan_.kind == StoreKind::kOptimistic) {
    expected->Abandon(lane);
    counters.conflicts.fetch_add(1, kRelaxed);
    return std::nullopt;
  }
  if (!status.ok()) return Judge(status, "Commit");
  expected->Acknowledge(lane);
  return std::nullopt;
}

Violation Worker::UpdateShared() {
  ExpectedState* expected = oracle_.expected;
  Counters& counters = expected->counters();
  counters.transactions.fetch_add(1, kRelaxed);
  const auto transaction = store_->Begin(write_, random_.OneIn(2));
  const size_t count = Between(1, 3);
  const auto first = static_cast<uint32_t>(random_.Uniform(KeyTable::kShared));
  std::vector<Event*> events;
  Status status;
  for (uint32_t i = 0; i < count && status.ok(); ++i) {
    const uint32_t id = (first + i) % KeyTable::kShared;
    ViewCheck check(oracle_, {id}, options_.thread);
    std::string value;
    const Status read = transaction->GetForUpdate(read_, FamilyOf(id), oracle_.keys->key(id), &value);
    status = read.IsNotFound() ? Status::OK() : read;
    if (!status.ok()) break;
    check.ViewMade();
    if (auto wrong = check.SawGet(0, read, value)) return wrong;
    Event* event = expected->BeginWrite(options_.thread, id, expected->NewTag(), events.empty() ? nullptr : events[0]);
    if (event == nullptr) break;
    events.push_back(event);
    status = transaction->Put(FamilyOf(id), oracle_.keys->key(id), oracle_.content->TaggedValue(event->tag));
  }
  if (status.ok()) status = transaction->Commit();
  if (status.IsBusy() || status.IsTimedOut()) {  // writes without an end, which must never be visible
    counters.conflicts.fetch_add(1, kRelaxed);
    return std::nullopt;
  }
  if (!status.ok()) return Judge(status, "transaction over shared keys");
  for (Event* event : events) expected->EndWrite(event);
  return std::nullopt;
}

// ---- Reads

Violation Worker::Get() {
  const uint32_t id = DrawAny();
  ViewCheck check(oracle_, {id}, options_.thread);
  if (random_.OneIn(2)) {
    PinnableSlice value;
    const Status status = db_->Get(read_, FamilyOf(id), oracle_.keys->key(id), &value);
    check.ViewMade();
    return check.SawGet(0, status, value.slice());
  }
  std::string value;
  const Status status = db_->Get(read_, FamilyOf(id), oracle_.keys->key(id), &value);
  check.ViewMade();
  return check.SawGet(0, status, value);
}

Violation Worker::GetTogether(ViewCheck* check) {
  std::vector<ColumnFamilyHandle*> families;
  std::vector<Slice> names;
  for (size_t slot = 0; slot < check->size(); ++slot) {
    families.push_back(FamilyOf(check->id(slot)));
    names.push_back(oracle_.keys->key(check->id(slot)));
  }
  std::vector<std::string> values;
  const auto statuses = db_->MultiGet(read_, families, names, &values);
  check->ViewMade();
  Violation wrong;
  for (size_t slot = 0; slot < check->size() && !wrong; ++slot) wrong = check->SawGet(slot, statuses[slot], values[slot]);
  return wrong;
}

Violation Worker::GetShared() {
  const size_t count = random_.OneIn(4) ? KeyTable::kShared : 1;
  const uint32_t first = static_cast<uint32_t>(random_.Uniform(KeyTable::kShared));
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < count; ++i) ids.push_back((first + i) % KeyTable::kShared);
  ViewCheck check(oracle_, ids, options_.thread);
  return GetTogether(&check);
}

Violation Worker::GetGroup() {
  const uint32_t group = static_cast<uint32_t>(random_.Uniform(KeyTable::kGroups));
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < KeyTable::kGroupSize; ++i) ids.push_back(KeyTable::GroupedKey(group, i));
  ViewCheck check(oracle_, ids, options_.thread);
  if (auto wrong = GetTogether(&check)) return wrong;
  return check.OneGeneration();
}

Violation Worker::WalkAround() {
  ReadOptions read = read_;
  std::string prefix;
  std::vector<uint32_t> ids;
  if (random_.OneIn(4)) ids = DrawPrefix(&prefix);
  bool limited = !ids.empty();
  if (limited) read.prefix = prefix;
  if (ids.empty()) ids = DrawWindow(40);
  ViewCheck check(oracle_, std::move(ids), options_.thread);
  if (!limited && random_.OneIn(2)) {
    limited = true;
    read.iterate_lower_bound = oracle_.keys->key(check.id(0));
    const uint32_t behind = oracle_.keys->position_of(check.id(check.size() - 1)) + 1;
    if (behind < oracle_.keys->end(oracle_.keys->family_of(check.id(0))))
      read.iterate_upper_bound = oracle_.keys->key(oracle_.keys->id_at(behind));
  }
  const auto iterator = db_->NewIterator(read, FamilyOf(check.id(0)));
  check.ViewMade();
  oracle_.expected->counters().views.fetch_add(1, kRelaxed);

  CheckedIterator walk(oracle_, iterator.get(), &check, limited);
  Violation wrong;
  for (uint64_t left = Between(1, 60); left > 0 && !wrong; --left) {
    const uint64_t movement = random_.Uniform(12);
    if (!walk.Valid() || movement == 0) {
      const size_t target = random_.Uniform(check.size());
      wrong = limited && random_.OneIn(4) ? (random_.OneIn(2) ? walk.SeekToFirst() : walk.SeekToLast())
              : random_.OneIn(2)          ? walk.Seek(target)
                                          : walk.SeekForPrev(target);
    } else {
      wrong = movement < 7 ? walk.Next() : walk.Prev();
    }
  }
  return wrong;
}

Violation Worker::HoldSnapshot() {
  if (held_.size() == 3) {
    Held held = std::move(held_.front());
    held_.pop_front();
    const auto wrong = LookAgain(&held);
    db_->ReleaseSnapshot(held.snapshot);
    return wrong;
  }
  auto check = std::make_unique<ViewCheck>(oracle_, DrawWindow(30), options_.thread);
  held_.push_back({db_->GetSnapshot(), std::move(check)});
  held_.back().check->ViewMade();
  oracle_.expected->counters().views.fetch_add(1, kRelaxed);
  return random_.OneIn(2) ? LookAgain(&held_.back()) : std::nullopt;
}

Violation Worker::LookAgain(Held* held) {
  ReadOptions read = read_;
  read.snapshot = held->snapshot;
  const auto iterator = db_->NewIterator(read, FamilyOf(held->check->id(0)));
  CheckedIterator walk(oracle_, iterator.get(), held->check.get(), false);
  Violation wrong = random_.OneIn(2) ? walk.Forward() : walk.Backward();
  std::string value;
  for (size_t slot = 0; slot < held->check->size() && !wrong; ++slot) {
    const uint32_t id = held->check->id(slot);
    const Status status = db_->Get(read, FamilyOf(id), oracle_.keys->key(id), &value);
    wrong = held->check->SawGet(slot, status, value);
  }
  return wrong;
}

// ---- Other operations

Violation Worker::UseBank() {
  if (options_.thread < Store::kTemporaryFamilies && random_.OneIn(16)) return In("temporary family", UseTemporaryFamily());
  if (random_.OneIn(3)) return bank_->Audit(read_, &random_);
  return bank_->Transfer(write_, &random_, options_.injection);
}

Violation Worker::UseTemporaryFamily() {
  bool renewed = false;
  const auto wrong = TemporaryFamily(store_, options_.thread).Use(read_, write_, &random_, &renewed);
  if (renewed) oracle_.expected->counters().families.fetch_add(1, kRelaxed);
  return wrong;
}

Violation Worker::Administer() {
  uint64_t errors = 0;
  switch (random_.Uniform(8)) {
    case 0:
    case 1:
    case 2:
      return Judge(db_->Flush(), "Flush");
    case 3:
    case 4: {
      CompactRangeOptions options;
      options.sweep_last_level = random_.OneIn(2);
      const Slice low = oracle_.keys->key(DrawAny()), high = oracle_.keys->key(DrawAny());
      const auto family = static_cast<uint32_t>(random_.Uniform(oracle_.keys->families()));
      const bool ordered = oracle_.keys->comparator(family)->Compare(low, high) <= 0;
      const Slice* begin = random_.OneIn(2) ? nullptr : ordered ? &low : &high;
      const Slice* end = random_.OneIn(2) ? nullptr : ordered ? &high : &low;
      return Judge(db_->CompactRange(options, store_->families()[family], begin, end), "CompactRange");
    }
    case 5:
      return plan_.options.disable_auto_compaction ? std::nullopt : Judge(db_->WaitForCompaction(), "WaitForCompaction");
    default:
      if (!db_->GetIntProperty("braiddb.background-errors", &errors)) return "there is no property background-errors";
      if (errors != 0) return std::to_string(errors) + " background errors";
      return std::nullopt;
  }
}

}  // namespace braiddb::stress
