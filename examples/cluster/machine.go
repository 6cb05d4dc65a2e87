package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"sync/atomic"

	sm "github.com/lni/dragonboat/v3/statemachine"
)

// Machine is the state of one Raft group on this node, in an engine that all groups of the node share.
//
// LAYOUT  'd' group (2 bytes) epoch (4 bytes) key -> value: the entries
//
//	'm' group (2 bytes) -> epoch (4 bytes) applied (8 bytes)
//
// Numbers in keys are big-endian, so a group's entries are adjacent. The entries of the epoch that the 'm' entry names are the
// state after the Raft log's entry `applied`. Entries of other epochs are leftovers of a snapshot that replaced the state, or of one
// that did not arrive as a whole. Open deletes them.
//
// COMMIT POINT  Each Update and each received snapshot writes the 'm' entry in one batch with its last change.
type Machine struct {
	engine     *Engine
	group      uint64
	syncWrites bool
	received   *atomic.Uint64 // snapshots that replaced a state on this node

	mu      sync.RWMutex // held for writing while epoch changes
	epoch   uint32
	applied uint64
}

const (
	snapshotMagic   = "braidkv1"
	loadBatchBytes  = 256 << 10
	resultMalformed = 0
	resultApplied   = 1
)

// DigestQuery asks a machine for its Digest, FreshnessQuery for its applied index.
type (
	DigestQuery    struct{}
	FreshnessQuery struct{}
)

// Digest describes the state of a group: equal states have equal digests.
type Digest struct {
	Group   uint64 `json:"group"`
	Applied uint64 `json:"applied"`
	Entries uint64 `json:"entries"`
	Bytes   uint64 `json:"bytes"`
	SHA256  string `json:"sha256"`
}

func NewMachine(engine *Engine, group uint64, syncWrites bool, received *atomic.Uint64) *Machine {
	return &Machine{engine: engine, group: group, syncWrites: syncWrites, received: received}
}

func (m *Machine) metaKey() []byte {
	return binary.BigEndian.AppendUint16([]byte{'m'}, uint16(m.group))
}

func (m *Machine) groupPrefix(offset uint64) []byte {
	return binary.BigEndian.AppendUint16([]byte{'d'}, uint16(m.group+offset))
}

func (m *Machine) epochPrefix(epoch uint32) []byte {
	return binary.BigEndian.AppendUint32(m.groupPrefix(0), epoch)
}

// epochEnd returns the first key after those of the epoch.
func (m *Machine) epochEnd(epoch uint32) []byte {
	if epoch == ^uint32(0) {
		return m.groupPrefix(1)
	}
	return m.epochPrefix(epoch + 1)
}

func encodeMeta(epoch uint32, applied uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, epoch), applied)
}

func (m *Machine) readMeta(snapshot *Snapshot) (uint32, uint64, error) {
	value, found, err := m.engine.Get(snapshot, m.metaKey())
	if err != nil || !found {
		return 0, 0, err
	}
	if len(value) != 12 {
		return 0, 0, fmt.Errorf("group %d: the applied index is damaged: it has %d bytes, not 12", m.group, len(value))
	}
	return binary.BigEndian.Uint32(value), binary.BigEndian.Uint64(value[4:]), nil
}

// Open returns the index of the last applied entry.
func (m *Machine) Open(<-chan struct{}) (uint64, error) {
	epoch, applied, err := m.readMeta(nil)
	if err != nil {
		return 0, err
	}
	m.epoch, m.applied = epoch, applied
	if err := m.deleteOtherEpochs(); err != nil {
		return 0, err
	}
	return applied, nil
}

var errFound = errors.New("found")

func (m *Machine) deleteOtherEpochs() error {
	batch := NewBatch()
	for _, bounds := range [][2][]byte{
		{m.groupPrefix(0), m.epochPrefix(m.epoch)},
		{m.epochEnd(m.epoch), m.groupPrefix(1)},
	} {
		err := m.engine.Scan(nil, bounds[0], bounds[1], func([]byte) error { return errFound })
		if err == errFound {
			batch.DeleteRange(bounds[0], bounds[1])
		} else if err != nil {
			return err
		}
	}
	if batch.count == 0 {
		return nil
	}
	return m.engine.Write(batch, true)
}

