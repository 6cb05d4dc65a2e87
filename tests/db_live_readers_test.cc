// Reading a database that is open for writing: OpenForReadOnly beside the writer, in this and in other processes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/db.h"
#include "braiddb/write_batch.h"
#include "db/live_board.h"
#include "db/live_reader.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/fork_child.h"
#include "tests/support/leave_child.h"
#include "tests/support/live_readers_test.h"
#include "tests/support/merge_operators.h"
#include "tests/support/wait_until.h"
#include "util/local_client.h"
#include "util/shared_memory.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Kinds, LiveReadersTest, testing::ValuesIn(kLiveCases), [](const auto& of) { return of.param.name; });

std::map<std::string, std::string> Scan(DB* db, const ReadOptions& options = {}) {
  std::map<std::string, std::string> found;
  const auto iterator = db->NewIterator(options);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) found.emplace(iterator->key(), iterator->value());
  EXPECT_TRUE(iterator->status().ok()) << iterator->status().ToString();
  return found;
}

std::map<std::string, std::string> ScanBackward(DB* db) {
  std::map<std::string, std::string> found;
  const auto iterator = db->NewIterator({});
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) found.emplace(iterator->key(), iterator->value());
  EXPECT_TRUE(iterator->status().ok()) << iterator->status().ToString();
  return found;
}

// One thread writes and reads in turn, so a model knows the result of each read.
TEST_P(LiveReadersTest, SeesEachWriteThatWasAcknowledged) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  std::map<std::string, std::string> model;
  Random random(11);
  const auto any_key = [&random] { return NumberedKey(static_cast<int>(random.Next() % 500)); };
  struct Held {
    const Snapshot* snapshot;
    std::map<std::string, std::string> state;
  };
  std::vector<Held> held;
  for (int i = 0; i < 20000; ++i) {
    const std::string key = any_key();
    switch (random.Next() % 16) {
      case 0:
        ASSERT_OK(writer->Delete({}, key));
        model.erase(key);
        break;
      case 1: {
        WriteBatch batch;
        for (int j = 0; j < 5; ++j) {
          const std::string own = any_key();
          const std::string value = PatternedValue(i + j, 200);
          batch.Put(own, value);
          model[own] = value;
        }
        ASSERT_OK(writer->Write({}, batch));
        break;
      }
      case 2:
        ASSERT_OK(writer->Merge({}, key, "+" + std::to_string(i)));
        model[key] = AppendOperator::Apply(model.contains(key) ? model[key] : std::string(), "+" + std::to_string(i));
        break;
      case 3:
        if (random.Next() % 50 == 0) {
          const std::string end = NumberedKey(static_cast<int>(random.Next() % 500));
          ASSERT_OK(writer->DeleteRange({}, writer->DefaultColumnFamily(), std::min(key, end), std::max(key, end)));
          model.erase(model.lower_bound(std::min(key, end)), model.lower_bound(std::max(key, end)));
        }
        break;
      default:
        model[key] = PatternedValue(i, 200);
        ASSERT_OK(writer->Put({}, key, model[key]));
    }
    if (i % 4001 == 4000) {
      ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
    }
    if (i % 1777 == 1776) {
      ASSERT_OK(writer->Flush());
    }
    const std::string asked = random.Next() % 2 == 0 ? key : any_key();
    std::string value;
    const Status status = reader->Get({}, asked, &value);
    if (const auto known = model.find(asked); known == model.end()) {
      ASSERT_TRUE(status.IsNotFound()) << i << " " << status.ToString();
    } else {
      ASSERT_TRUE(status.ok()) << i << " " << asked << " " << status.ToString();
      ASSERT_EQ(value, known->second) << i;
    }
    if (i % 500 == 0) {
      ASSERT_EQ(Scan(reader.get()), model) << i;
      ASSERT_EQ(ScanBackward(reader.get()), model) << i;
      held.push_back({reader->GetSnapshot(), model});
      ASSERT_NE(held.back().snapshot, nullptr);
    }
    if (i % 700 == 0 && !held.empty()) {
      ReadOptions at;
      const size_t which = random.Next() % held.size();
      at.snapshot = held[which].snapshot;
      ASSERT_EQ(Scan(reader.get(), at), held[which].state) << i;
      reader->ReleaseSnapshot(held[which].snapshot);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  for (const Held& each : held) reader->ReleaseSnapshot(each.snapshot);
  reader.reset();
  ASSERT_OK(writer->Close());
}

// Values of a megabyte let the regions grow between any two reads, and within scans.
TEST_P(LiveReadersTest, FollowsRegionsThatGrow) {
  options_.memtable_size = 1 << 20;
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  const auto iterator = reader->NewIterator({});
  std::map<std::string, std::string> model;
  for (int i = 0; i < 60; ++i) {
    const std::string key = NumberedKey(i);
    model[key] = PatternedValue(i, 1 << 20);
    ASSERT_OK(writer->Put({}, key, model[key]));
    std::string value;
    ASSERT_OK(reader->Get({}, key, &value));
    ASSERT_TRUE(value == model[key]) << i;
    PinnableSlice pinned;
    ASSERT_OK(reader->Get({}, NumberedKey(i / 2), &pinned));
    ASSERT_TRUE(pinned.slice() == model[NumberedKey(i / 2)]);
  }
  ASSERT_TRUE(Scan(reader.get()) == model);
  iterator->SeekToFirst();  // as of before all writes
  EXPECT_FALSE(iterator->Valid());
  EXPECT_OK(iterator->status());
}

TEST_P(LiveReadersTest, AScanGoesOnWhileRegionsGrow) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  std::map<std::string, std::string> model;
  for (int i = 0; i < 500; ++i) {
    model[NumberedKey(i)] = PatternedValue(i, 100);
    ASSERT_OK(writer->Put({}, NumberedKey(i), model[NumberedKey(i)]));
  }
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  for (const bool forward : {true, false}) {
    const auto iterator = reader->NewIterator({});
    std::map<std::string, std::string> found;
    int i = 0;
    for (forward ? iterator->SeekToFirst() : iterator->SeekToLast(); iterator->Valid();
         forward ? iterator->Next() : iterator->Prev()) {
      found.emplace(iterator->key(), iterator->value());
      // Overwrites keys before and behind the position.
      for (int key = i % 10; i % 5 == 0 && key < 500; key += 50)
        ASSERT_OK(writer->Put({}, NumberedKey(key), std::string(30000, 'x')));
      ++i;
    }
    ASSERT_OK(iterator->status());
    EXPECT_TRUE(found == model) << found.size();
    for (auto& [key, value] : model) ASSERT_OK(writer->Put({}, key, value));
  }
}

