#include "db_bench/result_stream.h"

#include <type_traits>

namespace braiddb::bench {

namespace {

// Reads and writes each part by the same function, so both directions have the same format.
class Writer {
 public:
  explicit Writer(std::FILE* file) : file_(file) {}
  bool ok() const { return ok_; }

  void Bytes(const void* data, size_t size) { ok_ = ok_ && (size == 0 || std::fwrite(data, size, 1, file_) == 1); }
  template <class T>
  void Vector(std::vector<T>* items) {
    uint64_t count = items->size();
    Bytes(&count, sizeof count);
  }

 private:
  std::FILE* const file_;
  bool ok_ = true;
};

class Reader {
 public:
  explicit Reader(std::FILE* file) : file_(file) {}
  bool ok() const { return ok_; }

  void Bytes(void* data, size_t size) { ok_ = ok_ && (size == 0 || std::fread(data, size, 1, file_) == 1); }
  template <class T>
  void Vector(std::vector<T>* items) {
    uint64_t count = 0;
    Bytes(&count, sizeof count);
    items->resize(ok_ ? count : 0);
  }

 private:
  std::FILE* const file_;
  bool ok_ = true;
};

template <class Stream, class T>
requires std::is_trivially_copyable_v<T>
void Pass(Stream* stream, T* value) { stream->Bytes(value, sizeof *value); }

template <class Stream>
void Pass(Stream* stream, std::string* text) {
  std::vector<char> bytes(text->begin(), text->end());
  stream->Vector(&bytes);
  stream->Bytes(bytes.data(), bytes.size());
  text->assign(bytes.begin(), bytes.end());
}

template <class Stream>
void Pass(Stream* stream, Figure* figure) {
  Pass(stream, &figure->name);
  Pass(stream, &figure->value);
}

template <class Stream, class T>
void Pass(Stream* stream, std::vector<T>* items) {
  stream->Vector(items);
  for (T& item : *items) Pass(stream, &item);
}

template <class Stream>
void Pass(Stream* stream, Sample* sample) {
  Pass(stream, &sample->seconds);
  Pass(stream, &sample->operations);
  Pass(stream, &sample->state);
}

template <class Stream>
void Pass(Stream* stream, Samples* samples) {
  Pass(stream, &samples->names);
  Pass(stream, &samples->list);
}

template <class Stream>
void Pass(Stream* stream, Measurement* measured) {
  Pass(stream, &measured->operations);
  Pass(stream, &measured->seconds);
  Pass(stream, &measured->micros_per_operation);
  Pass(stream, &measured->bytes);
  Pass(stream, &measured->found);
  Pass(stream, &measured->looked_up);
  Pass(stream, &measured->message);
  Pass(stream, &measured->latencies_ns);
  Pass(stream, &measured->cpu_seconds);
  Pass(stream, &measured->settled_seconds);
  Pass(stream, &measured->settled_cpu_seconds);
  Pass(stream, &measured->background_ops_per_second);
  Pass(stream, &measured->verified);
  Pass(stream, measured->perf.mutable_figures());
}

template <class Stream>
void Pass(Stream* stream, Result* result) {
  Pass(stream, &result->engine);
  Pass(stream, &result->round);
  Pass(stream, &result->benchmark);
  Pass(stream, &result->threads);
  Pass(stream, &result->reader_processes);
  Pass(stream, &result->measured);
  Pass(stream, &result->user_seconds);
  Pass(stream, &result->system_seconds);
  Pass(stream, &result->written);
  Pass(stream, &result->huge_page_bytes);
  Pass(stream, &result->samples);
  Pass(stream, &result->counters);
  Pass(stream, &result->demands);
  Pass(stream, &result->write_demands);
}

}  // namespace

bool WriteResult(const Result& result, std::FILE* to) {
  Result copy = result;
  Writer writer(to);
  Pass(&writer, &copy);
  return writer.ok() && std::fflush(to) == 0;
}

bool WriteStats(Stats* stats, std::FILE* to) {
  Writer writer(to);
  stats->PassFields([&writer](auto* field) { Pass(&writer, field); });
  return writer.ok() && std::fflush(to) == 0;
}

bool ReadStats(std::FILE* from, Stats* stats) {
  Reader reader(from);
  stats->PassFields([&reader](auto* field) { Pass(&reader, field); });
  return reader.ok();
}

std::optional<Result> ReadResult(std::FILE* from) {
  Result result;
  Reader reader(from);
  Pass(&reader, &result);
  if (!reader.ok()) return std::nullopt;
  return result;
}

}  // namespace braiddb::bench