// Update applies the entries and their index in one batch.
func (m *Machine) Update(entries []sm.Entry) ([]sm.Entry, error) {
	batch := NewBatch()
	prefix := m.epochPrefix(m.epoch)
	for i := range entries {
		command, err := DecodeCommand(entries[i].Cmd)
		if err != nil {
			entries[i].Result = sm.Result{Value: resultMalformed}
			continue
		}
		key := append(prefix[:len(prefix):len(prefix)], command.Key...)
		if command.Op == opPut {
			batch.Put(key, command.Value)
		} else {
			batch.Delete(key)
		}
		entries[i].Result = sm.Result{Value: resultApplied}
	}
	last := entries[len(entries)-1].Index
	batch.Put(m.metaKey(), encodeMeta(m.epoch, last))
	if err := m.engine.Write(batch, m.syncWrites); err != nil {
		return nil, fmt.Errorf("group %d: write of entry %d: %w", m.group, last, err)
	}
	m.mu.Lock()
	m.applied = last
	m.mu.Unlock()
	return entries, nil
}

// Lookup answers a key ([]byte) with its value ([]byte, nil if there is none), a DigestQuery, or a FreshnessQuery (uint64).
func (m *Machine) Lookup(query interface{}) (interface{}, error) {
	switch query := query.(type) {
	case []byte:
		m.mu.RLock()
		defer m.mu.RUnlock()
		value, found, err := m.engine.Get(nil, append(m.epochPrefix(m.epoch), query...))
		if err != nil || !found {
			return []byte(nil), err
		}
		if value == nil {
			value = []byte{}
		}
		return value, nil
	case FreshnessQuery:
		m.mu.RLock()
		defer m.mu.RUnlock()
		return m.applied, nil
	case DigestQuery:
		return m.digest()
	default:
		return nil, fmt.Errorf("no such query: %T", query)
	}
}

func (m *Machine) digest() (Digest, error) {
	snapshot, err := m.engine.NewSnapshot()
	if err != nil {
		return Digest{}, err
	}
	defer snapshot.Release()
	epoch, applied, err := m.readMeta(snapshot)
	if err != nil {
		return Digest{}, err
	}
	digest := Digest{Group: m.group, Applied: applied}
	sum := sha256.New()
	err = m.eachOf(snapshot, epoch, func(key, value []byte) error {
		digest.Entries++
		digest.Bytes += uint64(len(key) + len(value))
		hashEntry(sum, key, value)
		return nil
	})
	digest.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return digest, err
}

func hashEntry(sum hash.Hash, key, value []byte) {
	var lengths [8]byte
	binary.LittleEndian.PutUint32(lengths[:], uint32(len(key)))
	binary.LittleEndian.PutUint32(lengths[4:], uint32(len(value)))
	sum.Write(lengths[:])
	sum.Write(key)
	sum.Write(value)
}

// eachOf calls visit with the user's keys and values of an epoch.
func (m *Machine) eachOf(snapshot *Snapshot, epoch uint32, visit func(key, value []byte) error) error {
	prefix := m.epochPrefix(epoch)
	return m.engine.Scan(snapshot, prefix, m.epochEnd(epoch), func(block []byte) error {
		return EachEntry(block, func(key, value []byte) error { return visit(key[len(prefix):], value) })
	})
}

// Sync makes all applied entries durable.
func (m *Machine) Sync() error {
	if m.syncWrites {
		return nil // each Update was synced
	}
	return m.engine.SyncLog()
}

// PrepareSnapshot returns a snapshot of the engine. SaveSnapshot releases it.
func (m *Machine) PrepareSnapshot() (interface{}, error) {
	return m.engine.NewSnapshot()
}