// A step that is repeated since a region has grown keeps the prefix of the seek, or none.
TEST_P(LiveReadersTest, ARepeatedStepKeepsItsPrefix) {
  options_.prefix_extractor = NewFixedPrefixTransform(3);
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  for (const char* key : {"a", "aaa1", "aaa2", "bbb1", "bbb2", "c"}) ASSERT_OK(writer->Put({}, key, "1"));
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  ReadOptions options;
  options.prefix_same_as_start = true;
  int big = 0;
  const auto grow = [&] {
    uint64_t before = 0, now = 0;
    ASSERT_TRUE(writer->GetIntProperty("braiddb.pm-bytes-reserved", &before));
    do {
      ASSERT_OK(writer->Put({}, "zzz" + NumberedKey(++big), std::string(1 << 20, 'z')));
      ASSERT_TRUE(writer->GetIntProperty("braiddb.pm-bytes-reserved", &now));
    } while (now == before);
  };
  // The region grows between the step and its check.
  std::atomic<bool> grows{false};
  SyncPoints::Instance().SetCallback("LiveIterator::Move:Moved", [&](void*) {
    if (grows.exchange(false)) grow();
  });
  SyncPoints::Instance().Enable();
  for (const bool forward : {true, false}) {
    SCOPED_TRACE(forward);
    const auto iterator = reader->NewIterator(options);
    const auto step = [&](bool with_growth) {
      grows.store(with_growth);
      forward ? iterator->Next() : iterator->Prev();
    };
    const auto at = [&] { return iterator->Valid() ? std::string(iterator->key()) : iterator->status().ToString(); };
    // Its target has no prefix: no limit.
    forward ? iterator->Seek("a") : iterator->SeekForPrev("c");
    std::vector<std::string> keys = {"a", "aaa1", "aaa2", "bbb1", "bbb2", "c"};
    if (!forward) std::reverse(keys.begin(), keys.end());
    for (const std::string& key : keys) {
      EXPECT_EQ(at(), key);
      step(key == "aaa2");
    }
    forward ? iterator->Seek("aaa") : iterator->SeekForPrev("bbb9");
    EXPECT_EQ(at(), forward ? "aaa1" : "bbb2");
    step(false);
    EXPECT_EQ(at(), forward ? "aaa2" : "bbb1");
    step(true);
    EXPECT_FALSE(iterator->Valid());
    EXPECT_OK(iterator->status());
  }
  SyncPoints::Instance().Clear();
}

