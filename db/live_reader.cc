#include "db/live_reader.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <locale>
#include <new>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "util/arena.h"
#include "util/futex.h"
#include "util/spin.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

using Clock = std::chrono::steady_clock;

// The longest wait for a place: the owner may have to flush its memtables first.
constexpr std::chrono::seconds kPatience{30};
constexpr int kAnswerMs = 5000;

template <class Number>
void AppendNumber(std::string* message, Number number) {
  message->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void CloseAll(const std::vector<int>& descriptors) {
  for (const int fd : descriptors) close(fd);
}

}  // namespace

Status LiveReader::Attach(const std::string& directory, std::unique_ptr<LiveReader>* result) {
  std::unique_ptr<LocalClient> client;
  if (Status status = LocalClient::Connect(directory, kLiveSocket, &client); !status.ok()) return status;
  std::string hello(kLiveHello);
  AppendNumber(&hello, kLiveLayout);
  std::string answer;
  std::vector<int> descriptors;
  uint64_t early_news = 0;
  const auto busy = [&directory](const std::string& why) {
    return Status::Busy("the process that has the database in " + directory + " open for writing " + why);
  };
  for (const auto deadline = Clock::now() + kPatience;;) {
    if (Status status = client->Send(hello); !status.ok()) return status.IsAborted() ? status : busy("does not read");
    for (;; ++early_news) {  // news may come before the first answer
      CloseAll(std::exchange(descriptors, {}));
      if (Status status = client->Receive(kAnswerMs, &answer, &descriptors); !status.ok())
        return status.IsAborted() ? status : busy("does not answer: " + std::string(status.message()));
      if (answer != kLiveNews) break;
    }
    if (answer != kLiveWait) break;
    if (Clock::now() > deadline) return busy("cannot share its memory at present; try again later");
    usleep(500);
  }
  if (answer != kLiveWelcome || descriptors.size() != 3) {
    CloseAll(descriptors);
    if (answer == kLiveWelcome) return busy("gave an incomplete answer; raise the limit of open files");
    if (answer != kLiveOtherVersion) return busy("refuses this reader: " + (answer.empty() ? "unknown reason" : answer));
    return Status::NotSupported("the process that has the database in " + directory + " open for writing " + answer);
  }
  std::unique_ptr<SharedMemory> board = SharedMemory::Attach(descriptors[0], false, sizeof(LiveBoard));
  std::unique_ptr<SharedMemory> heap = SharedMemory::Attach(descriptors[1], false, 1, Arena::kGuardBytes);
  std::unique_ptr<SharedMemory> slot = SharedMemory::Attach(descriptors[2], true, sizeof(ReaderSlot));
  if (board == nullptr || heap == nullptr || slot == nullptr)
    return Status::MemoryLimit("no address space for the memory of the process that writes; raise the limit (ulimit -v)");
  result->reset(new LiveReader(std::move(client), std::move(board), std::move(heap), std::move(slot)));
  // The first call of the reader follows what these were about. News without an answer would let the reader expire.
  (*result)->slot_->answers.fetch_add(early_news, std::memory_order_release);
  return Status::OK();
}

Status DB::ListLiveReaders(const std::string& path, std::vector<LiveReaderInfo>* readers) {
  readers->clear();
  std::unique_ptr<LocalClient> client;
  std::string answer;
  Status status = LocalClient::Connect(path, kLiveSocket, &client);
  if (status.IsNotFound()) return Status::NotFound("no process has the database in " + path + " open for writing");
  if (status.ok()) status = client->Send(kLiveList);
  if (status.ok()) status = client->Receive(kAnswerMs, &answer, nullptr);
  std::istringstream lines(answer);
  lines.imbue(std::locale::classic());
  LiveReaderInfo reader;
  for (int64_t oldest = 0; status.ok() && lines >> reader.pid >> reader.seconds >> reader.has_expired >> oldest;) {
    reader.oldest_snapshot = oldest < 0 ? std::nullopt : std::optional<uint64_t>(static_cast<uint64_t>(oldest));
    readers->push_back(reader);
  }
  return status;
}

LiveReader::LiveReader(std::unique_ptr<LocalClient> client, std::unique_ptr<SharedMemory> board,
                       std::unique_ptr<SharedMemory> heap, std::unique_ptr<SharedMemory> slot)
    : client_(std::move(client)),
      board_memory_(std::move(board)),
      heap_(std::move(heap)),
      slot_memory_(std::move(slot)),
      board_(reinterpret_cast<const LiveBoard*>(board_memory_->base())),
      slot_(reinterpret_cast<ReaderSlot*>(slot_memory_->base())) {}

