// Epochs: what is retired is reclaimed, and never while someone can be inside; asymmetric fences.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/wait_until.h"
#include "util/asymmetric_fence.h"
#include "util/epoch.h"
#include "util/random.h"
#include "util/spin.h"

namespace braiddb {
namespace {

// Runs `body` in a thread of its own, so that it has a reader's slot of its own.
template <class Body>
void InThread(Body body) {
  std::thread(body).join();
}

// Each test with asymmetric fences, if the system has them, and without.
class EpochTest : public testing::TestWithParam<bool> {
  void SetUp() override {
    if (GetParam() && !HasAsymmetricFences()) GTEST_SKIP() << "no asymmetric fences here";
  }
};

INSTANTIATE_TEST_SUITE_P(Fences, EpochTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Asymmetric" : "Symmetric"; });

TEST_P(EpochTest, ReclaimsAtOnceWithoutReaders) {
  EpochManager epochs(GetParam());
  int reclaimed = 0;
  epochs.Retire([&] { ++reclaimed; });
  epochs.RetirePinned([&] { ++reclaimed; });
  EXPECT_EQ(reclaimed, 0);
  EXPECT_EQ(epochs.Reclaim(), 0u);
  EXPECT_EQ(reclaimed, 2);
  EXPECT_EQ(epochs.Reclaim(), 0u);
}

TEST_P(EpochTest, GuardHoldsWhatIsRetiredWhileItLives) {
  EpochManager epochs(GetParam());
  int reclaimed = 0;
  {
    const auto guard = epochs.Enter();
    InThread([&] {
      epochs.Retire([&] { ++reclaimed; });
      for (int i = 0; i < 5; ++i) EXPECT_EQ(epochs.Reclaim(), 1u);
    });
    EXPECT_EQ(reclaimed, 0);
  }
  EXPECT_EQ(epochs.Reclaim(), 0u);
  EXPECT_EQ(reclaimed, 1);
}

// A slot that was asked for once, and that the next thread with the same index enters.
TEST_P(EpochTest, ASlotIsHandedOn) {
  EpochManager epochs(GetParam());
  std::atomic<uint64_t>* slot = nullptr;
  uint32_t index = kNoThreadIndex;
  InThread([&] {
    index = ThreadIndex();
    slot = epochs.OwnSlot();
  });
  ASSERT_NE(slot, nullptr);
  std::atomic<int> reclaimed{0};
  InThread([&] {
    ASSERT_EQ(ThreadIndex(), index);
    epochs.EnterOwn(slot);
    {
      const EpochManager::Guard guard(slot);
      std::thread other([&] {
        epochs.Retire([&] { ++reclaimed; });
        for (int i = 0; i < 5; ++i) EXPECT_EQ(epochs.Reclaim(), 1u);
      });
      other.join();
      EXPECT_EQ(reclaimed, 0);
    }
    EXPECT_EQ(epochs.Reclaim(), 0u);
  });
  EXPECT_EQ(reclaimed, 1);
}

TEST_P(EpochTest, LaterGuardDoesNotHoldWhatWasRetiredBefore) {
  EpochManager epochs(GetParam());
  int before = 0, after = 0;
  epochs.Retire([&] { ++before; });
  {
    // Entered in the same epoch: held, although it need not be. After the next advance it is not.
    const auto guard = epochs.Enter();
    EXPECT_EQ(epochs.Reclaim(), 1u);
  }
  const auto guard = epochs.Enter();
  epochs.Retire([&] { ++after; });
  EXPECT_EQ(epochs.Reclaim(), 1u);
  EXPECT_EQ(before, 1);
  EXPECT_EQ(after, 0);
}

TEST_P(EpochTest, PinHoldsOnlyWhatIsRetiredPinned) {
  EpochManager epochs(GetParam());
  int plain = 0, pinned = 0;
  const uint64_t pin = epochs.Pin();
  epochs.Retire([&] { ++plain; });
  epochs.RetirePinned([&] { ++pinned; });
  EXPECT_EQ(epochs.Reclaim(), 1u);
  EXPECT_EQ(plain, 1);
  EXPECT_EQ(pinned, 0);
  InThread([&] { epochs.Unpin(pin); });
  EXPECT_EQ(epochs.Reclaim(), 0u);
  EXPECT_EQ(pinned, 1);
}

TEST_P(EpochTest, PinTakenUnderAGuardHoldsWhatTheGuardHeld) {
  EpochManager epochs(GetParam());
  int reclaimed = 0;
  uint64_t pin;
  {
    const auto guard = epochs.Enter();
    // Retired after the guard entered and before the pin, in an epoch that has passed since.
    InThread([&] {
      epochs.RetirePinned([&] { ++reclaimed; });
      epochs.Reclaim();
      epochs.Reclaim();
    });
    pin = epochs.Pin();
  }
  EXPECT_EQ(epochs.Reclaim(), 1u);
  EXPECT_EQ(reclaimed, 0);
  epochs.Unpin(pin);
  EXPECT_EQ(epochs.Reclaim(), 0u);
  EXPECT_EQ(reclaimed, 1);
}

// Some are in places of the thread's own, the others are counted.
TEST_P(EpochTest, ManyPinsUnderGuards) {
  EpochManager epochs(GetParam());
  constexpr int kPins = 40;
  std::vector<uint64_t> pins;
  std::vector<int> reclaimed;  // numbers of pins
  for (int i = 0; i < kPins; ++i) {
    {
      const auto guard = epochs.Enter();
      pins.push_back(epochs.Pin());
    }
    EXPECT_NE(pins.back(), 0u);
    epochs.RetirePinned([&reclaimed, i] { reclaimed.push_back(i); });  // held by this pin and those before
    EXPECT_EQ(epochs.Reclaim(), static_cast<size_t>(i) + 1);
  }
  for (int i = kPins - 1; i > 0; --i) {
    InThread([&] { epochs.Unpin(pins[static_cast<size_t>(i)]); });
    EXPECT_EQ(epochs.Reclaim(), static_cast<size_t>(kPins));
  }
  EXPECT_TRUE(reclaimed.empty());
  epochs.Unpin(pins[0]);
  EXPECT_EQ(epochs.Reclaim(), 0u);
  EXPECT_EQ(reclaimed.size(), static_cast<size_t>(kPins));
  // The other way round: what a pin alone held comes back with it.
  pins.clear();
  reclaimed.clear();
  for (int i = 0; i < kPins; ++i) {
    const auto guard = epochs.Enter();
    pins.push_back(epochs.Pin());
    epochs.RetirePinned([&reclaimed, i] { reclaimed.push_back(i); });
    epochs.Reclaim();
  }
  for (int i = 0; i < kPins; ++i) {
    EXPECT_EQ(reclaimed.size(), static_cast<size_t>(i));
    epochs.Unpin(pins[static_cast<size_t>(i)]);
    epochs.Reclaim();
  }
  EXPECT_EQ(reclaimed.size(), static_cast<size_t>(kPins));
}

TEST_P(EpochTest, PinsAreCounted) {
  EpochManager epochs(GetParam());
  int reclaimed = 0;
  const uint64_t a = epochs.Pin(), b = epochs.Pin();
  EXPECT_EQ(a, b);
  epochs.RetirePinned([&] { ++reclaimed; });
  epochs.Unpin(a);
  EXPECT_EQ(epochs.Reclaim(), 1u);
  const uint64_t later = epochs.Pin();
  epochs.Unpin(b);
  EXPECT_EQ(epochs.Reclaim(), 0u);
  EXPECT_EQ(reclaimed, 1);
  epochs.Unpin(later);
}

TEST_P(EpochTest, CallbacksMayUseTheManager) {
  int reclaimed = 0;
  {
    EpochManager epochs(GetParam());
    epochs.Retire([&] {
      epochs.Unpin(epochs.Pin());
      epochs.Retire([&] { ++reclaimed; });
    });
    EXPECT_EQ(epochs.Reclaim(), 1u);
  }
  EXPECT_EQ(reclaimed, 1);  // by the destructor
}

TEST_P(EpochTest, SynchronizeWaitsForReadersInside) {
  for (int round = 0; round < 200; ++round) {
    EpochManager epochs(GetParam());
    std::atomic<bool> inside{false};
    bool left = false;  // not atomic: Synchronize orders it
    std::thread reader([&] {
      const auto guard = epochs.Enter();
      inside.store(true, std::memory_order_relaxed);
      if (round % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      left = true;
    });
    while (!inside.load(std::memory_order_relaxed)) std::this_thread::yield();
    epochs.Synchronize();
    EXPECT_TRUE(left);
    reader.join();
  }
}

// Readers follow a pointer that a writer swaps; the old object is poisoned when reclaimed. What readers read is not atomic,
// so ThreadSanitizer and AddressSanitizer both see a reader that was not waited for.
TEST_P(EpochTest, ReadersNeverSeeReclaimedObjects) {
  struct Object {
    uint64_t number;
    uint64_t check;
  };
  constexpr uint64_t kSwaps = 20000;
  EpochManager epochs(GetParam());
  std::atomic<Object*> current{new Object{0, ~uint64_t{0}}};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> reclaimed{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      uint64_t last = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        const auto guard = epochs.Enter();
        const Object* object = current.load(std::memory_order_acquire);
        ASSERT_EQ(object->check, ~object->number);
        ASSERT_GE(object->number, last);
        last = object->number;
      }
    });
  }
  for (uint64_t i = 1; i <= kSwaps; ++i) {
    Object* old = current.exchange(new Object{i, ~i}, std::memory_order_acq_rel);
    epochs.Retire([old, &reclaimed] {
      old->number = old->check = 0;
      delete old;
      reclaimed.fetch_add(1, std::memory_order_relaxed);
    });
    if (i % 8 == 0) epochs.Reclaim();
  }
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(epochs.Reclaim(), 0u);
  EXPECT_EQ(reclaimed.load(), kSwaps);
  delete current.load();
}

// Pins of threads that end, more than there are places of their own, given back in any order by others, and places that are used
// again at the same time.
TEST_P(EpochTest, PinsAreHandedOn) {
  struct Held {
    const uint64_t* object;
    uint64_t pin;
  };
  constexpr size_t kHeld = 40;
  constexpr int kThreads = 60, kPinsOfEach = 50;
  EpochManager epochs(GetParam());
  std::atomic<uint64_t*> current{new uint64_t(1)};
  std::atomic<int> running{2};
  std::mutex mutex;
  std::vector<Held> held;
  const auto take = [&](size_t at) {
    const Held taken = held[at];
    held[at] = held.back();
    held.pop_back();
    return taken;
  };
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int i = 0; i < kThreads; ++i) {
        InThread([&] {
          for (int j = 0; j < kPinsOfEach; ++j) {
            Held made;
            {
              const auto guard = epochs.Enter();
              made.object = current.load(std::memory_order_acquire);
              made.pin = epochs.Pin();
            }
            Held taken = made;
            {
              std::lock_guard lock(mutex);
              held.push_back(made);
              if (held.size() > kHeld)
                taken = take(random.Uniform(held.size()));
              else
                continue;
            }
            ASSERT_NE(*taken.object, 0u);
            epochs.Unpin(taken.pin);
          }
        });
      }
      running.fetch_sub(1);
    });
  }
  const auto swap = [&] {
    uint64_t* const old = current.exchange(new uint64_t(1), std::memory_order_acq_rel);
    epochs.RetirePinned([old] {
      *old = 0;
      delete old;
    });
    return epochs.Reclaim();
  };
  while (running.load() > 0) swap();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(held.size(), kHeld);
  EXPECT_NE(swap(), 0u);
  for (const Held& each : held) {
    EXPECT_NE(*each.object, 0u);
    epochs.Unpin(each.pin);
  }
  EXPECT_EQ(epochs.Reclaim(), 0u);
  delete current.load();
}