// What a reader cannot do says why.
TEST_P(LiveReadersTest, ReasonsAreTold) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  Status status = CreateCheckpoint(reader.get(), directory_.File("checkpoint"));
  EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
  EXPECT_NE(status.message().find("the process that has the database open for writing makes backups"), std::string_view::npos)
      << status.ToString();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  std::unique_ptr<DB> other;
  status = DB::OpenForReadOnly(options_, path_, &other);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(status.IsIOError()) << status.ToString();
  EXPECT_NE(status.message().find("open files"), std::string_view::npos) << status.ToString();
}

TEST_P(LiveReadersTest, ChangesNothing) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  EXPECT_FALSE(reader->Put({}, "a", "b").ok());
  EXPECT_FALSE(reader->Delete({}, "a").ok());
  EXPECT_FALSE(reader->DeleteRange({}, reader->DefaultColumnFamily(), "a", "b").ok());
  EXPECT_FALSE(reader->Flush().ok());
  EXPECT_FALSE(reader->CompactRange({}, nullptr, nullptr).ok());
  std::unique_ptr<ColumnFamilyHandle> handle;
  EXPECT_FALSE(reader->CreateColumnFamily(ColumnFamilyOptions(options_), "x", &handle).ok());
  ASSERT_OK(reader->Close());
  ASSERT_OK(writer->Put({}, "a", "b"));
}

// The state of the last moment stays, until another process opens the database for writing.
TEST_P(LiveReadersTest, OutlivesTheWriter) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  std::map<std::string, std::string> model;
  for (int i = 0; i < 5000; ++i) {
    model[NumberedKey(i % 1000)] = PatternedValue(i, 100);
    ASSERT_OK(writer->Put({}, NumberedKey(i % 1000), model[NumberedKey(i % 1000)]));
  }
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  const Snapshot* const snapshot = reader->GetSnapshot();
  const auto iterator = reader->NewIterator({});
  iterator->SeekToFirst();
  ASSERT_OK(writer->Put({}, "last", "words"));
  model["last"] = "words";
  ASSERT_OK(writer->Close());
  writer.reset();
  EXPECT_TRUE(Scan(reader.get()) == model);
  std::string value;
  ASSERT_OK(reader->Get({}, "last", &value));
  ReadOptions at;
  at.snapshot = snapshot;
  EXPECT_TRUE(reader->Get(at, "last", &value).IsNotFound());
  int count = 0;
  for (; iterator->Valid(); iterator->Next()) ++count;
  EXPECT_EQ(count, 1000);
  EXPECT_OK(iterator->status());

  writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  EXPECT_TRUE(HoldsExactly(writer.get(), model));
  EXPECT_TRUE(reader->Get({}, "last", &value).IsExpired());
  const auto late = reader->NewIterator({});
  late->SeekToFirst();
  EXPECT_TRUE(late->status().IsExpired()) << late->status().ToString();
  reader->ReleaseSnapshot(snapshot);
  auto next = OpenReader();
  ASSERT_NE(next, nullptr);
  EXPECT_TRUE(Scan(next.get()) == model);
}

