/* The C API in one program: opens a database, writes a batch, reads it back in three ways, and says what it found.
   usage: c_example DIRECTORY      (the directory becomes a database; it is removed at the end) */
#include <braiddb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void Check(char* error, const char* what) {
  if (error == NULL) return;
  fprintf(stderr, "%s: %s\n", what, error);
  braiddb_free(error);
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: c_example DIRECTORY\n");
    return 2;
  }
  const char* path = argv[1];
  char* error = NULL;

  /* Options: RocksDB's under their names, and BraidDB's own. */
  braiddb_options_t* options = braiddb_options_create();
  braiddb_options_set_create_if_missing(options, 1);
  braiddb_options_set_l1_kind(options, braiddb_l1_nv_tree);
  braiddb_options_set_dram_budget(options, (uint64_t)128 << 20);

  braiddb_t* db = braiddb_open(options, path, &error);
  Check(error, "open");

  /* A batch is there whole, or not at all. */
  braiddb_writeoptions_t* write_options = braiddb_writeoptions_create();
  braiddb_writebatch_t* batch = braiddb_writebatch_create();
  braiddb_writebatch_put(batch, "braid", 5, "bottom layer through all regions", 32);
  braiddb_writebatch_put(batch, "zipper", 6, "merge without copying", 21);
  braiddb_writebatch_delete(batch, "copy", 4);
  braiddb_write(db, write_options, batch, &error);
  Check(error, "write");
  braiddb_writebatch_destroy(batch);

  /* A value of one's own. */
  braiddb_readoptions_t* read_options = braiddb_readoptions_create();
  size_t length = 0;
  char* value = braiddb_get(db, read_options, "zipper", 6, &length, &error);
  Check(error, "get");
  if (value == NULL || length != 21) return 1;
  printf("zipper: %.*s\n", (int)length, value);
  braiddb_free(value);

  /* A value that is not copied. */
  braiddb_pinnableslice_t* pinned = braiddb_get_pinned(db, read_options, "braid", 5, &error);
  Check(error, "get_pinned");
  const char* bytes = braiddb_pinnableslice_value(pinned, &length);
  if (bytes == NULL || memcmp(bytes, "bottom", 6) != 0) return 1;
  printf("braid: %.*s\n", (int)length, bytes);
  braiddb_pinnableslice_destroy(pinned);

  /* All keys in order. */
  int count = 0;
  braiddb_iterator_t* iterator = braiddb_create_iterator(db, read_options);
  for (braiddb_iter_seek_to_first(iterator); braiddb_iter_valid(iterator); braiddb_iter_next(iterator)) {
    const char* key = braiddb_iter_key(iterator, &length);
    printf("key %d: %.*s\n", ++count, (int)length, key);
  }
  braiddb_iter_get_error(iterator, &error);
  Check(error, "iterator");
  braiddb_iter_destroy(iterator);

  braiddb_close_database(db, &error);
  Check(error, "close");
  braiddb_destroy_db(options, path, &error);
  Check(error, "destroy");
  braiddb_readoptions_destroy(read_options);
  braiddb_writeoptions_destroy(write_options);
  braiddb_options_destroy(options);
  return count == 2 ? 0 : 1;
}
