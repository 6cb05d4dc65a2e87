package main

// The smallest binding of RocksDB's C API that a state machine needs. Batches travel in RocksDB's own form, and scans fill a buffer,
// so that a batch or a block of entries costs one call into C.

// #cgo LDFLAGS: -lrocksdb
// #include <stdlib.h>
// #include <string.h>
// #include "rocksdb/c.h"
//
// static void cluster_write(rocksdb_t* db, const rocksdb_writeoptions_t* options, const char* batch, size_t length, char** error) {
//   rocksdb_writebatch_t* updates = rocksdb_writebatch_create_from(batch, length);
//   rocksdb_write(db, options, updates, error);
//   rocksdb_writebatch_destroy(updates);
// }
//
// // Appends entries to `buffer` from the iterator's position on: two lengths of 4 bytes, the key, the value. Stops before `end`, and
// // before an entry that does not fit; `needed` is then the bytes of that entry, else 0.
// static size_t cluster_fill(rocksdb_iterator_t* iterator, const char* end, size_t end_length, char* buffer, size_t capacity,
//                            size_t* needed) {
//   size_t used = 0;
//   *needed = 0;
//   for (; rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator)) {
//     size_t key_length, value_length;
//     const char* key = rocksdb_iter_key(iterator, &key_length);
//     int order = memcmp(key, end, key_length < end_length ? key_length : end_length);
//     if (order > 0 || (order == 0 && key_length >= end_length)) break;
//     const char* value = rocksdb_iter_value(iterator, &value_length);
//     if (capacity - used < 8 + key_length + value_length) {
//       *needed = 8 + key_length + value_length;
//       break;
//     }
//     unsigned lengths[2] = {(unsigned)key_length, (unsigned)value_length};
//     memcpy(buffer + used, lengths, 8);
//     memcpy(buffer + used + 8, key, key_length);
//     memcpy(buffer + used + 8 + key_length, value, value_length);
//     used += 8 + key_length + value_length;
//   }
//   return used;
// }
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"
)

var errClosed = errors.New("the engine is closed")

const scanBufferBytes = 64 << 10

// Engine is an open database. Its methods may be called by several goroutines, and return errClosed after Close.
type Engine struct {
	mu          sync.RWMutex // held for reading by each call, for writing by Close
	db          *C.rocksdb_t
	options     *C.rocksdb_options_t
	read        *C.rocksdb_readoptions_t
	write       *C.rocksdb_writeoptions_t
	writeSynced *C.rocksdb_writeoptions_t
	snapshots   map[*Snapshot]struct{}
	snapshotsMu sync.Mutex
}

// Snapshot is a state of the database. Release ends it; so does the Close of its engine.
type Snapshot struct {
	engine *Engine
	c      *C.rocksdb_snapshot_t
	read   *C.rocksdb_readoptions_t
}

func takeError(text *C.char) error {
	if text == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(text))
	return errors.New(C.GoString(text))
}

// bytesPointer is NULL for an empty slice. C only reads from it during the call.
func bytesPointer(bytes []byte) *C.char {
	if len(bytes) == 0 {
		return nil
	}
	return (*C.char)(unsafe.Pointer(&bytes[0]))
}

// OpenEngine opens the database in the directory path, and creates it if it is not there.
func OpenEngine(path string, writeBufferBytes int) (*Engine, error) {
	engine := &Engine{
		options:     C.rocksdb_options_create(),
		read:        C.rocksdb_readoptions_create(),
		write:       C.rocksdb_writeoptions_create(),
		writeSynced: C.rocksdb_writeoptions_create(),
		snapshots:   map[*Snapshot]struct{}{},
	}
	C.rocksdb_options_set_create_if_missing(engine.options, 1)
	C.rocksdb_options_set_write_buffer_size(engine.options, C.size_t(writeBufferBytes))
	C.rocksdb_writeoptions_set_sync(engine.writeSynced, 1)
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var text *C.char
	engine.db = C.rocksdb_open(engine.options, name, &text)
	if err := takeError(text); err != nil {
		engine.destroyOptions()
		return nil, fmt.Errorf("open of %s: %w", path, err)
	}
	return engine, nil
}

func (e *Engine) destroyOptions() {
	C.rocksdb_options_destroy(e.options)
	C.rocksdb_readoptions_destroy(e.read)
	C.rocksdb_writeoptions_destroy(e.write)
	C.rocksdb_writeoptions_destroy(e.writeSynced)
}

// Close releases all snapshots and closes the database.
func (e *Engine) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.db == nil {
		return
	}
	for snapshot := range e.snapshots {
		snapshot.destroy()
	}
	C.rocksdb_close(e.db)
	e.db = nil
	e.destroyOptions()
}

// Write applies the batch atomically. If synced is true, the batch is durable when Write returns.
func (e *Engine) Write(batch *Batch, synced bool) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.db == nil {
		return errClosed
	}
	options := e.write
	if synced {
		options = e.writeSynced
	}
	data := batch.data()
	var text *C.char
	C.cluster_write(e.db, options, bytesPointer(data), C.size_t(len(data)), &text)
	return takeError(text)
}

