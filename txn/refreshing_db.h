// RefreshingDB: a live reader (db/live_db.h) that can attach to the next process which opens the database for writing.
//
// GENERATION  One attachment: a LiveDB and its handles of the column families. Users have handles of this object, which stand for
//             a family in each generation, by the family's number.
// A CALL      uses the generation that was the newest when it began, and announces it in a slot of its thread. A call inside of
//             another one, from a merge operator for example, uses the generation of the outer call.
// END         A refresh replaces the generation. The old one is destroyed by a refresh or the close, when no call, iterator,
//             snapshot or pinned value uses it.
// ORDER       A call stores the generation in its slot, then checks that it is still the newest one. A refresh replaces the
//             newest generation, then looks at the slots. Between the two steps of each are asymmetric fences, or all four
//             accesses are sequentially consistent. So a call finds that its generation was replaced, or the refresh sees that
//             it is in use.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "db/family.h"
#include "db/live_db.h"
#include "db/read_only_db.h"
#include "util/asymmetric_fence.h"
#include "util/per_thread.h"

namespace braiddb {

class RefreshingDB final : public ReadOnlyDB {
 public:
  // Replaces a LiveDB and its handles, which may be null, by a RefreshingDB that has them, and its handles. `families`: what the
  // open was given. On error *db is null.
  static Status Wrap(const Options& options, const std::string& path, const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db);

  ~RefreshingDB() override;

  Status Close() override;
  Status Refresh() override;
  Status Get(const ReadOptions& options, Slice key, std::string* value) override;
  Status Get(const ReadOptions& options, Slice key, PinnableSlice* value) override;
  Status GetTo(const ReadOptions& options, Slice key, ValueReceiver* value) override;
  Status GetTo(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, ValueReceiver* value) override;
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) override;
  Status GetColumnFamilies(std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles) override;
  ColumnFamilyHandle* DefaultColumnFamily() const override { return default_handle_.get(); }
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) override;
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, PinnableSlice* value) override;
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                               const std::vector<Slice>& keys, std::vector<std::string>* values) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) override;
  bool GetProperty(ColumnFamilyHandle* family, std::string_view property, std::string* value) override;
  bool GetIntProperty(ColumnFamilyHandle* family, std::string_view property, uint64_t* value) override;
  Status GetLatestSequenceForKey(ColumnFamilyHandle* family, Slice key, uint64_t* sequence) override;
  const Snapshot* GetSnapshot() override;
  void ReleaseSnapshot(const Snapshot* snapshot) override;
  bool GetProperty(std::string_view property, std::string* value) override;
  bool GetIntProperty(std::string_view property, uint64_t* value) override;
  uint64_t GetLatestSequenceNumber() const override;
  Status GetUpdatesSince(uint64_t sequence, std::unique_ptr<TransactionLogIterator>* iterator) override;
  Status WaitForUpdate(uint64_t sequence, std::chrono::microseconds timeout, uint64_t* latest) override;
  Status GetLatestSequenceForKey(Slice key, uint64_t* sequence) override;
  const Options& GetOptions() const override { return shown_options_; }
  const std::string& GetName() const override { return path_; }

 private:
  struct Generation;
  struct Slot {
    std::atomic<Generation*> generation{nullptr};
    uint32_t depth = 0;  // of calls inside each other; used by the slot's thread
  };
  class Call;
  struct HeldSnapshot;

  RefreshingDB(const Options& options, const std::string& path, const std::vector<ColumnFamilyDescriptor>& families);
  // A generation that has the database, with a handle for each family that it can read. REQUIRES: refresh_mutex_, or the open.
  std::unique_ptr<Generation> MakeGeneration(std::unique_ptr<DB> db);
  // Adds the families that the generation can read now. REQUIRES: refresh_mutex_.
  void FindFamilies(Generation* generation);
  // `listeners`: those that are told of the handle's end.
  std::unique_ptr<ColumnFamilyHandle> MakeHandle(const ColumnFamilyHandle& of,
                                                 const std::vector<std::shared_ptr<EventListener>>& listeners) const;
  using Generations = std::vector<std::unique_ptr<Generation>>;
  // Moves generations that nobody uses to *taken. REQUIRES: refresh_mutex_.
  void TakeReplaced(Generations* taken);
  Status Attach(const std::vector<ColumnFamilyDescriptor>& families, std::unique_ptr<DB>* db);
  // The generation's handle of the user's family. Null: an error in *status.
  ColumnFamilyHandle* Find(const Generation& generation, ColumnFamilyHandle* family, Status* status) const;
  // Calls `read(generation)` until its status is final.
  template <class Read>
  Status ReadFrom(const ReadOptions& options, const Read& read);
  // The same for a family: `read(database, handle)`.
  template <class Read>
  Status ReadFamily(const ReadOptions& options, ColumnFamilyHandle* family, const Read& read);

  const Options options_;
  const std::string path_;
  const bool asymmetric_fences_ = HasAsymmetricFences();
  Options shown_options_;
  std::unique_ptr<ColumnFamilyHandle> default_handle_;
  mutable std::mutex refresh_mutex_;
  std::vector<ColumnFamilyDescriptor> families_;  // that handles exist of; refresh_mutex_
  mutable PerThread<Slot> slots_;
  std::atomic<Generation*> newest_{nullptr};
  Generations generations_;     // the newest is the last; refresh_mutex_
  uint64_t largest_given_ = 0;  // by WaitForUpdate; refresh_mutex_
  bool is_closing_ = false;     // refresh_mutex_
  std::thread::id refreshing_;  // the thread that attaches; refresh_mutex_
  std::condition_variable refreshed_;
};

}  // namespace braiddb
