#include "db/histograms.h"

#include <new>

#include "db/db_impl.h"
#include "util/format.h"
#include "util/histogram.h"

namespace braiddb {

struct Histograms::Rep {
  std::array<Histogram, kHistogramKinds> all;
};

namespace {

struct Description {
  const char* name;
  double unit;  // values in nanoseconds or bytes are divided by `unit` when they are shown
};

constexpr double kNsPerMicro = 1000;
// By HistogramKind.
constexpr Description kDescriptions[] = {
    {"db.get.micros", kNsPerMicro},
    {"db.write.micros", kNsPerMicro},
    {"db.multiget.micros", kNsPerMicro},
    {"db.seek.micros", kNsPerMicro},
    {"db.flush.micros", kNsPerMicro},
    {"compaction.times.micros", kNsPerMicro},
    {"db.write.stall", kNsPerMicro},
    {"bytes.per.read", 1},
    {"bytes.per.write", 1},
    {"bytes.per.multiget", 1},
    {"numfiles.in.singlecompaction", 1},
    {"read.num.merge_operands", 1},
};
static_assert(std::size(kDescriptions) == kHistogramKinds);

const Description& DescriptionOf(HistogramKind kind) { return kDescriptions[static_cast<size_t>(kind)]; }

}  // namespace

Histograms::Histograms() : rep_(std::make_unique<Rep>()) {}
Histograms::~Histograms() = default;
Histograms::Histograms(Histograms&&) noexcept = default;
Histograms& Histograms::operator=(Histograms&&) noexcept = default;

const char* Histograms::Name(HistogramKind kind) { return DescriptionOf(kind).name; }

bool Histograms::IsDuration(HistogramKind kind) { return DescriptionOf(kind).unit == kNsPerMicro; }

uint64_t Histograms::CountBelow(HistogramKind kind, uint64_t bound) const {
  uint64_t sum = 0;
  rep_->all[static_cast<size_t>(kind)].ForEachBucket([&](double, double upper, uint64_t count) {
    if (upper <= static_cast<double>(bound)) sum += count;
  });
  return sum;
}

HistogramData Histograms::Get(HistogramKind kind) const {
  const Histogram& histogram = rep_->all[static_cast<size_t>(kind)];
  const double unit = DescriptionOf(kind).unit;
  HistogramData data;
  data.count = histogram.count();
  data.sum = histogram.Sum() / unit;
  data.minimum = static_cast<double>(histogram.min()) / unit;
  data.maximum = static_cast<double>(histogram.max()) / unit;
  data.average = histogram.Average() / unit;
  data.standard_deviation = histogram.StandardDeviation() / unit;
  data.median = histogram.Percentile(50) / unit;
  data.percentile95 = histogram.Percentile(95) / unit;
  data.percentile99 = histogram.Percentile(99) / unit;
  return data;
}

void Histograms::Merge(const Histograms& other) {
  for (size_t i = 0; i < kHistogramKinds; ++i) rep_->all[i].Merge(other.rep_->all[i]);
}

std::string Histograms::ToString() const {
  std::string text;
  for (size_t i = 0; i < kHistogramKinds; ++i) {
    const auto kind = static_cast<HistogramKind>(i);
    const HistogramData data = Get(kind);
    text += Format("rocksdb.%s P50 : %f P95 : %f P99 : %f P100 : %f COUNT : %llu SUM : %.0f\n", Name(kind), data.median,
                   data.percentile95, data.percentile99, data.maximum, static_cast<unsigned long long>(data.count), data.sum);
  }
  return text;
}

void ThreadHistograms::AddTo(Histograms* histograms) const {
  for (size_t i = 0; i < kHistogramKinds; ++i) all_[i].AddTo(&histograms->rep_->all[i]);
}

ThreadHistograms* LazyHistograms::GetOrMake() {
  if (ThreadHistograms* const made = made_.load(std::memory_order_relaxed)) return made;
  auto* const fresh = new (std::nothrow) ThreadHistograms();
  made_.store(fresh, std::memory_order_release);
  return fresh;
}

void DBImpl::Measure(HistogramKind kind, uint64_t value) const {
  if (!measures_) return;
  ThreadState* const thread = threads_.Get();
  ThreadHistograms* const histograms = thread == nullptr ? nullptr : thread->histograms.GetOrMake();
  if (histograms != nullptr) histograms->Add(kind, value);
}

bool DBImpl::GetHistograms(Histograms* histograms) const {
  if (!measures_) return false;
  Histograms all;
  threads_.ForEach([&all](const ThreadState& thread) {
    if (const ThreadHistograms* const own = thread.histograms.Get()) own->AddTo(&all);
  });
  *histograms = std::move(all);
  return true;
}

}  // namespace braiddb