// The same through pins: found under a guard, and read after it.
TEST_P(EpochTest, PinsHoldAcrossThreads) {
  constexpr uint64_t kSwaps = 3000;
  EpochManager epochs(GetParam());
  std::atomic<uint64_t*> current{new uint64_t(1)};
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        const uint64_t* object;
        uint64_t pin;
        {
          const auto guard = epochs.Enter();
          object = current.load(std::memory_order_acquire);
          std::this_thread::yield();
          pin = epochs.Pin();
        }
        std::this_thread::yield();
        ASSERT_NE(*object, 0u);
        epochs.Unpin(pin);
      }
    });
  }
  for (uint64_t i = 2; i <= kSwaps; ++i) {
    uint64_t* old = current.exchange(new uint64_t(i), std::memory_order_acq_rel);
    epochs.RetirePinned([old] {
      *old = 0;
      delete old;
    });
    epochs.Reclaim();
  }
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(epochs.Reclaim(), 0u);
  delete current.load();
}

// Several threads reclaim while new readers come and go, so that slots and their blocks are made during scans.
TEST_P(EpochTest, ReclaimersAndNewThreads) {
  EpochManager epochs(GetParam());
  std::atomic<uint64_t*> current{new uint64_t(1)};
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t) {
    writers.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        uint64_t* old = current.exchange(new uint64_t(1), std::memory_order_acq_rel);
        epochs.Retire([old] {
          *old = 0;
          delete old;
        });
        epochs.Reclaim();
        if (i % 64 == 0) epochs.Synchronize();
      }
    });
  }
  std::thread spawner([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      std::vector<std::thread> readers;
      for (int t = 0; t < 4; ++t) {
        readers.emplace_back([&] {
          for (int i = 0; i < 50; ++i) {
            const auto guard = epochs.Enter();
            ASSERT_EQ(*current.load(std::memory_order_acquire), 1u);
          }
        });
      }
      for (std::thread& reader : readers) reader.join();
    }
  });
  for (std::thread& writer : writers) writer.join();
  stop.store(true);
  spawner.join();
  EXPECT_EQ(epochs.Reclaim(), 0u);
  delete current.load();
}

