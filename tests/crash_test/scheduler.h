// Scheduler: lets one thread of a process run at a time, chosen by seed, so that a run can be repeated.
//
// HOW  The program defines pthread_create, the mutex and condition variable functions, sleeps and clocks itself (scheduler.cc),
//      so that those of the C++ library and of libpmemobj come here as well. A thread that would block gives the turn to
//      another; the instrumentation of the code under test (tsan_hooks.cc) offers a switch at atomic operations. Time is a
//      counter. When all threads wait and one of them with a timeout, time goes on to that; when all wait without, it is a
//      deadlock, and the process ends.
// LIMITS  Spin locks, read-write locks and once-initializers go to the system: they are taken uncontended here, since no thread
//      loses its turn inside libpmemobj but in a function that comes here.
#pragma once

#include <cstdint>

namespace braiddb::test::scheduler {

// The calling thread, the only one of the process, and all that it and its descendants create take turns from now on.
void Start(uint64_t seed);
bool active();

// A switch is offered about once in `period` calls of Offer from now on.
void SetPeriod(uint64_t period);

// A point where another thread may go on.
void Offer();

// While one lives, Offer switches nowhere.
class Hold {
 public:
  Hold();
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
};

// The number of the calling thread, in the order of creation; 0 is the first.
uint32_t CurrentThread();

// Called before the turn goes to another thread.
void SetSwitchHook(void (*hook)());

}  // namespace braiddb::test::scheduler
