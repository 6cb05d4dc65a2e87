// Caches and the environment.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::Status;
using namespace braiddb::capi;

struct braiddb_memory_allocator_t {};

struct braiddb_lru_cache_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_LRU_CACHE_OPTIONS)
};

// ---- Caches

void braiddb_cache_t::Capacity::Add(braiddb_t* db) {
  std::lock_guard lock(mutex_);
  databases_.push_back(db);
}

void braiddb_cache_t::Capacity::Remove(braiddb_t* db) {
  std::lock_guard lock(mutex_);
  std::erase(databases_, db);
}

size_t braiddb_cache_t::Capacity::Usage(bool pinned) noexcept {
  uint64_t sum = 0;
  const Status ignored = Guarded([&] { return sum = Sum(pinned), Status::OK(); });
  (void)ignored;  // memory is short, and the function has no errptr
  return sum;
}

size_t braiddb_cache_t::Capacity::Sum(bool pinned) {
  std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (braiddb_t* const db : databases_) {
    const auto number_of = [db](const char* property) {
      uint64_t number = 0;
      return db->db->GetIntProperty(property, &number) ? number : 0;
    };
    const uint64_t all = number_of("braiddb.dram-bytes");
    const uint64_t droppable = number_of("braiddb.lookup-cache-bytes") + number_of("braiddb.filter-bytes");
    sum += pinned ? all - std::min(all, droppable) : all;
  }
  return sum;
}

braiddb_cache_t* braiddb_cache_create_lru(size_t capacity) {
  braiddb_cache_t* cache = nullptr;
  const Status ignored = Guarded([&] {
    cache = new braiddb_cache_t{std::make_shared<braiddb_cache_t::Capacity>(capacity)};
    return Status::OK();
  });
  (void)ignored;  // the value then stays null
  return cache;
}
braiddb_cache_t* braiddb_cache_create_lru_with_strict_capacity_limit(size_t capacity) {
  return braiddb_cache_create_lru(capacity);
}
braiddb_cache_t* braiddb_cache_create_lru_opts(braiddb_lru_cache_options_t* options) {
  return braiddb_cache_create_lru(options->capacity);
}
void braiddb_cache_destroy(braiddb_cache_t* cache) { delete cache; }
// In RocksDB this leaks the cache's memory, so that the process ends sooner. Here little memory is freed at the end.
void braiddb_cache_disown_data(braiddb_cache_t*) {}
// A database's cache never grows beyond the capacity at its open.
void braiddb_cache_set_capacity(braiddb_cache_t* cache, size_t value) { cache->rep->limit.SetCapacity(value); }
size_t braiddb_cache_get_capacity(braiddb_cache_t* cache) { return cache->rep->limit.capacity(); }
size_t braiddb_cache_get_usage(braiddb_cache_t* cache) { return cache->rep->Usage(false); }
size_t braiddb_cache_get_pinned_usage(braiddb_cache_t* cache) { return cache->rep->Usage(true); }

braiddb_lru_cache_options_t* braiddb_lru_cache_options_create() { return Make<braiddb_lru_cache_options_t>(); }
void braiddb_lru_cache_options_destroy(braiddb_lru_cache_options_t* options) { delete options; }
#define DEFINE_BOTH(set_type, get_type, name, initial)
#define DEFINE_SET(type, name, initial) BRAIDDB_C_DEFINE_SET(lru_cache_options, braiddb_lru_cache_options_t, type, type, name)
BRAIDDB_C_LRU_CACHE_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET
void braiddb_lru_cache_options_set_memory_allocator(braiddb_lru_cache_options_t*, braiddb_memory_allocator_t*) {}

braiddb_memory_allocator_t* braiddb_jemalloc_nodump_allocator_create(char** errptr) {
  SaveNotImplemented(errptr, __func__, "allocators for caches");
  return nullptr;
}
void braiddb_memory_allocator_destroy(braiddb_memory_allocator_t* allocator) { delete allocator; }

// ---- Environment: each database has its own threads, see Options::compaction_threads. These settings are only stored.

braiddb_env_t* braiddb_create_default_env() { return Make<braiddb_env_t>(); }
// Databases are files also in this environment.
braiddb_env_t* braiddb_create_mem_env() { return Make<braiddb_env_t>(); }
void braiddb_env_destroy(braiddb_env_t* env) { delete env; }

#define DEFINE_BOTH(set_type, get_type, name, initial)               \
  BRAIDDB_C_DEFINE_SET(env, braiddb_env_t, set_type, get_type, name) \
  BRAIDDB_C_DEFINE_GET(env, braiddb_env_t, get_type, name)
#define DEFINE_SET(type, name, initial)
BRAIDDB_C_ENV_THREADS(DEFINE_BOTH, DEFINE_SET)
void braiddb_env_set_background_threads(braiddb_env_t* env, int count) {
  braiddb_env_set_low_priority_background_threads(env, count);
}
int braiddb_env_get_background_threads(braiddb_env_t* env) { return braiddb_env_get_low_priority_background_threads(env); }

void braiddb_env_join_all_threads(braiddb_env_t*) {}
void braiddb_env_lower_thread_pool_io_priority(braiddb_env_t*) {}
void braiddb_env_lower_high_priority_thread_pool_io_priority(braiddb_env_t*) {}
void braiddb_env_lower_thread_pool_cpu_priority(braiddb_env_t*) {}
void braiddb_env_lower_high_priority_thread_pool_cpu_priority(braiddb_env_t*) {}

void braiddb_create_dir_if_missing(braiddb_env_t*, const char* path, char** errptr) {
  struct stat found;
  if (mkdir(path, 0755) == 0 || (errno == EEXIST && stat(path, &found) == 0 && S_ISDIR(found.st_mode))) return;
  const int error = errno;
  SaveError(errptr, Guarded([&] { return Status::IOError(std::string(path) + ": " + std::strerror(error)); }));
}

char* braiddb_env_get_test_directory(braiddb_env_t* env) {
  char* result = nullptr;
  const Status ignored = Guarded([&] {
    const char* const chosen = secure_getenv("TEST_TMPDIR");
    const std::string path =
        chosen != nullptr && *chosen != '\0' ? chosen : "/tmp/braiddbtest-" + std::to_string(static_cast<unsigned>(geteuid()));
    char* error = nullptr;
    braiddb_create_dir_if_missing(env, path.c_str(), &error);
    if (error == nullptr) result = CopyBytes(path);
    braiddb_free(error);
    return Status::OK();
  });
  (void)ignored;
  return result;
}

braiddb_envoptions_t* braiddb_envoptions_create() { return Make<braiddb_envoptions_t>(); }
void braiddb_envoptions_destroy(braiddb_envoptions_t* options) { delete options; }
