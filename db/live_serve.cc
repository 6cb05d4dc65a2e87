// The owner's side of live readers: the database shares its memory with processes that read it. docs/design/0024-live-readers.md
//
// BEFORE THE FIRST READER  Memtables and indexes are in private memory, and nothing is published. The numbers that readers need
//                          are on the LiveBoard from the open on, since they cannot move.
// THE FIRST READER         The service thread makes the heap and rotates the memtable. Later memtables and indexes of L0 lie in
//                          the heap. When the older memtables are flushed, no memtable of the view is in private memory, and the
//                          view is published.
// ORDER                    A view is published before a write can go to its memtables (RotateMemtable), and a set of range
//                          tombstones before the deletion is acknowledged. So a reader that loads LiveBoard::version at the
//                          beginning of a call, and follows it, sees every write that was acknowledged before the call.
// DELETED RANGES           They are on the board before the write ends. A read of this process that meets the range before that
//                          waits for the write, since it is repeated as of a snapshot.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "db/db_impl.h"
#include "db/live_view.h"
#include "util/comparator_name.h"
#include "util/sync_point.h"

namespace braiddb {

namespace {

// Whether this process has descriptors left for its own work. The newest one has the smallest number that was free.
bool LeavesDescriptors(int newest) {
  constexpr rlim_t kLeast = 32;
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  return static_cast<rlim_t>(newest) + std::max(kLeast, limit.rlim_cur / 8) < limit.rlim_cur;
}

}  // namespace

// Answers readers. All calls come from one thread.
class DBImpl::LiveService final : public LocalServer::Handler {
 public:
  explicit LiveService(DBImpl* db) : db_(db) {}

  bool OnMessage(const LocalServer::Peer& peer, std::string_view message) override {
    const std::string_view hello(kLiveHello);
    const std::string_view snapshot(kLiveSnapshot);
    if (message.starts_with(hello) && message.size() == hello.size() + sizeof(kLiveLayout)) {
      uint64_t layout = 0;
      memcpy(&layout, message.data() + hello.size(), sizeof(layout));
      return db_->AnswerReader(peer, layout);
    }
    if (message.starts_with(snapshot) && message.size() == snapshot.size() + sizeof(uint32_t)) {
      uint32_t element = 0;
      memcpy(&element, message.data() + snapshot.size(), sizeof(element));
      return db_->ChooseForReader(peer, element);
    }
    const std::string_view await(kLiveAwait);
    if (message.starts_with(await) && message.size() == await.size() + sizeof(uint64_t)) {
      uint64_t next = 0;
      memcpy(&next, message.data() + await.size(), sizeof(next));
      db_->AwaitForReader(next);
      return true;
    }
    if (message == kLiveHidden) {
      db_->WantScanMerge();
      return true;
    }
    return message == kLiveList && db_->ListReaders(peer);
  }
  void OnClose(uint64_t connection) override {
    db_->live_readers_.Remove(connection);
    db_->NotifyWork();  // what the reader held may be reclaimed
  }

