package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
)

// Limits of keys and values. A request beyond them is refused before it becomes a proposal.
const (
	maxKeyBytes   = 4096
	maxValueBytes = 1 << 20
)

const (
	opPut    byte = 1
	opDelete byte = 2
)

// Command is a proposal: an update of one key.
type Command struct {
	Op    byte
	Key   []byte
	Value []byte
}

func (c Command) Encode() []byte {
	encoded := make([]byte, 0, 1+binary.MaxVarintLen32+len(c.Key)+len(c.Value))
	encoded = append(encoded, c.Op)
	encoded = binary.AppendUvarint(encoded, uint64(len(c.Key)))
	encoded = append(encoded, c.Key...)
	return append(encoded, c.Value...)
}

var errBadCommand = errors.New("not a command")

func DecodeCommand(encoded []byte) (Command, error) {
	if len(encoded) < 2 || (encoded[0] != opPut && encoded[0] != opDelete) {
		return Command{}, errBadCommand
	}
	length, bytes := binary.Uvarint(encoded[1:])
	if bytes <= 0 || length > uint64(len(encoded)-1-bytes) {
		return Command{}, errBadCommand
	}
	rest := encoded[1+bytes:]
	return Command{Op: encoded[0], Key: rest[:length], Value: rest[length:]}, nil
}

func checkKey(key []byte) error {
	if len(key) == 0 {
		return errors.New("the key is empty: use /v1/kv/<key>")
	}
	if len(key) > maxKeyBytes {
		return fmt.Errorf("the key has %d bytes: at most %d are allowed", len(key), maxKeyBytes)
	}
	return nil
}

// GroupOf returns the Raft group of a key, 1 to groups.
func GroupOf(key []byte, groups uint64) uint64 {
	hash := fnv.New64a()
	hash.Write(key)
	sum := hash.Sum64()
	sum ^= sum >> 32 // FNV mixes its low bits least
	return sum%groups + 1
}
