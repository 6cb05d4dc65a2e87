package main

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

func TestALedgerEntryAcceptsItsLastVersions(t *testing.T) {
	entry := LedgerEntry{Key: "k", Acked: 3, Attempted: 4, Bytes: 40}
	for version, good := range map[uint64]bool{2: false, 3: true, 4: true, 5: false} {
		if err := entry.check(ledgerValue("k", version, 40), true); (err == nil) != good {
			t.Errorf("version %d: %v", version, err)
		}
	}
	if entry.check(nil, false) == nil {
		t.Error("a lost key is accepted")
	}
	if entry.check(ledgerValue("other", 3, 40), true) == nil || entry.check([]byte("3:"), true) == nil {
		t.Error("a value of another key, or a cut one, is accepted")
	}
	if err := (LedgerEntry{Key: "k", Attempted: 1, Bytes: 40}).check(nil, false); err != nil {
		t.Errorf("a write without an answer need not be there: %v", err)
	}
}

func operation(client int, op byte, value string, found bool, call, end int64) porcupine.Operation {
	in := registerInput{op: op, key: "k", value: value}
	var out registerOutput
	if op == opGet {
		in.value, out = "", registerOutput{value: value, found: found}
	}
	return porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end}
}

func TestHistoriesAreJudged(t *testing.T) {
	for _, test := range []struct {
		name, verdict string
		history       []porcupine.Operation
	}{
		{"a read sees the last write", "linearizable", []porcupine.Operation{
			operation(1, opPut, "a", false, 0, 10), operation(2, opGet, "a", true, 11, 12)}},
		{"a read is stale", "not linearizable", []porcupine.Operation{
			operation(1, opPut, "a", false, 0, 10), operation(2, opGet, "", false, 11, 12)}},
		{"a write is lost", "not linearizable", []porcupine.Operation{
			operation(1, opPut, "a", false, 0, 10), operation(2, opPut, "b", false, 11, 12), operation(1, opGet, "a", true, 13, 14)}},
		{"a write without an answer takes effect late", "linearizable", []porcupine.Operation{
			operation(1, opPut, "a", false, 0, neverReturned), operation(2, opGet, "", false, 1, 2), operation(2, opGet, "a", true, 3, 4)}},
		{"a write without an answer comes and goes", "not linearizable", []porcupine.Operation{
			operation(1, opPut, "a", false, 0, neverReturned), operation(2, opGet, "a", true, 1, 2), operation(2, opGet, "", false, 3, 4)}},
		{"a deletion", "linearizable", []porcupine.Operation{
			operation(1, opPut, "a", false, 0, 1), operation(1, opDelete, "", false, 2, 3), operation(2, opGet, "", false, 4, 5)}},
	} {
		if report := checkHistory(test.history, time.Second); report.Verdict != test.verdict {
			t.Errorf("%s: %s, not %s", test.name, report.Verdict, test.verdict)
		}
	}
}

func TestKeysAreSpreadOverTheGroups(t *testing.T) {
	counts := map[uint64]int{}
	for i := 0; i < 16000; i++ {
		counts[GroupOf([]byte{byte(i), byte(i >> 8), 'k'}, 16)]++
	}
	for group := uint64(1); group <= 16; group++ {
		if counts[group] < 700 || counts[group] > 1300 {
			t.Errorf("group %d has %d of 16000 keys", group, counts[group])
		}
	}
}