// The writer keeps descriptors for its own work, so that readers cannot end its writes.
TEST_P(LiveReadersTest, LeaveTheWriterDescriptors) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  std::vector<std::unique_ptr<LocalClient>> clients;
  std::string hello(kLiveHello), answer;
  hello.append(reinterpret_cast<const char*>(&kLiveLayout), sizeof(kLiveLayout));
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const struct rlimit low = {256, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  // Readers in the writer's own process take descriptors, too. Those that come with the answer are closed.
  do {
    std::unique_ptr<LocalClient> client;
    ASSERT_OK(LocalClient::Connect(path_, kLiveSocket, &client));
    do {
      ASSERT_OK(client->Send(hello));
      ASSERT_OK(client->Receive(10000, &answer, nullptr));
    } while (answer == kLiveWait || answer == kLiveNews);
    clients.push_back(std::move(client));
  } while (answer == kLiveWelcome && clients.size() < 256);
  EXPECT_NE(answer.find("few open files"), std::string::npos) << answer;
  std::unique_ptr<DB> reader;
  const Status refused = DB::OpenForReadOnly(options_, path_, &reader);
  EXPECT_TRUE(refused.IsBusy()) << refused.ToString();
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_LE(next, 256 - 30);
  close(next);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  const size_t readers = clients.size() - 1;
  clients.clear();
  EXPECT_GT(readers, 16u);
  ASSERT_NE(OpenReader(), nullptr);
}

// Space that a reader holds is not used again; when the reader has left, it is.
TEST_P(LiveReadersTest, KeepsWhatItHolds) {
  options_.max_region_size = 64 << 20;
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  std::map<std::string, std::string> model;
  for (int i = 0; i < 100; ++i) {
    model[NumberedKey(i)] = PatternedValue(i, 2000);
    ASSERT_OK(writer->Put({}, NumberedKey(i), model[NumberedKey(i)]));
  }
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  const auto iterator = reader->NewIterator({});
  PinnableSlice pinned;
  ASSERT_OK(reader->Get({}, NumberedKey(3), &pinned));
  for (int i = 0; i < 10000; ++i) ASSERT_OK(writer->Put({}, NumberedKey(i % 100), PatternedValue(i, 2000)));
  ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(pinned.slice(), Slice(model[NumberedKey(3)]));
  std::map<std::string, std::string> found;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) found.emplace(iterator->key(), iterator->value());
  EXPECT_OK(iterator->status());
  EXPECT_TRUE(found == model);
}

TEST_P(LiveReadersTest, ManyReadersAtOnce) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  std::vector<std::unique_ptr<DB>> readers;
  for (int i = 0; i < 126; ++i) {
    readers.push_back(OpenReader());
    ASSERT_NE(readers.back(), nullptr);
    ASSERT_OK(writer->Put({}, NumberedKey(i), PatternedValue(i, 1000)));
  }
  std::string value;
  for (size_t reader = 0; reader < readers.size(); ++reader) {
    ASSERT_OK(readers[reader]->Get({}, NumberedKey(125), &value));
    ASSERT_EQ(value, PatternedValue(125, 1000));
  }
}

// The name of the socket file is the database's: a file of another kind stays, and the database works without readers.
TEST_P(LiveReadersTest, AForeignFileOfThatNameStays) {
  OpenOrFail(options_, path_).reset();
  std::ofstream(path_ + "/LIVE") << "mine";
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  ASSERT_OK(writer->Put({}, "a", "b"));
  std::unique_ptr<DB> reader;
  EXPECT_TRUE(DB::OpenForReadOnly(options_, path_, &reader).IsBusy());
  ASSERT_OK(writer->Close());
  writer.reset();
  EXPECT_EQ(ReadFileOrDie(path_ + "/LIVE"), "mine");
}

TEST_P(LiveReadersTest, AClosedDatabaseLeavesNoSocket) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  struct stat file {};
  ASSERT_EQ(lstat((path_ + "/LIVE").c_str(), &file), 0);
  EXPECT_TRUE(S_ISSOCK(file.st_mode));
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  ASSERT_OK(writer->Close());
  EXPECT_NE(lstat((path_ + "/LIVE").c_str(), &file), 0);
}

