package main

import "encoding/binary"

// Batch is a list of updates in the form of RocksDB's WriteBatch: a sequence number of 8 bytes, which the write assigns, a count of 4
// bytes, and records of a tag and of strings with their lengths.
type Batch struct {
	bytes []byte
	count uint32
}

const (
	batchHeaderBytes = 12
	tagDelete        = 0x0
	tagPut           = 0x1
	tagDeleteRange   = 0xF
)

func NewBatch() *Batch {
	return &Batch{bytes: make([]byte, batchHeaderBytes, 4096)}
}

func (b *Batch) appendString(text []byte) {
	b.bytes = binary.AppendUvarint(b.bytes, uint64(len(text)))
	b.bytes = append(b.bytes, text...)
}

func (b *Batch) Put(key, value []byte) {
	b.bytes = append(b.bytes, tagPut)
	b.appendString(key)
	b.appendString(value)
	b.count++
}

func (b *Batch) Delete(key []byte) {
	b.bytes = append(b.bytes, tagDelete)
	b.appendString(key)
	b.count++
}

// DeleteRange deletes the keys from begin to before end.
func (b *Batch) DeleteRange(begin, end []byte) {
	b.bytes = append(b.bytes, tagDeleteRange)
	b.appendString(begin)
	b.appendString(end)
	b.count++
}

func (b *Batch) Clear() {
	b.bytes = b.bytes[:batchHeaderBytes]
	b.count = 0
}

func (b *Batch) Bytes() int { return len(b.bytes) }

func (b *Batch) data() []byte {
	binary.LittleEndian.PutUint32(b.bytes[8:], b.count)
	return b.bytes
}