LiveReader::~LiveReader() { StopFollowing(); }

// ---- News

void LiveReader::Follow(std::function<void()> on_news) {
  on_news_ = std::move(on_news);
  received_.reserve(LocalClient::kMaxMessage);
  listener_ = std::thread([this] { Listen(); });
}

void LiveReader::StopFollowing() {
  stopping_.store(true, std::memory_order_release);
  if (!listener_.joinable()) return;
  client_->Shutdown();  // ends the wait for news
  listener_.join();
}

// Only the texts of errors need memory, so no message is lost.
LiveReader::News LiveReader::ReceiveNews() try {
  constexpr int kNoLimit = -1;
  const Status status = client_->Receive(kNoLimit, &received_, nullptr);
  return status.ok() ? News::kMessage : status.IsAborted() ? News::kEnd : News::kNone;
} catch (const std::bad_alloc&) {
  usleep(1000);
  return client_->IsClosed() ? News::kEnd : News::kNone;
}

void LiveReader::Listen() {
  pthread_setname_np(pthread_self(), "braid-follow");
  const std::string& message = received_;
  while (!stopping_.load(std::memory_order_acquire)) {
    const News news = ReceiveNews();
    if (news == News::kEnd) {
      owner_is_gone_.store(true, std::memory_order_release);
      FutexWakeAll(board_->wakes);
      const std::lock_guard lock(answer_mutex_);
      answered_.notify_all();
      return;
    }
    if (news == News::kNone) continue;
    const std::string_view prefix(kLiveSnapshot);
    if (message.compare(0, prefix.size(), prefix) == 0 && message.size() == prefix.size() + sizeof(uint32_t) + sizeof(uint64_t)) {
      const std::lock_guard lock(answer_mutex_);
      uint32_t element = 0;
      memcpy(&element, message.data() + prefix.size(), sizeof(element));
      if (element != asked_element_) continue;  // the answer to a request that was given up
      memcpy(&answer_, message.data() + prefix.size() + sizeof(element), sizeof(answer_));
      ++answer_;
      answered_.notify_all();
    } else {
      // Before the work: news of later changes must come, too.
      slot_->answers.fetch_add(1, std::memory_order_release);
      on_news_();
    }
  }
}

// ---- Holds

// A child of fork(2) leaves the slot alone, and takes no lock, which a thread of the parent may have held at the fork.
void LiveReader::CheckProcess() const {
  if (is_in_child()) throw LiveFailure{Status::IOError("the database was opened by the parent of this process; open it here")};
}

// ORDER  The epoch is stored by an exchange, then the caller loads pointers; util/epoch.cc.
uint64_t LiveReader::Hold() {
  CheckProcess();
  const std::lock_guard lock(mutex_);
  const uint64_t epoch = board_->epoch.load(std::memory_order_acquire);
  held_.insert(epoch);
  slot_->epoch.exchange(*held_.begin(), std::memory_order_seq_cst);
  return epoch;
}

void LiveReader::Release(uint64_t epoch) {
  if (is_in_child()) return;
  const std::lock_guard lock(mutex_);
  held_.erase(held_.find(epoch));
  slot_->epoch.store(held_.empty() ? UINT64_MAX : *held_.begin(), std::memory_order_release);
}

// ---- Snapshots

uint32_t LiveReader::TakeElement() {
  if (!free_elements_.empty()) return free_elements_.extract(free_elements_.begin()).value();
  const uint32_t used = slot_->snapshots_used.load(std::memory_order_relaxed);
  if (used >= ReaderSlot::kMaxSnapshots) {
    throw LiveFailure{Status::MemoryLimit("a live reader has at most " + std::to_string(ReaderSlot::kMaxSnapshots) +
                                          " snapshots and iterators of different states; release some")};
  }
  slot_->snapshots_used.store(used + 1, std::memory_order_seq_cst);
  return used;
}

void LiveReader::AddSnapshot(uint64_t sequence) {
  CheckProcess();
  const std::lock_guard lock(mutex_);
  if (snapshots_.contains(sequence)) return;
  const uint32_t element = TakeElement();
  slot_->snapshots[element].store(sequence + 1, std::memory_order_seq_cst);
  Remember(sequence, element);
}

void LiveReader::Remember(uint64_t sequence, uint32_t element) {
  try {
    snapshots_.emplace(sequence, element);
  } catch (const std::bad_alloc&) {
    slot_->snapshots[element].store(0, std::memory_order_release);
    throw;
  }
}