 private:
  DBImpl* const db_;
};

void DBImpl::InitThread(uint32_t index, ThreadState* thread) {
  thread->announced = &board_->announced[index];
  uint32_t known = board_->threads.load(std::memory_order_relaxed);
  while (known <= index && !board_->threads.compare_exchange_weak(known, index + 1, std::memory_order_acq_rel)) {
  }
}

// A database without live readers works as well, so a failure is only logged.
void DBImpl::BeginServing() try {
#ifdef BRAIDDB_CRASH_TEST
  return;  // the tests' scheduler knows no thread that waits for sockets
#endif
  if (board_memory_.shared() == nullptr) return Log("readers in other processes: the system refuses shared memory");
  live_service_ = std::make_unique<LiveService>(this);
  const Status status = LocalServer::Start(path_, kLiveSocket, live_service_.get(), &live_server_);
  if (!status.ok()) Log("readers in other processes: " + status.ToString());
  telling_server_.store(live_server_.get(), std::memory_order_release);
} catch (const std::bad_alloc&) {
  live_server_.reset();
}

// Readers that are there keep what they see: no memory is given back any more, and segments that they hold stay until the next
// open. REQUIRES: all other threads have ended.
// ORDER  The heap is frozen first, since a reader may come until the server has ended.
void DBImpl::EndServing() {
  live_readers_.KeepAll();
  if (owned_heap_ != nullptr) owned_heap_->Freeze();
  telling_server_.store(nullptr, std::memory_order_release);
  live_server_.reset();
  if (owned_heap_ != nullptr) epochs_.Abandon();
}

bool DBImpl::AnswerReader(const LocalServer::Peer& peer, uint64_t layout) {
  const auto answer = [&](std::string_view text, std::span<const int> descriptors = {}) {
    return peer.server->Send(peer.connection, text, descriptors);
  };
  if (stopping_.load(std::memory_order_acquire)) return false;
  if (layout != kLiveLayout) return answer(kLiveOtherVersion);
  if (live_readers_.size() >= LiveReaders::kMost) return answer("it has 1,024 readers; close one");
  if (!ShareMemory()) return answer("it has no address space for shared memory; raise the limit (ulimit -v)");
  if (board_->view.load(std::memory_order_acquire) == 0) {
    if (!write_failed_.load(std::memory_order_acquire)) return answer(kLiveWait);
    return answer("it takes no more writes after an error, and cannot share its memory; close it, and open it again");
  }
  const int slot = live_readers_.Add(peer.connection, peer.pid);
  BRAIDDB_SYNC_POINT("DBImpl::AnswerReader:Added");
  const int board = board_memory_.shared()->OpenToRead();
  const int heap = owned_heap_->memory().OpenToRead();
  const int descriptors[] = {board, heap, slot};
  const bool is_complete = board >= 0 && heap >= 0 && slot >= 0 && LeavesDescriptors(std::max({board, heap, slot}));
  const bool is_sent = is_complete && answer(kLiveWelcome, descriptors);
  if (board >= 0) close(board);
  if (heap >= 0) close(heap);
  if (!is_sent) live_readers_.Remove(peer.connection);
  if (is_sent) Log("a process reads the database: pid " + std::to_string(peer.pid));
  return is_complete ? is_sent : answer("it has few open files left; raise its limit (ulimit -n)");
}

// As many readers as a message has room for.
bool DBImpl::ListReaders(const LocalServer::Peer& peer) {
  std::string list;
  for (const LiveReaders::Reader& reader : live_readers_.List()) {
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now() - reader.since);
    const std::string line = std::to_string(reader.pid) + " " + std::to_string(age.count()) + " " +
                             (reader.expired ? "1 " : "0 ") +
                             (reader.oldest_snapshot.has_value() ? std::to_string(*reader.oldest_snapshot) : "-1") + "\n";
    if (list.size() + line.size() > LocalServer::kMaxMessage) break;
    list += line;
  }
  return peer.server->Send(peer.connection, list.empty() ? "\n" : list);
}

// The reader's registration begins before that of this process ends.
bool DBImpl::ChooseForReader(const LocalServer::Peer& peer, uint32_t element) {
  const uint64_t sequence = RegisterSnapshot();
  const SnapshotRegistration registration(&snapshots_, sequence);
  if (!live_readers_.StoreSnapshot(peer.connection, element, sequence)) return false;
  std::string answer(kLiveSnapshot);
  answer.append(reinterpret_cast<const char*>(&element), sizeof(element));
  answer.append(reinterpret_cast<const char*>(&sequence), sizeof(sequence));
  return peer.server->Send(peer.connection, answer);
}

// Called by the service thread. False: there is no memory.
bool DBImpl::ShareMemory() {
  if (owned_heap_ == nullptr) {
    owned_heap_ = SharedHeap::Create();
    if (owned_heap_ == nullptr) return false;
    live_heap_.store(owned_heap_.get(), std::memory_order_release);
    cache_should_be_shared_.store(true, std::memory_order_release);
    NotifyWork();
  }
  const Memtable* active = nullptr;
  {
    const auto guard = epochs_.Enter();
    const ReadView& view = *view_.load(std::memory_order_acquire);
    if (view.active->arena()->heap() == nullptr) active = view.active.get();
  }
  if (active != nullptr) TryRotateMemtable(active);
  if (board_->view.load(std::memory_order_acquire) != 0) return true;
  if (!ranges_are_published_.load(std::memory_order_acquire)) {
    std::lock_guard lock(ranges_mutex_);
    PublishRanges();
  }
  std::lock_guard lock(view_mutex_);
  PublishView();  // does nothing while a memtable is in private memory
  return true;
}