// The pair itself: of two threads that each store and then look, one sees the other's store. Without the heavy fence neither
// does, once in some hundred rounds.
TEST(AsymmetricFence, OneSideSeesTheOther) {
  if (!HasAsymmetricFences()) GTEST_SKIP() << "no asymmetric fences here";
  constexpr uint64_t kRounds = 20000;
  std::atomic<uint64_t> x{0}, y{0};
  std::atomic<uint64_t> round{0}, finished{0};
  uint64_t seen_by_light = 0;
  int neither = 0;
  std::thread light([&] {
    for (uint64_t i = 1;; ++i) {
      for (SpinWait wait; round.load(std::memory_order_acquire) < i; wait.Once()) {
      }
      if (round.load(std::memory_order_acquire) == UINT64_MAX) return;
      x.store(i, std::memory_order_relaxed);
      AsymmetricFenceLight();
      seen_by_light = y.load(std::memory_order_relaxed);
      finished.store(i, std::memory_order_release);
    }
  });
  for (test::Rounds rounds(kRounds); rounds.Next();) {
    const uint64_t i = rounds.number();
    round.store(i, std::memory_order_release);
    for (uint64_t wait = i % 64; wait > 0; --wait) std::atomic_signal_fence(std::memory_order_seq_cst);
    y.store(i, std::memory_order_relaxed);
    AsymmetricFenceHeavy();
    const uint64_t seen_by_heavy = x.load(std::memory_order_relaxed);
    for (SpinWait wait; finished.load(std::memory_order_acquire) < i; wait.Once()) {
    }
    neither += seen_by_heavy != i && seen_by_light != i;
  }
  round.store(UINT64_MAX, std::memory_order_release);
  light.join();
  EXPECT_EQ(neither, 0);
}

}  // namespace
}  // namespace braiddb
