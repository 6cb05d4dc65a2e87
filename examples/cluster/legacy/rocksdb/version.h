// Stands before RocksDB's rocksdb/version.h, which is C++ and which Dragonboat's plugin includes from C. RocksDB 7.8's C API.
#ifndef BRAIDDB_EXAMPLES_CLUSTER_LEGACY_ROCKSDB_VERSION_H_
#define BRAIDDB_EXAMPLES_CLUSTER_LEGACY_ROCKSDB_VERSION_H_

#define ROCKSDB_MAJOR 7
#define ROCKSDB_MINOR 8
#define ROCKSDB_PATCH 3

#endif