// Copies the structures of tables and last levels that were made before the first reader came. Called by the compaction thread
// after the flush thread has begun to use the heap: then no index of before gets another entry. Without memory they stay where
// they are, and readers search without them.
// REQUIRES: compaction_mutex_, and no merge is running.
void DBImpl::ShareLevels() try {
  if (!levels_should_be_shared_.exchange(false, std::memory_order_acquire)) return;
  ShareFilter();
  bool has_copies = false;
  {
    const PinnedView pinned(this);
    pinned.view().ForEach([&](uint32_t, const FamilyView& levels) {
      for (const auto& table : levels.l0) {
        if (table->index() == nullptr || table->index()->heap_offset() != 0) continue;
        table->index()->CopyTo(live_heap_.load(std::memory_order_acquire));
        has_copies |= table->index()->heap_offset() != 0;
      }
    });
  }
  if (has_copies) {
    const std::lock_guard lock(view_mutex_);
    PublishView();
  }
  for (uint32_t id = 0; id < kMaxFamilies; ++id) {
    Family* const family = FindFamily(id);
    if (family == nullptr || family->last_level == nullptr || !family->last_level->Share()) continue;
    BRAIDDB_SYNC_POINT("DBImpl::ShareLevels:Copied");
    const std::lock_guard lock(view_mutex_);
    if (current_view_->Of(id) == nullptr) continue;  // a dropped family that has left the view must not come back
    auto view = std::make_shared<ReadView>(*current_view_);
    view->Alter(id, [family](FamilyView* levels) { levels->l1 = family->last_level->View(); });
    InstallView(view);
  }
  BRAIDDB_SYNC_POINT("DBImpl::ShareLevels:Done");
} catch (const std::bad_alloc&) {
}

// The previous block is freed when no reader can use it.
void DBImpl::PublishBlock(std::atomic<uint64_t>* place, const std::vector<uint64_t>& words) {
  SharedHeap* const heap = live_heap_.load(std::memory_order_acquire);
  bool fails = false;
  BRAIDDB_SYNC_POINT_ARG("DBImpl::PublishBlock", &fails);
  const uint64_t offset = fails ? 0 : heap->Allocate(words.size() * sizeof(uint64_t));
  if (offset == 0) throw std::bad_alloc();
  memcpy(heap->At(offset), words.data(), words.size() * sizeof(uint64_t));
  ReplaceBlock(place, offset);
  TellReaders();
}

void DBImpl::ReplaceBlock(std::atomic<uint64_t>* place, uint64_t offset) noexcept {
  SharedHeap* const heap = live_heap_.load(std::memory_order_acquire);
  const uint64_t old = place->exchange(offset, std::memory_order_acq_rel);
  board_->version.fetch_add(1, std::memory_order_seq_cst);
  if (old == 0) return;
  const uint64_t old_bytes = *reinterpret_cast<const uint64_t*>(heap->At(old)) * sizeof(uint64_t);
  try {
    epochs_.RetireShared([heap, old, old_bytes] { heap->Free(old, old_bytes); });
  } catch (const std::bad_alloc&) {  // the block stays until the close
  }
}

void DBImpl::TellReaders() noexcept {
  LocalServer* const server = telling_server_.load(std::memory_order_acquire);
  if (server == nullptr) return;
  try {
    for (const uint64_t connection : live_readers_.ToTell()) (void)server->Send(connection, kLiveNews);
  } catch (const std::bad_alloc&) {  // readers find the version with their next call
  }
}

// A reader that cannot follow must not go on with what it has. The next reader that comes has the state published again.
void DBImpl::GiveUpReaders() noexcept {
  live_readers_.ExpireAll();
  ReplaceBlock(&board_->view, 0);
}

