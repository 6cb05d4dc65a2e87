/* A program for RocksDB: writes, reads, scans through its C API. The argument is the path of the database. */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char* error = NULL;

static void Check(const char* what) {
  if (error == NULL) return;
  fprintf(stderr, "%s: %s\n", what, error);
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_t* db = rocksdb_open(options, argv[1], &error);
  Check("open");
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  for (int i = 0; i < 1000; ++i) {
    char key[16];
    snprintf(key, sizeof(key), "%08d", i);
    rocksdb_put(db, write, key, 8, key, 8, &error);
    Check("put");
  }
  int count = 0;
  rocksdb_iterator_t* iterator = rocksdb_create_iterator(db, read);
  for (rocksdb_iter_seek_to_first(iterator); rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator)) ++count;
  rocksdb_iter_destroy(iterator);
  size_t length = 0;
  char* value = rocksdb_get(db, read, "00000042", 8, &length, &error);
  Check("get");
  if (count != 1000 || value == NULL || length != 8 || memcmp(value, "00000042", 8) != 0) return 1;
  rocksdb_free(value);
  rocksdb_close(db);
  return 0;
}
