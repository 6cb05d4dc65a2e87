#include "txn/refreshing_db.h"

#include <algorithm>
#include <utility>

#include "db/error_iterator.h"
#include "db/no_memory.h"
#include "util/sync_point.h"

namespace braiddb {

struct RefreshingDB::Generation {
  using Handles = std::map<uint64_t, ColumnFamilyHandle*>;  // by the number of the family

  Generation(std::unique_ptr<DB> from, uint64_t first) : offset(first), owned(std::move(from)) {}

  const uint64_t offset;  // of numbers that WaitForUpdate returns, to those of the writer
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  std::vector<std::unique_ptr<const Handles>> tables;  // the newest is the last; calls may use older ones
  std::atomic<const Handles*> table{nullptr};
  std::atomic<uint64_t> calls{0};  // of threads without a slot
  // Its end, which comes first, calls user's functions, and these may read.
  const std::unique_ptr<DB> owned;
  LiveDB* const db = static_cast<LiveDB*>(owned.get());
};

struct RefreshingDB::HeldSnapshot final : Snapshot {
  HeldSnapshot(const Snapshot* from, Generation* of) : base(from), generation(of) {}
  uint64_t GetSequenceNumber() const override { return base->GetSequenceNumber(); }
  const Snapshot* const base;
  Generation* const generation;
};

class RefreshingDB::Call {
 public:
  explicit Call(const RefreshingDB* db) : slot_(db->slots_.Get()) {
    if (__builtin_expect(slot_ == nullptr, 0)) {
      const std::lock_guard lock(db->refresh_mutex_);
      generation_ = db->newest_.load(std::memory_order_relaxed);
      generation_->calls.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (slot_->depth++ == 0) {
      Generation* newest = db->newest_.load(std::memory_order_acquire);
      for (Generation* announced = nullptr; announced != newest;) {
        announced = newest;
        if (db->asymmetric_fences_) {
          slot_->generation.store(announced, std::memory_order_relaxed);
          AsymmetricFenceLight();
        } else {
          slot_->generation.store(announced, std::memory_order_seq_cst);
        }
        newest = db->newest_.load(std::memory_order_seq_cst);
      }
    }
    generation_ = slot_->generation.load(std::memory_order_relaxed);
  }
  ~Call() {
    if (__builtin_expect(slot_ == nullptr, 0)) {
      generation_->calls.fetch_sub(1, std::memory_order_release);
    } else if (--slot_->depth == 0) {
      slot_->generation.store(nullptr, std::memory_order_release);
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  Generation* generation() const { return generation_; }
  LiveDB* db() const { return generation_->db; }

 private:
  Slot* const slot_;
  Generation* generation_ = nullptr;
};

// ---- Generations

Status RefreshingDB::Wrap(const Options& options, const std::string& path, const std::vector<ColumnFamilyDescriptor>& families,
                          std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db) try {
  std::unique_ptr<RefreshingDB> made(new RefreshingDB(options, path, families));
  std::unique_ptr<DB> first = std::move(*db);
  made->shown_options_ = first->GetOptions();
  made->default_handle_ = made->MakeHandle(*first->DefaultColumnFamily(), {});
  std::vector<std::unique_ptr<ColumnFamilyHandle>> own;
  if (handles != nullptr) {
    for (const auto& handle : *handles) {
      own.push_back(made->MakeHandle(*handle, options.listeners));
      static_cast<FamilyHandle*>(handle.get())->TellOfDeletion({});
    }
    handles->clear();
  }
  made->generations_.push_back(made->MakeGeneration(std::move(first)));
  made->newest_.store(made->generations_.back().get(), std::memory_order_release);
  if (handles != nullptr) *handles = std::move(own);
  *db = std::move(made);
  return Status::OK();
} catch (const std::bad_alloc&) {
  db->reset();
  if (handles != nullptr) handles->clear();
  return NoMemory();
}

// The user's handle has a family object of its own, which lives as long as the handle.
std::unique_ptr<ColumnFamilyHandle> RefreshingDB::MakeHandle(const ColumnFamilyHandle& of,
                                                             const std::vector<std::shared_ptr<EventListener>>& listeners) const {
  const Family& from = *static_cast<const FamilyHandle&>(of).family();
  auto handle = std::make_unique<FamilyHandle>(this, std::make_shared<Family>(from.id, from.number, from.name, from.options));
  handle->TellOfDeletion(listeners);
  return handle;
}

std::unique_ptr<RefreshingDB::Generation> RefreshingDB::MakeGeneration(std::unique_ptr<DB> db) {
  auto generation = std::make_unique<Generation>(std::move(db), largest_given_);
  FindFamilies(generation.get());
  return generation;
}

void RefreshingDB::FindFamilies(Generation* generation) {
  std::vector<std::unique_ptr<ColumnFamilyHandle>> found;
  if (!generation->db->GetColumnFamilies(&found).ok()) found.clear();  // has expired: the next call says so
  const Generation::Handles* const before = generation->table.load(std::memory_order_relaxed);
  auto table = before == nullptr ? std::make_unique<Generation::Handles>() : std::make_unique<Generation::Handles>(*before);
  bool is_changed = before == nullptr;
  for (auto& handle : found) {
    auto* const known = static_cast<FamilyHandle*>(handle.get());
    known->TellOfDeletion({});  // users are told of theirs
    if (known->family()->id == 0 || !table->emplace(known->family()->number, known).second) continue;
    generation->handles.push_back(std::move(handle));
    is_changed = true;
  }
  if (!is_changed) return;
  generation->tables.push_back(std::move(table));
  generation->table.store(generation->tables.back().get(), std::memory_order_release);
}

// The caller destroys them without the mutex: their end calls user's functions, and these may call this object.
void RefreshingDB::TakeReplaced(Generations* taken) {
  if (generations_.size() < 2) return;
  taken->reserve(taken->size() + generations_.size());
  if (asymmetric_fences_) AsymmetricFenceHeavy();
  const Generation* const newest = newest_.load(std::memory_order_relaxed);
  std::erase_if(generations_, [&](std::unique_ptr<Generation>& each) {
    if (each.get() == newest) return false;
    bool is_used = false;
    // The slots first: a call may leave an iterator behind.
    slots_.ForEach([&](const Slot& slot) { is_used |= slot.generation.load(std::memory_order_seq_cst) == each.get(); });
    if (is_used || each->calls.load(std::memory_order_acquire) != 0 || each->db->users() != 0) return false;
    taken->push_back(std::move(each));
    return true;
  });
}

Status RefreshingDB::Attach(const std::vector<ColumnFamilyDescriptor>& families, std::unique_ptr<DB>* db) try {
  std::vector<std::string> names;
  Status status = DB::ListColumnFamilies(options_, path_, &names);
  if (!status.ok()) return status;
  std::vector<ColumnFamilyDescriptor> present;
  for (const ColumnFamilyDescriptor& family : families) {
    if (family.name == kDefaultColumnFamilyName || std::find(names.begin(), names.end(), family.name) != names.end())
      present.push_back(family);
  }
  status = DBImpl::Open(options_, path_, present, true, nullptr, db, DBImpl::Access::kLive);
  if (!status.IsNotFound()) return status;
  return Status::NotFound("no process has the database in " + path_ + " open for writing; the reader keeps what it has");
} catch (const LiveFailure& failure) {
  return failure.status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// Attaches without the mutex, as an open may call user's functions.
Status RefreshingDB::Refresh() try {
  constexpr std::chrono::seconds kPatience{5};
  Generations replaced;  // destroyed after the lock
  std::unique_ptr<DB> fresh;
  std::unique_lock lock(refresh_mutex_);
  const auto is_free = [this] { return refreshing_ == std::thread::id(); };
  if (refreshing_ == std::this_thread::get_id() || !refreshed_.wait_for(lock, kPatience, is_free))
    return Status::Busy("the reader is being refreshed; try again");
  if (is_closing_) return Status::Aborted("the database is being closed");
  TakeReplaced(&replaced);
  if (generations_.back()->db->IsAttached()) return generations_.back()->db->Follow();
  const std::vector<ColumnFamilyDescriptor> families = families_;
  refreshing_ = std::this_thread::get_id();
  lock.unlock();
  Status status = Attach(families, &fresh);
  lock.lock();
  refreshing_ = std::thread::id();
  refreshed_.notify_all();
  if (status.ok() && is_closing_) status = Status::Aborted("the database is being closed");
  if (!status.ok()) return status;
  generations_.reserve(generations_.size() + 1);  // no step after the next one fails
  generations_.push_back(MakeGeneration(std::move(fresh)));
  newest_.store(generations_.back().get(), std::memory_order_seq_cst);
  BRAIDDB_SYNC_POINT("RefreshingDB::Refresh:Replaced");
  TakeReplaced(&replaced);
  return Status::OK();
} catch (const LiveFailure& failure) {
  return failure.status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

RefreshingDB::RefreshingDB(const Options& options, const std::string& path, const std::vector<ColumnFamilyDescriptor>& families)
    : options_(options), path_(path), families_(families) {}

RefreshingDB::~RefreshingDB() {
  if (newest_.load(std::memory_order_relaxed) != nullptr) (void)Close();
}

// User's functions that the close calls may read from the newest generation.
Status RefreshingDB::Close() {
  Generations replaced;
  {
    const std::lock_guard lock(refresh_mutex_);
    is_closing_ = true;
    const Generation* const newest = newest_.load(std::memory_order_relaxed);
    for (auto& each : generations_) {
      if (each.get() != newest) replaced.push_back(std::move(each));
    }
    std::erase(generations_, nullptr);
  }
  replaced.clear();
  return newest_.load(std::memory_order_relaxed)->db->Close();
}

// ---- Calls

ColumnFamilyHandle* RefreshingDB::Find(const Generation& generation, ColumnFamilyHandle* family, Status* status) const {
  if (family == default_handle_.get()) return generation.db->DefaultColumnFamily();
  const auto* const known = static_cast<const FamilyHandle*>(family);
  if (known == nullptr || known->db() != this) {
    *status = Status::InvalidArgument(known == nullptr ? "the column family handle is null"
                                                       : "the column family handle belongs to another database");
    return nullptr;
  }
  if (known->GetID() == 0) return generation.db->DefaultColumnFamily();
  const Generation::Handles& handles = *generation.table.load(std::memory_order_acquire);
  if (const auto it = handles.find(known->family()->number); it != handles.end()) return it->second;
  *status =
      Status::InvalidArgument("column family '" + known->GetName() + "' was dropped by the process that writes the database");
  return nullptr;
}

template <class Read>
Status RefreshingDB::ReadFrom(const ReadOptions& options, const Read& read) {
  for (bool refreshes = options_.refresh_live_readers && options.snapshot == nullptr;; refreshes = false) {
    Status status;
    {
      const Call call(this);
      if (options.snapshot != nullptr) {
        const auto* const held = dynamic_cast<const HeldSnapshot*>(options.snapshot);
        if (held == nullptr) return Status::InvalidArgument("the snapshot belongs to another database");
        if (held->generation != call.generation())
          return Status::Expired("the snapshot was taken before the reader was refreshed; take another one");
      }
      status = read(*call.generation());
    }
    if (!status.IsExpired() || !refreshes || !Refresh().ok()) return status;
  }
}

template <class Read>
Status RefreshingDB::ReadFamily(const ReadOptions& options, ColumnFamilyHandle* family, const Read& read) {
  return ReadFrom(options, [&](const Generation& generation) {
    Status status;
    ColumnFamilyHandle* const handle = Find(generation, family, &status);
    return handle == nullptr ? status : read(generation.db, handle);
  });
}

Status RefreshingDB::Get(const ReadOptions& options, Slice key, std::string* value) {
  const KeptKey kept(key, *value);
  return ReadFrom(options, [&](const Generation& of) { return of.db->Get(options, kept.slice(), value); });
}

Status RefreshingDB::Get(const ReadOptions& options, Slice key, PinnableSlice* value) {
  return ReadFrom(options, [&](const Generation& of) { return of.db->Get(options, key, value); });
}

Status RefreshingDB::GetTo(const ReadOptions& options, Slice key, ValueReceiver* value) {
  return ReadFrom(options, [&](const Generation& of) { return of.db->GetTo(options, key, value); });
}

Status RefreshingDB::GetTo(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, ValueReceiver* value) {
  return ReadFamily(options, family,
                    [&](LiveDB* db, ColumnFamilyHandle* handle) { return db->GetTo(options, handle, key, value); });
}

Status RefreshingDB::Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) {
  const KeptKey kept(key, *value);
  return ReadFamily(options, family,
                    [&](LiveDB* db, ColumnFamilyHandle* handle) { return db->Get(options, handle, kept.slice(), value); });
}

Status RefreshingDB::Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, PinnableSlice* value) {
  return ReadFamily(options, family,
                    [&](LiveDB* db, ColumnFamilyHandle* handle) { return db->Get(options, handle, key, value); });
}

// All keys are read from one generation, so they all expire, or none does.
std::vector<Status> RefreshingDB::MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                           std::vector<std::string>* values) {
  std::vector<Status> statuses;
  const Status status = ReadFrom(options, [&](const Generation& of) {
    statuses = of.db->MultiGet(options, keys, values);
    return !statuses.empty() && statuses.front().IsExpired() ? statuses.front() : Status::OK();
  });
  if (!status.ok()) {
    statuses.assign(keys.size(), status);
    values->resize(keys.size());
  }
  return statuses;
}

std::vector<Status> RefreshingDB::MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                           const std::vector<Slice>& keys, std::vector<std::string>* values) {
  std::vector<Status> statuses;
  const Status status = ReadFrom(options, [&](const Generation& of) {
    std::vector<ColumnFamilyHandle*> handles;
    std::vector<Status> unknown(families.size());
    for (size_t i = 0; i < families.size(); ++i) handles.push_back(Find(of, families[i], &unknown[i]));
    statuses = of.db->MultiGet(options, handles, keys, values);
    for (size_t i = 0; i < std::min(statuses.size(), unknown.size()); ++i) {
      if (!unknown[i].ok() && !statuses[i].IsExpired()) statuses[i] = unknown[i];
    }
    return !statuses.empty() && statuses.front().IsExpired() ? statuses.front() : Status::OK();
  });
  if (!status.ok()) {
    statuses.assign(keys.size(), status);
    values->resize(keys.size());
  }
  return statuses;
}

std::unique_ptr<Iterator> RefreshingDB::NewIterator(const ReadOptions& options) {
  return NewIterator(options, default_handle_.get());
}

std::unique_ptr<Iterator> RefreshingDB::NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) {
  std::unique_ptr<Iterator> iterator;
  const Status status = ReadFamily(options, family, [&](LiveDB* db, ColumnFamilyHandle* handle) {
    iterator = db->NewIterator(options, handle);
    return iterator->status();
  });
  return status.ok() || (iterator != nullptr && !status.IsExpired()) ? std::move(iterator)
                                                                     : std::make_unique<ErrorIterator>(status);
}

// ---- Others

Status RefreshingDB::GetColumnFamilies(std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles) try {
  handles->clear();
  std::vector<std::unique_ptr<ColumnFamilyHandle>> found;
  const Status status = ReadFrom({}, [&](const Generation& of) { return of.db->GetColumnFamilies(&found); });
  if (!status.ok()) return status;
  const std::lock_guard lock(refresh_mutex_);
  FindFamilies(generations_.back().get());
  for (const auto& handle : found) {
    static_cast<FamilyHandle*>(handle.get())->TellOfDeletion({});
    const auto is_same = [&](const ColumnFamilyDescriptor& known) { return known.name == handle->GetName(); };
    if (std::find_if(families_.begin(), families_.end(), is_same) == families_.end())
      families_.push_back({handle->GetName(), handle->GetOptions()});
    handles->push_back(MakeHandle(*handle, options_.listeners));
  }
  return Status::OK();
} catch (const std::bad_alloc&) {
  handles->clear();
  return NoMemory();
}

const Snapshot* RefreshingDB::GetSnapshot() {
  for (bool refreshes = options_.refresh_live_readers;; refreshes = false) {
    {
      const Call call(this);
      if (const Snapshot* const base = call.db()->GetSnapshot()) {
        try {
          return new HeldSnapshot(base, call.generation());
        } catch (const std::bad_alloc&) {
          call.db()->ReleaseSnapshot(base);
          throw;
        }
      }
    }
    if (!refreshes || !Refresh().ok()) return nullptr;
  }
}

// The snapshot keeps its generation.
void RefreshingDB::ReleaseSnapshot(const Snapshot* snapshot) {
  if (snapshot == nullptr) return;
  const auto* const held = static_cast<const HeldSnapshot*>(snapshot);
  held->generation->db->ReleaseSnapshot(held->base);
  delete held;
}

bool RefreshingDB::GetIntProperty(ColumnFamilyHandle* family, std::string_view property, uint64_t* value) {
  const Call call(this);
  Status status;
  ColumnFamilyHandle* const handle = Find(*call.generation(), family, &status);
  return handle != nullptr && call.db()->GetIntProperty(handle, property, value);
}

bool RefreshingDB::GetProperty(ColumnFamilyHandle* family, std::string_view property, std::string* value) {
  const Call call(this);
  Status status;
  ColumnFamilyHandle* const handle = Find(*call.generation(), family, &status);
  return handle != nullptr && call.db()->GetProperty(handle, property, value);
}

bool RefreshingDB::GetIntProperty(std::string_view property, uint64_t* value) {
  return GetIntProperty(default_handle_.get(), property, value);
}

bool RefreshingDB::GetProperty(std::string_view property, std::string* value) {
  return GetProperty(default_handle_.get(), property, value);
}

Status RefreshingDB::GetLatestSequenceForKey(ColumnFamilyHandle* family, Slice key, uint64_t* sequence) {
  return ReadFamily({}, family,
                    [&](LiveDB* db, ColumnFamilyHandle* handle) { return db->GetLatestSequenceForKey(handle, key, sequence); });
}

Status RefreshingDB::GetLatestSequenceForKey(Slice key, uint64_t* sequence) {
  return GetLatestSequenceForKey(default_handle_.get(), key, sequence);
}

uint64_t RefreshingDB::GetLatestSequenceNumber() const { return Call(this).db()->GetLatestSequenceNumber(); }

Status RefreshingDB::GetUpdatesSince(uint64_t sequence, std::unique_ptr<TransactionLogIterator>* iterator) {
  return Call(this).db()->GetUpdatesSince(sequence, iterator);
}

// The numbers of a generation are larger than all that were given before. So a follower whose reader was refreshed, perhaps by
// another thread, looks at once; writers may draw a number again that had no update when their predecessor was killed.
Status RefreshingDB::WaitForUpdate(uint64_t sequence, std::chrono::microseconds timeout, uint64_t* latest) {
  for (bool refreshes = options_.refresh_live_readers;;) {
    Status status;
    {
      const Call call(this);
      const uint64_t offset = call.generation()->offset;
      uint64_t found = 0;
      status = call.db()->WaitForUpdate(sequence > offset ? sequence - offset : 0, timeout, &found);
      if (status.ok()) {
        const std::lock_guard lock(refresh_mutex_);
        if (call.generation() != newest_.load(std::memory_order_relaxed)) continue;
        *latest = found + offset;
        largest_given_ = std::max(largest_given_, *latest);
        return status;
      }
    }
    if (!(status.IsExpired() || status.IsAborted()) || !std::exchange(refreshes, false) || !Refresh().ok()) return status;
  }
}

}  // namespace braiddb