// Whatever a reader stores in its slot, the writer goes on, and its data stay.
TEST_P(LiveReadersTest, AHostileSlotHarmsNobody) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  std::map<std::string, std::string> model;
  auto honest = OpenReader();
  ASSERT_NE(honest, nullptr);
  std::unique_ptr<LocalClient> client;
  ASSERT_OK(LocalClient::Connect(path_, kLiveSocket, &client));
  std::string hello(kLiveHello), answer;
  hello.append(reinterpret_cast<const char*>(&kLiveLayout), sizeof(kLiveLayout));
  std::vector<int> descriptors;
  ASSERT_OK(client->Send(hello));
  ASSERT_OK(client->Receive(10000, &answer, &descriptors));
  ASSERT_EQ(answer, kLiveWelcome);
  ASSERT_EQ(descriptors.size(), 3u);
  // Board and heap cannot be mapped for writing.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[static_cast<size_t>(i)], 0), MAP_FAILED);
    close(descriptors[static_cast<size_t>(i)]);
  }
  const auto slot = SharedMemory::Attach(descriptors[2], true, sizeof(ReaderSlot));
  ASSERT_NE(slot, nullptr);
  EXPECT_NE(ftruncate(slot->fd(), 0), 0);  // the size is sealed
  Random random(9);
  for (int i = 0; i < 5000; ++i) {
    for (int j = 0; j < 200; ++j) {
      const uint64_t word = random.Uniform(sizeof(ReaderSlot) / 8) * 8;
      const uint64_t value = random.OneIn(3) ? random.Next() : random.Uniform(100000);
      memcpy(slot->base() + word, &value, sizeof(value));
    }
    const std::string key = NumberedKey(static_cast<int>(random.Uniform(300)));
    model[key] = PatternedValue(i, 300);
    ASSERT_OK(writer->Put({}, key, model[key]));
  }
  ASSERT_OK(client->Send(random.Bytes(60)));  // ends the connection
  for (int i = 0; i < 5000; ++i) {
    const std::string key = NumberedKey(static_cast<int>(random.Uniform(300)));
    model[key] = PatternedValue(i, 300);
    ASSERT_OK(writer->Put({}, key, model[key]));
  }
  ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
  EXPECT_TRUE(Scan(honest.get()) == model);
  EXPECT_TRUE(HoldsExactly(writer.get(), model));
  honest.reset();
  ASSERT_OK(writer->Close());
  writer.reset();
  writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  EXPECT_TRUE(HoldsExactly(writer.get(), model));
}

TEST_P(LiveReadersTest, ReadersAreListed) {
  std::vector<DB::LiveReaderInfo> list;
  EXPECT_TRUE(DB::ListLiveReaders(path_, &list).IsNotFound());
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  ASSERT_OK(DB::ListLiveReaders(path_, &list));
  EXPECT_TRUE(list.empty());
  ASSERT_OK(writer->Put({}, "a", "b"));
  auto reader = OpenReader();
  auto second = OpenReader();
  const Snapshot* const snapshot = reader->GetSnapshot();
  ASSERT_OK(DB::ListLiveReaders(path_, &list));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].pid, getpid());
  EXPECT_FALSE(list[0].has_expired);
  EXPECT_EQ(list[0].oldest_snapshot, snapshot->GetSequenceNumber());
  EXPECT_FALSE(list[1].oldest_snapshot.has_value());
  uint64_t number = 0;
  EXPECT_TRUE(writer->GetIntProperty("braiddb.num-live-readers", &number));
  EXPECT_EQ(number, 2u);
  reader->ReleaseSnapshot(snapshot);
  reader.reset();
  EXPECT_TRUE(WaitUntil([&] { return DB::ListLiveReaders(path_, &list).ok() && list.size() == 1; }));
}

