#include "tools/store_reader.h"

namespace braiddb::tools {

Status OpenStore(const std::string& store, const std::string& path, const std::string& library,
                 std::unique_ptr<RecordReader>* reader, uint64_t* entries) {
  *entries = 0;
  if (store == "rocksdb") return OpenRocksDb(path, library, reader, entries);
  if (store == "leveldb") return OpenLevelDb(path, library, reader, entries);
  if (store == "lmdb") return OpenLmdb(path, library, reader, entries);
  return Status::InvalidArgument("--from " + store + " is none of rocksdb, leveldb, lmdb");
}

}  // namespace braiddb::tools