// SaveSnapshot streams the state: the magic, the applied index, each entry with its two lengths, and as the end two lengths of
// 0xFFFFFFFF and the number of entries.
func (m *Machine) SaveSnapshot(state interface{}, to io.Writer, stop <-chan struct{}) error {
	snapshot := state.(*Snapshot)
	defer snapshot.Release()
	epoch, applied, err := m.readMeta(snapshot)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(to, loadBatchBytes)
	out.WriteString(snapshotMagic)
	out.Write(binary.LittleEndian.AppendUint64(nil, applied))
	count := uint64(0)
	err = m.eachOf(snapshot, epoch, func(key, value []byte) error {
		if count%1024 == 0 && isClosed(stop) {
			return sm.ErrSnapshotStopped
		}
		count++
		var lengths [8]byte
		binary.LittleEndian.PutUint32(lengths[:], uint32(len(key)))
		binary.LittleEndian.PutUint32(lengths[4:], uint32(len(value)))
		out.Write(lengths[:])
		out.Write(key)
		_, err := out.Write(value)
		return err
	})
	if err != nil {
		return err
	}
	out.Write(binary.LittleEndian.AppendUint64(nil, ^uint64(0)))
	out.Write(binary.LittleEndian.AppendUint64(nil, count))
	return out.Flush()
}

func isClosed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// RecoverFromSnapshot writes the streamed state as a new epoch, then names this epoch in one write. A crash in between leaves the
// old state.
func (m *Machine) RecoverFromSnapshot(from io.Reader, stop <-chan struct{}) error {
	next := m.epoch + 1
	batch := NewBatch()
	batch.DeleteRange(m.epochPrefix(next), m.epochEnd(next))
	applied, err := m.loadEpoch(bufio.NewReaderSize(from, loadBatchBytes), next, batch, stop)
	if err != nil {
		return err
	}
	if err := m.installEpoch(next, applied); err != nil {
		return err
	}
	m.received.Add(1)
	return m.deleteOtherEpochs()
}

// loadEpoch writes a stream's entries, durably, and returns the stream's applied index.
func (m *Machine) loadEpoch(in *bufio.Reader, epoch uint32, batch *Batch, stop <-chan struct{}) (uint64, error) {
	var head [16]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, fmt.Errorf("group %d: the snapshot is cut: %w", m.group, err)
	}
	if string(head[:8]) != snapshotMagic {
		return 0, fmt.Errorf("group %d: not a snapshot of this service", m.group)
	}
	prefix := m.epochPrefix(epoch)
	for count := uint64(0); ; count++ {
		var lengths [8]byte
		if _, err := io.ReadFull(in, lengths[:]); err != nil {
			return 0, fmt.Errorf("group %d: the snapshot is cut after %d entries: %w", m.group, count, err)
		}
		if binary.LittleEndian.Uint64(lengths[:]) == ^uint64(0) {
			if _, err := io.ReadFull(in, lengths[:]); err != nil || binary.LittleEndian.Uint64(lengths[:]) != count {
				return 0, fmt.Errorf("group %d: the snapshot does not end with its number of entries, %d", m.group, count)
			}
			return binary.LittleEndian.Uint64(head[8:]), m.engine.Write(batch, true)
		}
		keyBytes, valueBytes := binary.LittleEndian.Uint32(lengths[:]), binary.LittleEndian.Uint32(lengths[4:])
		if keyBytes > maxKeyBytes || valueBytes > maxValueBytes {
			return 0, fmt.Errorf("group %d: the snapshot is damaged: entry %d is too large", m.group, count)
		}
		entry := make([]byte, keyBytes+valueBytes)
		if _, err := io.ReadFull(in, entry); err != nil {
			return 0, fmt.Errorf("group %d: the snapshot is cut after %d entries: %w", m.group, count, err)
		}
		batch.Put(append(prefix[:len(prefix):len(prefix)], entry[:keyBytes]...), entry[keyBytes:])
		if batch.Bytes() >= loadBatchBytes {
			if isClosed(stop) {
				return 0, sm.ErrSnapshotStopped
			}
			if err := m.engine.Write(batch, true); err != nil {
				return 0, err
			}
			batch.Clear()
		}
	}
}

func (m *Machine) installEpoch(epoch uint32, applied uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	batch := NewBatch()
	batch.Put(m.metaKey(), encodeMeta(epoch, applied))
	if err := m.engine.Write(batch, true); err != nil {
		return err
	}
	m.epoch, m.applied = epoch, applied
	return nil
}

// Close leaves the engine open: other groups use it.
func (m *Machine) Close() error { return nil }