// A writer that was killed leaves its socket. Neither that nor the removal of the database is hindered by it.
TEST_P(LiveReadersTest, ASocketOfAKilledWriterIsNoObstacle) {
  for (const bool opens_again : {true, false}) {
    const pid_t child = ForkChild();
    if (child == 0) {
      std::unique_ptr<DB> db;
      if (!DB::Open(options_, path_, &db).ok() || !db->Put({}, "a", "b").ok()) LeaveChild(1);
      LeaveChild(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    struct stat file {};
    ASSERT_EQ(lstat((path_ + "/LIVE").c_str(), &file), 0);
    if (opens_again) {
      auto reader = OpenReader();  // without a writer
      ASSERT_NE(reader, nullptr);
      std::string value;
      ASSERT_OK(reader->Get({}, "a", &value));
      reader.reset();
      auto writer = OpenOrFail(options_, path_);
      ASSERT_NE(writer, nullptr);
      ASSERT_NE(OpenReader(), nullptr);
    } else {
      ASSERT_OK(DB::Destroy(options_, path_));
      EXPECT_NE(lstat(path_.c_str(), &file), 0);
    }
  }
}

// If a change cannot be published, readers get an error. Later readers see everything.
TEST_P(LiveReadersTest, APublicationThatFailsIsMadeUpFor) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  ASSERT_OK(writer->Put({}, "a", "old"));
  ASSERT_OK(writer->Put({}, "z", "other"));
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  std::string value;
  ASSERT_OK(reader->Get({}, "a", &value));
  for (const bool ranges : {true, false}) {
    SyncPoints::Instance().SetCallback("DBImpl::PublishBlock", [](void* fails) { *static_cast<bool*>(fails) = true; });
    SyncPoints::Instance().Enable();
    if (ranges) {
      ASSERT_OK(writer->DeleteRange({}, writer->DefaultColumnFamily(), "a", "b"));
    } else {
      ASSERT_OK(writer->Put({}, "y", "1"));
      ASSERT_OK(writer->Flush());
    }
    SyncPoints::Instance().Clear();
    EXPECT_TRUE(reader->Get({}, "z", &value).IsExpired());
    for (const bool flushed : {false, true}) {
      if (flushed) {
        ASSERT_OK(writer->Flush());
      }
      reader = OpenReader();
      ASSERT_NE(reader, nullptr);
      EXPECT_TRUE(reader->Get({}, "a", &value).IsNotFound());
      ASSERT_OK(reader->Get({}, "z", &value));
      EXPECT_EQ(value, "other");
    }
  }
}

// Another process opens the database for writing while a reader opens it.
TEST_P(LiveReadersTest, AWriterThatIsReplacedDuringTheOpenIsNoticed) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  ASSERT_OK(writer->Put({}, "a", "1"));
  int times = 0;
  SyncPoints::Instance().SetCallback("DBImpl::AttachToOwner:Attached", [&](void*) {
    if (++times > 1) return;
    ASSERT_OK(writer->Close());
    writer.reset();
    writer = OpenOrFail(options_, path_);
    ASSERT_OK(writer->Put({}, "a", "2"));
  });
  SyncPoints::Instance().Enable();
  auto reader = OpenReader();
  SyncPoints::Instance().Clear();
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(times, 2);
  std::string value;
  ASSERT_OK(reader->Get({}, "a", &value));
  EXPECT_EQ(value, "2");
  ASSERT_OK(writer->Put({}, "a", "3"));
  ASSERT_OK(reader->Get({}, "a", &value));
  EXPECT_EQ(value, "3");
}

TEST_P(LiveReadersTest, TooManySnapshotsAreAnError) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  std::vector<const Snapshot*> snapshots;
  for (uint32_t i = 0; i < ReaderSlot::kMaxSnapshots; ++i) {
    ASSERT_OK(writer->Put({}, "a", std::to_string(i)));
    snapshots.push_back(reader->GetSnapshot());
    ASSERT_NE(snapshots.back(), nullptr) << i;
  }
  ASSERT_OK(writer->Put({}, "a", "last"));
  EXPECT_EQ(reader->GetSnapshot(), nullptr);
  EXPECT_TRUE(reader->NewIterator({})->status().IsMemoryLimit());
  ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
  for (uint32_t i = 0; i < ReaderSlot::kMaxSnapshots; ++i) {
    ReadOptions at;
    at.snapshot = snapshots[i];
    std::string value;
    ASSERT_OK(reader->Get(at, "a", &value));
    ASSERT_EQ(value, std::to_string(i));
    reader->ReleaseSnapshot(snapshots[i]);
  }
  const auto iterator = reader->NewIterator({});
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->value(), "last");
}

// A child of the reader's or the writer's process does not touch what they share.
TEST_P(LiveReadersTest, ChildrenTouchNothing) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  ASSERT_OK(writer->Put({}, "a", "1"));
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  auto iterator = reader->NewIterator({});
  const pid_t child = ForkChild();
  if (child == 0) {
    std::string value;
    bool is_refused = !reader->Get({}, "a", &value).ok();
    for (const auto& move : {&Iterator::SeekToFirst, &Iterator::SeekToLast}) {
      (iterator.get()->*move)();
      is_refused &= !iterator->Valid() && !iterator->status().ok();
    }
    iterator->Seek("a");
    is_refused &= !iterator->Valid() && !iterator->status().ok();
    iterator.reset();
    reader.reset();
    auto own = writer->NewIterator({});  // announces numbers, and ends without taking them back
    const Snapshot* const snapshot = writer->GetSnapshot();
    LeaveChild(is_refused && snapshot != nullptr ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_OK(writer->Put({}, "a", "2"));
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->value(), "1");
  std::string value;
  ASSERT_OK(reader->Get({}, "a", &value));
  EXPECT_EQ(value, "2");
}

