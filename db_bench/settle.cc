#include "db_bench/settle.h"

#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "db_bench/worker.h"

namespace braiddb::bench {

CpuTime CpuTimeOfProcess() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

Clock::time_point WaitUntilSettled(Engine* engine, Clock::time_point finished) {
  const Status status = engine->WaitForCompaction();
  if (!status.IsNotSupported()) {
    ExitOnError(status, "settle");
    return Clock::now();
  }
  Clock::time_point settled = finished;
  QuietWatch watch;
  watch.Add(CpuTimeOfProcess().sum());
  for (bool quiet = false; !quiet;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(QuietWatch::kPauseMs));
    quiet = watch.Add(CpuTimeOfProcess().sum());
    if (!watch.is_quiet()) settled = Clock::now();
  }
  return settled;
}

}  // namespace braiddb::bench