// SyncLog makes all earlier writes durable whose log the engine keeps as one sequence (RocksDB).
func (e *Engine) SyncLog() error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.db == nil {
		return errClosed
	}
	var text *C.char
	C.rocksdb_flush_wal(e.db, 1, &text)
	return takeError(text)
}

// Get returns the value of the key and whether there is one: in the snapshot, or in the newest state if it is nil.
func (e *Engine) Get(snapshot *Snapshot, key []byte) ([]byte, bool, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	options, err := e.readOptions(snapshot)
	if err != nil {
		return nil, false, err
	}
	var text *C.char
	var length C.size_t
	value := C.rocksdb_get(e.db, options, bytesPointer(key), C.size_t(len(key)), &length, &text)
	if err := takeError(text); err != nil {
		return nil, false, err
	}
	if value == nil {
		return nil, false, nil
	}
	defer C.free(unsafe.Pointer(value))
	return C.GoBytes(unsafe.Pointer(value), C.int(length)), true, nil
}

func (e *Engine) readOptions(snapshot *Snapshot) (*C.rocksdb_readoptions_t, error) {
	if e.db == nil {
		return nil, errClosed
	}
	if snapshot == nil {
		return e.read, nil
	}
	return snapshot.read, nil
}

// NewSnapshot takes a snapshot of the newest state.
func (e *Engine) NewSnapshot() (*Snapshot, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.db == nil {
		return nil, errClosed
	}
	snapshot := &Snapshot{engine: e, c: C.rocksdb_create_snapshot(e.db), read: C.rocksdb_readoptions_create()}
	C.rocksdb_readoptions_set_snapshot(snapshot.read, snapshot.c)
	e.snapshotsMu.Lock()
	e.snapshots[snapshot] = struct{}{}
	e.snapshotsMu.Unlock()
	return snapshot, nil
}

func (s *Snapshot) destroy() {
	C.rocksdb_readoptions_destroy(s.read)
	C.rocksdb_release_snapshot(s.engine.db, s.c)
}

// Release ends the snapshot.
func (s *Snapshot) Release() {
	s.engine.mu.RLock()
	defer s.engine.mu.RUnlock()
	if s.engine.db == nil {
		return
	}
	s.engine.snapshotsMu.Lock()
	_, held := s.engine.snapshots[s]
	delete(s.engine.snapshots, s)
	s.engine.snapshotsMu.Unlock()
	if held {
		s.destroy()
	}
}

// Scan calls visit with each block of entries from begin to before end, in the order of keys. EachEntry reads a block. A block is
// valid during the call only.
func (e *Engine) Scan(snapshot *Snapshot, begin, end []byte, visit func(block []byte) error) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	options, err := e.readOptions(snapshot)
	if err != nil {
		return err
	}
	iterator := C.rocksdb_create_iterator(e.db, options)
	defer C.rocksdb_iter_destroy(iterator)
	C.rocksdb_iter_seek(iterator, bytesPointer(begin), C.size_t(len(begin)))
	buffer := make([]byte, scanBufferBytes)
	for {
		var needed C.size_t
		used := C.cluster_fill(iterator, bytesPointer(end), C.size_t(len(end)), bytesPointer(buffer), C.size_t(len(buffer)), &needed)
		if used > 0 {
			if err := visit(buffer[:used]); err != nil {
				return err
			}
		}
		if needed == 0 {
			var text *C.char
			C.rocksdb_iter_get_error(iterator, &text)
			return takeError(text)
		}
		if int(needed) > len(buffer) {
			buffer = make([]byte, int(needed))
		}
	}
}

// EachEntry calls visit with the entries of a block. Key and value are parts of the block.
func EachEntry(block []byte, visit func(key, value []byte) error) error {
	for len(block) > 0 {
		if len(block) < 8 {
			return errors.New("a block of entries is cut")
		}
		keyLength := uint64(binary.LittleEndian.Uint32(block))
		valueLength := uint64(binary.LittleEndian.Uint32(block[4:]))
		if uint64(len(block)-8) < keyLength+valueLength {
			return errors.New("a block of entries is cut")
		}
		if err := visit(block[8:8+keyLength], block[8+keyLength:8+keyLength+valueLength]); err != nil {
			return err
		}
		block = block[8+keyLength+valueLength:]
	}
	return nil
}

// EngineLibrary returns the path of the loaded librocksdb.
func EngineLibrary() string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return "unknown"
	}
	for _, line := range strings.Split(string(maps), "\n") {
		if at := strings.Index(line, "/"); at >= 0 && strings.Contains(line[at:], "/librocksdb") {
			return line[at:]
		}
	}
	return "unknown"
}

// EngineName returns "braiddb" if the engine answers BraidDB's own properties, else "rocksdb".
func (e *Engine) EngineName() string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.db == nil {
		return "closed"
	}
	property := C.CString("braiddb.stats")
	defer C.free(unsafe.Pointer(property))
	text := C.rocksdb_property_value(e.db, property)
	if text == nil {
		return "rocksdb"
	}
	C.free(unsafe.Pointer(text))
	return "braiddb"
}
