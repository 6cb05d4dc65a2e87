#include "tests/crash_test/scheduler.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/crash_test/run_locks.h"

namespace braiddb::test::scheduler {
namespace {

enum class State : uint8_t { kRunnable, kMutex, kCondition, kJoin, kSleep, kFinished };

struct Task {
  uint32_t number = 0;
  State state = State::kRunnable;
  const void* waits_for = nullptr;
  uint64_t deadline = 0;  // ns of virtual time; 0: none
  bool timed_out = false;
  pthread_t thread{};
  void* (*body)(void*) = nullptr;
  void* argument = nullptr;
  int exit_rounds = 0;
  std::atomic<uint32_t> may_run{0};  // a futex
};

// Plain pointers and no destructors: threads outlive static destruction.
std::vector<Task*>* tasks = nullptr;  // that are not joined
uint32_t next_number = 1;
uint64_t random_state = 0;
uint64_t period = 200;
uint64_t until_switch = 200;
uint64_t now_ns = 0;
uint32_t holds = 0;
pthread_key_t exit_key;
void (*switch_hook)() = nullptr;
thread_local Task* self = nullptr;

uint64_t NextRandom() {
  random_state += 0x9e3779b97f4a7c15;
  uint64_t z = random_state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

void AwaitTurn(Task* task) {
  while (task->may_run.exchange(0, std::memory_order_acquire) == 0)
    syscall(SYS_futex, &task->may_run, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
}

// When everyone waits: the earliest timeout passes.
Task* WakeEarliest() {
  Task* earliest = nullptr;
  for (Task* task : *tasks) {
    if (task->state == State::kFinished || task->state == State::kRunnable || task->deadline == 0) continue;
    if (earliest == nullptr || task->deadline < earliest->deadline) earliest = task;
  }
  if (earliest == nullptr) {
    std::fprintf(stderr, "deadlock: every thread waits\n");
    std::abort();
  }
  if (now_ns < earliest->deadline) now_ns = earliest->deadline;
  earliest->timed_out = earliest->state == State::kCondition;
  earliest->state = State::kRunnable;
  return earliest;
}

Task* Choose(const Task* not_this) {
  uint32_t runnable = 0;
  for (Task* task : *tasks) {
    const bool waits = task->state == State::kCondition || task->state == State::kSleep;
    if (!waits || task->deadline == 0 || task->deadline > now_ns) continue;
    task->timed_out = task->state == State::kCondition;
    task->state = State::kRunnable;
  }
  for (const Task* task : *tasks) runnable += task->state == State::kRunnable && task != not_this;
  if (runnable == 0) return nullptr;
  uint64_t pick = NextRandom() % runnable;
  for (Task* task : *tasks) {
    if (task->state == State::kRunnable && task != not_this && pick-- == 0) return task;
  }
  return nullptr;
}

void PassTurn(Task* next) {
  if (switch_hook != nullptr) switch_hook();
  next->may_run.store(1, std::memory_order_release);
  syscall(SYS_futex, &next->may_run, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// Gives the turn to a random runnable thread; the calling one may be it.
void Switch(const Task* not_this) {
  Task* const me = self;
  Task* next = Choose(not_this);
  if (next == nullptr) next = me->state == State::kRunnable ? me : WakeEarliest();
  if (next == me) return;
  PassTurn(next);
  AwaitTurn(me);
}

void Block(State state, const void* waits_for, uint64_t deadline) {
  self->state = state;
  self->waits_for = waits_for;
  self->deadline = deadline;
  self->timed_out = false;
  Switch(nullptr);
}

void Wake(State state, const void* waits_for, bool all) {
  for (Task* task : *tasks) {
    if (task->state != state || task->waits_for != waits_for) continue;
    task->state = State::kRunnable;
    if (!all) return;
  }
}

void* RunTask(void* argument) {
  self = static_cast<Task*>(argument);
  AwaitTurn(self);
  pthread_setspecific(exit_key, self);
  return self->body(self->argument);
}

// Keys' destructors come after those of thread_local objects, and in rounds: in the second one everything of the thread is gone.
void OnThreadExit(void* argument) {
  auto* task = static_cast<Task*>(argument);
  if (task->exit_rounds++ == 0) {
    pthread_setspecific(exit_key, task);
    return;
  }
  task->state = State::kFinished;
  Wake(State::kJoin, task, true);
  Task* next = Choose(nullptr);
  PassTurn(next != nullptr ? next : WakeEarliest());
  self = nullptr;
}

uint64_t ToNs(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

void Start(uint64_t seed) {
  pthread_key_create(&exit_key, OnThreadExit);
  random_state = seed;
  tasks = new std::vector<Task*>{new Task()};
  self = tasks->front();
  self->thread = pthread_self();
}

bool active() { return self != nullptr; }
void SetPeriod(uint64_t new_period) { until_switch = period = new_period; }
uint32_t CurrentThread() { return self == nullptr ? 0 : self->number; }
void SetSwitchHook(void (*hook)()) { switch_hook = hook; }

Hold::Hold() { ++holds; }
Hold::~Hold() { --holds; }

void Offer() {
  if (self == nullptr || holds != 0 || --until_switch != 0) return;
  until_switch = 1 + NextRandom() % (2 * period);
  Switch(nullptr);
}

}  // namespace braiddb::test::scheduler

// ---- The functions that the program defines in place of the C library

namespace {

namespace scheduler = braiddb::test::scheduler;
using scheduler::self;
using scheduler::State;

template <class Function>
Function* System(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
// The C library's function of the same name.
#define SYSTEM(name)                                     \
  []() -> decltype(&::name) {                            \
    static const auto function = System(&::name, #name); \
    return function;                                     \
  }()

int LockMutex(pthread_mutex_t* mutex) {
  int error = 0;
  while ((error = SYSTEM(pthread_mutex_trylock)(mutex)) == EBUSY) scheduler::Block(State::kMutex, mutex, 0);
  return error;
}

int WaitOn(pthread_cond_t* condition, pthread_mutex_t* mutex, uint64_t deadline) {
  SYSTEM(pthread_mutex_unlock)(mutex);
  scheduler::Wake(State::kMutex, mutex, true);
  scheduler::Block(State::kCondition, condition, deadline);
  const bool timed_out = self->timed_out;
  LockMutex(mutex);
  return timed_out ? ETIMEDOUT : 0;
}

}  // namespace

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  if (self == nullptr) return SYSTEM(pthread_create)(thread, attributes, body, argument);
  auto* task = new scheduler::Task();
  task->number = scheduler::next_number++;
  task->body = body;
  task->argument = argument;
  scheduler::tasks->push_back(task);
  const int error = SYSTEM(pthread_create)(thread, attributes, scheduler::RunTask, task);
  if (error != 0) task->state = State::kFinished;
  task->thread = *thread;
  scheduler::Offer();
  return error;
}

int pthread_join(pthread_t thread, void** result) {
  if (self == nullptr) return SYSTEM(pthread_join)(thread, result);
  auto& tasks = *scheduler::tasks;
  const auto joined = std::find_if(tasks.begin(), tasks.end(),
                                   [thread](const scheduler::Task* task) { return pthread_equal(task->thread, thread) != 0; });
  if (joined == tasks.end()) return SYSTEM(pthread_join)(thread, result);
  scheduler::Task* const task = *joined;
  while (task->state != State::kFinished) scheduler::Block(State::kJoin, task, 0);
  const int error = SYSTEM(pthread_join)(thread, result);
  std::erase(tasks, task);
  delete task;
  return error;
}

// The system's takes longer, and libpmemobj makes 65528 mutexes when it opens a pool (run_locks.h).
int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) {
  if (braiddb::test::RunLocks::Contain(mutex)) {
    braiddb::test::RunLocks::LeaveOut(mutex);
    return 0;
  }
  if (attributes != nullptr) return SYSTEM(pthread_mutex_init)(mutex, attributes);
  *mutex = PTHREAD_MUTEX_INITIALIZER;
  return 0;
}
int pthread_mutex_destroy(pthread_mutex_t*) { return 0; }

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (self == nullptr) return SYSTEM(pthread_mutex_lock)(mutex);
  scheduler::Offer();
  return LockMutex(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  const int error = SYSTEM(pthread_mutex_unlock)(mutex);
  if (self != nullptr) scheduler::Wake(State::kMutex, mutex, true);
  return error;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  return self == nullptr ? SYSTEM(pthread_cond_wait)(condition, mutex) : WaitOn(condition, mutex, 0);
}
int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  return self == nullptr ? SYSTEM(pthread_cond_timedwait)(condition, mutex, until)
                         : WaitOn(condition, mutex, scheduler::ToNs(*until));
}
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  return self == nullptr ? SYSTEM(pthread_cond_clockwait)(condition, mutex, clock, until)
                         : WaitOn(condition, mutex, scheduler::ToNs(*until));
}
int pthread_cond_signal(pthread_cond_t* condition) {
  if (self == nullptr) return SYSTEM(pthread_cond_signal)(condition);
  scheduler::Wake(State::kCondition, condition, false);
  return 0;
}
int pthread_cond_broadcast(pthread_cond_t* condition) {
  if (self == nullptr) return SYSTEM(pthread_cond_broadcast)(condition);
  scheduler::Wake(State::kCondition, condition, true);
  return 0;
}

int sched_yield() {
  if (self == nullptr) return static_cast<int>(syscall(SYS_sched_yield));
  scheduler::now_ns += 1000;
  scheduler::Switch(self);
  return 0;
}
int nanosleep(const timespec* time, timespec*) {
  if (self == nullptr) return SYSTEM(nanosleep)(time, nullptr);
  scheduler::Block(State::kSleep, nullptr, scheduler::now_ns + scheduler::ToNs(*time) + 1);
  return 0;
}
int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  if (self == nullptr) return SYSTEM(clock_nanosleep)(clock, flags, time, left);
  const uint64_t from = (flags & TIMER_ABSTIME) != 0 ? 0 : scheduler::now_ns;
  scheduler::Block(State::kSleep, nullptr, from + scheduler::ToNs(*time) + 1);
  return 0;
}
int clock_gettime(clockid_t clock, timespec* time) {
  if (self == nullptr) return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  scheduler::now_ns += 1000;
  time->tv_sec = static_cast<time_t>(scheduler::now_ns / 1'000'000'000);
  time->tv_nsec = static_cast<long>(scheduler::now_ns % 1'000'000'000);
  return 0;
}

ssize_t getrandom(void* buffer, size_t bytes, unsigned flags) {
  if (self == nullptr) return syscall(SYS_getrandom, buffer, bytes, flags);
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = scheduler::NextRandom();
    std::memcpy(static_cast<char*>(buffer) + at, &word, bytes - at < 8 ? bytes - at : 8);
  }
  return static_cast<ssize_t>(bytes);
}

// Touching pages ahead of their use, which changes no byte, would only copy them.
int madvise(void* address, size_t bytes, int advice) {
  if (self != nullptr && advice == MADV_POPULATE_WRITE) return 0;
  return static_cast<int>(syscall(SYS_madvise, address, bytes, advice));
}

}  // extern "C"