// A sweep has removed the keys of a deleted range, and the writer has forgotten the range. A reader's thread that still has the
// view of before also has the range.
TEST_P(LiveReadersTest, AForgottenRangeStaysWithItsView) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  for (int i = 0; i < 100; ++i) ASSERT_OK(writer->Put({}, NumberedKey(i), "1"));
  ASSERT_OK(writer->Flush());
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  const auto ranges = [](DB* db) {
    uint64_t number = 0;
    EXPECT_TRUE(db->GetIntProperty("braiddb.num-range-tombstones", &number));
    return number;
  };
  ASSERT_OK(writer->DeleteRange({}, writer->DefaultColumnFamily(), NumberedKey(0), NumberedKey(100)));
  std::string value;
  ASSERT_TRUE(reader->Get({}, NumberedKey(5), &value).IsNotFound());
  ASSERT_EQ(ranges(reader.get()), 1u);
  // 1: the first thread has followed, and waits before it reads  2: the range is forgotten; another thread follows, and waits
  // between its two steps  3: the first thread has read. If that meets the range, it waits for the second thread, which goes on
  // after a while.
  std::atomic<int> stage{0};
  std::atomic<bool> is_forgotten{false};
  SyncPoints::Instance().SetCallback("LiveDB::ReadValidly:Followed", [&](void*) {
    int expected = 0;
    if (!stage.compare_exchange_strong(expected, 1)) return;
    EXPECT_TRUE(WaitUntil([&] { return stage.load() == 2; }));
  });
  SyncPoints::Instance().SetCallback("DBImpl::FollowChanges:Between", [&](void*) {
    int expected = 1;
    if (!is_forgotten.load() || !stage.compare_exchange_strong(expected, 2)) return;
    for (int i = 0; i < 100 && stage.load() != 3; ++i) usleep(1000);
  });
  SyncPoints::Instance().Enable();
  std::thread first([&] {
    std::string read;
    EXPECT_TRUE(reader->Get({}, NumberedKey(5), &read).IsNotFound());
    stage.store(3);
  });
  EXPECT_TRUE(WaitUntil([&] { return stage.load() == 1; }));
  ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
  EXPECT_TRUE(WaitUntil([&] { return ranges(writer.get()) == 0; }));
  is_forgotten.store(true);
  ASSERT_OK(writer->Put({}, "z", "1"));
  ASSERT_OK(writer->Flush());  // news, if the follower's thread has handled the others
  EXPECT_TRUE(reader->Get({}, NumberedKey(6), &value).IsNotFound());
  first.join();
  SyncPoints::Instance().Clear();
}

