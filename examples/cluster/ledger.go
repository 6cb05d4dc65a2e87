package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// LedgerEntry is what a load knows about a key that only one of its clients writes, with versions 1, 2, ...: the last acknowledged
// version, and the last attempted one. They differ if the outcome of the last write is unknown; the client then leaves the key.
type LedgerEntry struct {
	Key       string `json:"key"`
	Acked     uint64 `json:"acked"`
	Attempted uint64 `json:"attempted"`
	Bytes     int    `json:"bytes"`
}

// ledgerValue returns the value of a version: its number, and letters that depend on key and version.
func ledgerValue(key string, version uint64, bytes int) []byte {
	value := strconv.AppendUint(make([]byte, 0, bytes), version, 10)
	value = append(value, ':')
	state := version*0x9E3779B97F4A7C15 + uint64(len(key))
	for i := 0; i < len(key); i++ {
		state = (state ^ uint64(key[i])) * 0x100000001B3
	}
	for len(value) < bytes {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		value = append(value, 'a'+byte(state%26))
	}
	return value
}

// check returns an error if the key cannot have this value after the writes of the ledger.
func (e LedgerEntry) check(value []byte, found bool) error {
	if !found {
		if e.Acked == 0 {
			return nil
		}
		return fmt.Errorf("key %s: version %d was acknowledged, and the key is not there", e.Key, e.Acked)
	}
	text, _, _ := strings.Cut(string(value), ":")
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil || string(value) != string(ledgerValue(e.Key, version, e.Bytes)) {
		return fmt.Errorf("key %s: the value was never written: %.60q", e.Key, value)
	}
	if version != e.Acked && version != e.Attempted {
		return fmt.Errorf("key %s: has version %d; %d was acknowledged, %d attempted", e.Key, version, e.Acked, e.Attempted)
	}
	return nil
}

// appendLedger adds entries to the file, which it creates if it is not there.
func appendLedger(path string, entries []LedgerEntry) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	encoder := json.NewEncoder(out)
	for _, entry := range entries {
		if err := encoder.Encode(entry); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}

func readLedger(path string) ([]LedgerEntry, error) {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var entries []LedgerEntry
	decoder := json.NewDecoder(bufio.NewReader(file))
	for decoder.More() {
		var entry LedgerEntry
		if err := decoder.Decode(&entry); err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", path, len(entries)+1, err)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}
