// Readers of databases of RocksDB, LevelDB and LMDB, by the libraries of these stores.
#pragma once

#include <memory>
#include <string>

#include "tools/record.h"

namespace braiddb::tools {

// Opens the database in `path` by the library of `store`: rocksdb, leveldb or lmdb. Records name their column family, or LMDB's
// named database; "default" is the one without a name. *entries is an estimate of their number, 0 if the store has none.
//   library          path of the shared library; empty: the system's, under the names of known versions
//   InvalidArgument  there is no such store
//   NotSupported     the library is not installed or lacks a function
//   IOError          the library cannot open or read the database; the message is the library's
// RocksDB and LMDB open the database for reading only. LevelDB has no such open: it replays its log.
Status OpenStore(const std::string& store, const std::string& path, const std::string& library,
                 std::unique_ptr<RecordReader>* reader, uint64_t* entries);

// One for each store.
Status OpenRocksDb(const std::string& path, const std::string& library, std::unique_ptr<RecordReader>* reader, uint64_t* entries);
Status OpenLevelDb(const std::string& path, const std::string& library, std::unique_ptr<RecordReader>* reader, uint64_t* entries);
Status OpenLmdb(const std::string& path, const std::string& library, std::unique_ptr<RecordReader>* reader, uint64_t* entries);

}  // namespace braiddb::tools