void LiveReader::DropSnapshot(uint64_t sequence) {
  if (is_in_child()) return;
  const std::lock_guard lock(mutex_);
  const auto it = snapshots_.find(sequence);
  if (it == snapshots_.end()) return;
  slot_->snapshots[it->second].store(0, std::memory_order_release);
  try {
    free_elements_.insert(it->second);
  } catch (const std::bad_alloc&) {  // the element is not used again
  }
  snapshots_.erase(it);
}

void LiveReader::FreeElement(uint32_t element) {
  if (is_in_child()) return;
  const std::lock_guard lock(mutex_);
  slot_->snapshots[element].store(0, std::memory_order_release);
  free_elements_.insert(element);
}

// The owner stores the number in the element before it answers, while it has a snapshot of its own with that number.
Status LiveReader::AskForSnapshot(uint64_t* sequence, uint32_t* element) {
  const std::lock_guard one_at_a_time(asking_mutex_);
  {
    const std::lock_guard lock(mutex_);
    *element = TakeElement();
  }
  // An answer that comes late would store a number in the element, so the element is not used again.
  const auto failed = [this, element](const std::string& why) {
    slot_->snapshots[*element].store(0, std::memory_order_release);
    return Status::TimedOut("the process that has the database open for writing chose no snapshot: " + why);
  };
  std::string message(kLiveSnapshot);
  AppendNumber(&message, *element);
  std::unique_lock answer(answer_mutex_);
  answer_ = 0;
  asked_element_ = *element;
  if (Status status = client_->Send(message); !status.ok()) return failed(std::string(status.message()));
  const auto is_over = [this] { return answer_ != 0 || owner_is_gone(); };
  if (!answered_.wait_for(answer, std::chrono::milliseconds(kAnswerMs), is_over)) return failed("it does not answer");
  if (answer_ == 0) return failed("it has ended");
  *sequence = answer_ - 1;
  return Status::OK();
}

Status LiveReader::Await(uint64_t next) {
  CheckProcess();
  std::string message(kLiveAwait);
  AppendNumber(&message, next);
  const Status status = client_->Send(message, LocalClient::Waits::kNo);
  return status.ok() || status.IsTimedOut() ? Status::OK() : Ended();  // TimedOut: the owner has messages enough
}

void LiveReader::TellOfHiddenKeys() noexcept try {
  if (!is_in_child()) (void)client_->Send(kLiveHidden, LocalClient::Waits::kNo);
} catch (const std::bad_alloc&) {  // the next scans tell it again
}

Status LiveReader::Ended() {
  return Status::Aborted("the process that wrote the database has ended; DB::Refresh attaches to the next one");
}

// ---- Waits

// Spins for some microseconds, then sleeps: a batch may be long. A stopped owner ends its write only when it goes on.
template <class Condition>
void LiveReader::WaitUntil(const Condition& is_over) const {
  constexpr int kSpins = 200;
  constexpr auto kLongest = std::chrono::seconds(10);
  if (is_over()) return;
  SpinWait wait;
  const auto begin = Clock::now();
  for (int i = 0; !is_over(); ++i) {
    if (owner_is_gone() || has_expired()) return;
    if (i < kSpins) {
      wait.Once();
    } else if (Clock::now() - begin < kLongest) {
      usleep(50);
    } else {
      throw LiveFailure{
          Status::TimedOut("a write of the process that has the database open for writing does not end; is it stopped?")};
    }
  }
}

void LiveReader::WaitAbove(const AnnouncedNumber& number, uint64_t bound) const {
  WaitUntil([&number, bound] { return number.value() > bound; });
}

// The owner has ended. A batch that it was publishing may be visible in part until the next open, which has the whole batch.
void LiveReader::RefuseHalfBatches(uint64_t bound) const {
  if (!owner_is_gone()) return;
  ForEachAnnounced(*board_, [bound](const Announcements& thread) {
    const bool is_write = thread.in_flight.value() <= bound;  // a snapshot announces no write
    if (is_write && thread.barrier.value() <= bound)
      throw LiveFailure{Status::Expired("the process that wrote the database ended in the middle of a batch; open it again")};
  });
}

void LiveReader::WaitWriters(uint64_t sequence) const {
  ForEachAnnounced(*board_, [this, sequence](const Announcements& thread) { WaitAbove(thread.in_flight, sequence); });
  RefuseHalfBatches(sequence);
}

void LiveReader::WaitBarriers(uint64_t sequence) const {
  const uint64_t bound = std::min(sequence, board_->next_sequence.load(std::memory_order_seq_cst) - 1);
  ForEachAnnounced(*board_, [this, bound](const Announcements& thread) { WaitAbove(thread.barrier, bound); });
  WaitAbove(board_->spare_barrier, bound);
  RefuseHalfBatches(bound);
}

}  // namespace braiddb