// A reader looks keys up in the writer's lookup cache, which grows and shrinks while views of the reader name older tables.
TEST_P(LiveReadersTest, GetsUseTheWritersLookupCache) {
  options_.lookup_cache_size = 1 << 20;
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  constexpr int kKeys = 20000;
  const auto value_of = [](int i, int round) { return std::to_string(round) + PatternedValue(i, 20); };
  for (int i = 0; i < 100; ++i) ASSERT_OK(writer->Put({}, NumberedKey(i), value_of(i, 0)));
  std::atomic<uint64_t> hits{0};
  SyncPoints::Instance().SetCallback("LookupCache::ForeignTable::Find:Hit", [&](void*) { ++hits; });
  SyncPoints::Instance().Enable();
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  const auto reads = [&](int keys, int round) {
    hits.store(0);
    std::string value;
    for (int i = 0; i < keys; ++i) {
      const Status status = reader->Get({}, NumberedKey(i), &value);
      EXPECT_TRUE(status.ok()) << i << " " << status.ToString();
      if (value != value_of(i, round)) ADD_FAILURE() << i << ": " << value;
    }
    return hits.load();
  };
  EXPECT_TRUE(WaitUntil([&] { return reads(100, 0) > 50; })) << "the table moves to shared memory in the background";
  // An iterator keeps the view with the small table. The writer's cache grows nevertheless.
  const auto iterator = reader->NewIterator({});
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(writer->Put({}, NumberedKey(i), value_of(i, 1)));
    if (i % 100 == 0) {
      std::string value;
      ASSERT_OK(reader->Get({}, NumberedKey(i), &value));
      ASSERT_EQ(value, value_of(i, 1));
    }
  }
  EXPECT_TRUE(WaitUntil([&] { return IntProperty(writer.get(), "braiddb.lookup-cache-bytes") == 1 << 20; }));
  EXPECT_TRUE(WaitUntil([&] { return reads(kKeys, 1) > kKeys / 2; }));
  // Several keys of one state; deletions.
  std::vector<std::string> values;
  auto statuses = reader->MultiGet({}, {NumberedKey(1), "none", NumberedKey(2)}, &values);
  EXPECT_EQ(values[0] + values[2], value_of(1, 1) + value_of(2, 1));
  EXPECT_TRUE(statuses[1].IsNotFound());
  const Snapshot* const snapshot = reader->GetSnapshot();
  ASSERT_OK(writer->Delete({}, NumberedKey(1)));
  ASSERT_OK(writer->DeleteRange({}, writer->DefaultColumnFamily(), NumberedKey(2), NumberedKey(4)));
  ASSERT_OK(writer->Merge({}, NumberedKey(5), "more"));
  std::string value;
  for (const int i : {1, 2, 3}) EXPECT_TRUE(reader->Get({}, NumberedKey(i), &value).IsNotFound()) << i;
  ASSERT_OK(reader->Get({}, NumberedKey(5), &value));
  EXPECT_EQ(value, value_of(5, 1) + "more");
  ReadOptions before;
  before.snapshot = snapshot;
  for (const int i : {1, 2, 3, 5}) {
    ASSERT_OK(reader->Get(before, NumberedKey(i), &value));
    EXPECT_EQ(value, value_of(i, 1));
  }
  reader->ReleaseSnapshot(snapshot);
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->value(), value_of(0, 0));
  // The reader keeps the cache of a writer that has closed.
  ASSERT_OK(writer->Close());
  writer.reset();
  hits.store(0);
  ASSERT_OK(reader->Get({}, NumberedKey(100), &value));
  EXPECT_EQ(value, value_of(100, 1));
  SyncPoints::Instance().Clear();
}

// What readers hold at the writer's close is found by the next open.
TEST_P(LiveReadersTest, HeldSpaceComesBackWithTheNextOpen) {
  for (const bool beside_reader : {false, true}) {
    auto writer = OpenOrFail(options_, path_);
    ASSERT_NE(writer, nullptr);
    std::unique_ptr<DB> reader;
    std::unique_ptr<Iterator> iterator;
    if (beside_reader) {
      ASSERT_OK(writer->Put({}, "first", "1"));
      reader = OpenReader();
      ASSERT_NE(reader, nullptr);
      iterator = reader->NewIterator({});
    }
    for (int i = 0; i < 10000; ++i) ASSERT_OK(writer->Put({}, NumberedKey(i % 100), PatternedValue(i, 1000)));
    ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
    uint64_t bytes = 0;
    ASSERT_TRUE(writer->GetIntProperty("braiddb.pm-bytes-in-segments", &bytes));
    if (beside_reader) {
      EXPECT_GT(bytes, 8u << 20);  // the iterator holds it
    }
    ASSERT_OK(writer->Close());
    writer.reset();
    iterator.reset();
    reader.reset();
    writer = OpenOrFail(options_, path_);
    ASSERT_NE(writer, nullptr);
    // The compaction thread counts segments of earlier sessions when it has nothing else to do.
    EXPECT_TRUE(WaitUntil([&] {
      EXPECT_OK(writer->CompactRange({}, nullptr, nullptr));
      return writer->GetIntProperty("braiddb.pm-bytes-in-segments", &bytes) && bytes < 4u << 20;
    })) << bytes;
    ASSERT_OK(writer->Close());
    writer.reset();
  }
}

}  // namespace
}  // namespace braiddb::test