// REQUIRES: view_mutex_.
void DBImpl::PublishView() noexcept try {
  if (live_heap_.load(std::memory_order_acquire) == nullptr || !ranges_are_published_.load(std::memory_order_acquire)) return;
  LiveView view;
  view.list_kind = static_cast<uint8_t>(options_.list_kind);
  view.memtable_kind = static_cast<uint8_t>(options_.memtable);
  view.regions = regions_->count();
  view.database_id = regions_->database_id();
  if (lookup_cache_ != nullptr) view.lookup_cache = lookup_cache_->shared_range();
  if (shared_filter_ != nullptr) view.filter = shared_filter_->Shared();
  const WriterRuns runs = regions_->ReadWriterRuns();
  view.runs.assign(std::begin(runs.ids), std::begin(runs.ids) + regions_->count());
  const auto add_memtable = [&view](const Memtable& memtable) {
    const Arena& arena = *memtable.arena();
    view.memtables.push_back({memtable.id(), arena.heap_offset(), arena.first_bytes()});
    return arena.heap() != nullptr;
  };
  bool is_shared = add_memtable(*current_view_->active);
  for (const auto& memtable : current_view_->immutables) is_shared &= add_memtable(*memtable);
  if (!is_shared) return;  // the first reader still waits
  current_view_->ForEach([&](uint32_t id, const FamilyView& levels) {
    const Family& known = *FindFamily(id);
    LiveFamily family;
    family.id = id;
    family.number = known.number;
    family.l1_kind = static_cast<uint8_t>(known.options.l1);
    family.is_dropped = known.dropped.load(std::memory_order_acquire);
    family.l1_entries = known.l1_entries.load(std::memory_order_relaxed);
    family.name = known.name;
    family.comparator = StoredName(*known.options.comparator);
    for (const auto& from : levels.l0) {
      LiveTable table;
      table.id = from->id();
      table.boundary = from->boundary();
      table.begin = from->begin;
      table.entries = from->entries;
      if (const L0Index* const index = from->index(); index != nullptr && index->heap_offset() != 0) {
        table.index_offset = index->heap_offset();
        table.index_buckets = index->buckets();
        table.index_column = from->column();
      }
      table.heads = from->heads();
      family.tables.push_back(std::move(table));
    }
    for (const auto& [order, tables] : levels.orders) {
      const TableOrder::Shared shared = order == nullptr ? TableOrder::Shared() : order->shared();
      family.orders.push_back({shared.id, shared.offset, shared.entries, shared.fetch_bytes, tables, shared.alike});
    }
    family.level = levels.l1->Shared();
    view.families.push_back(std::move(family));
  });
  PublishBlock(&board_->view, view.Encode());
} catch (const std::bad_alloc&) {
  GiveUpReaders();
}

// REQUIRES: ranges_mutex_.
void DBImpl::PublishRanges() noexcept try {
  if (live_heap_.load(std::memory_order_acquire) == nullptr) return;
  LiveRanges ranges;
  for (uint32_t id = 0; id < kMaxFamilies; ++id) {
    const Family* const family = FindFamily(id);
    if (family == nullptr || family->current_ranges == nullptr) continue;
    LiveRanges::OfFamily of_family;
    of_family.family = id;
    family->current_ranges->ForEach([&of_family](const RangeTombstones::Tombstone& range) {
      of_family.ranges.push_back({range->sequence, range->record, range->begin, range->end});
    });
    ranges.families.push_back(std::move(of_family));
  }
  PublishBlock(&board_->ranges, ranges.Encode());
  ranges_are_published_.store(true, std::memory_order_release);
} catch (const std::bad_alloc&) {
  ranges_are_published_.store(false, std::memory_order_release);
  GiveUpReaders();
}

std::vector<uint64_t> DBImpl::CopySnapshots() const {
  std::vector<uint64_t> sequences = snapshots_.Copy();
  if (live_readers_.Any()) live_readers_.AddSnapshots(&sequences);
  return sequences;
}

uint64_t DBImpl::OldestSnapshot() const {
  const uint64_t oldest = snapshots_.Oldest();
  return live_readers_.Any() ? std::min(oldest, live_readers_.OldestSnapshot()) : oldest;
}

}  // namespace braiddb
