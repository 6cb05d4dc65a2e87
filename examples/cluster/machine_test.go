package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	sm "github.com/lni/dragonboat/v3/statemachine"
)

func openMachine(t *testing.T, path string, group uint64) (*Machine, uint64) {
	t.Helper()
	engine, err := OpenEngine(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	machine := NewMachine(engine, group, true, new(atomic.Uint64))
	applied, err := machine.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	return machine, applied
}

func apply(t *testing.T, machine *Machine, index uint64, commands ...Command) {
	t.Helper()
	var entries []sm.Entry
	for i, command := range commands {
		entries = append(entries, sm.Entry{Index: index + uint64(i), Cmd: command.Encode()})
	}
	if _, err := machine.Update(entries); err != nil {
		t.Fatal(err)
	}
}

func valueOf(t *testing.T, machine *Machine, key string) string {
	t.Helper()
	value, err := machine.Lookup([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	if value.([]byte) == nil {
		return "none"
	}
	return string(value.([]byte))
}

func digestOf(t *testing.T, machine *Machine) Digest {
	t.Helper()
	digest, err := machine.digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func put(key, value string) Command {
	return Command{Op: opPut, Key: []byte(key), Value: []byte(value)}
}
func remove(key string) Command { return Command{Op: opDelete, Key: []byte(key)} }

func snapshotOf(t *testing.T, machine *Machine, after func()) []byte {
	t.Helper()
	state, err := machine.PrepareSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	after()
	var stream bytes.Buffer
	if err := machine.SaveSnapshot(state, &stream, nil); err != nil {
		t.Fatal(err)
	}
	return stream.Bytes()
}

func TestUpdatesAndTheirIndexSurviveAReopen(t *testing.T) {
	path := t.TempDir()
	machine, applied := openMachine(t, path, 3)
	if applied != 0 {
		t.Fatalf("a new machine has applied %d", applied)
	}
	apply(t, machine, 7, put("a", "1"), put("b", ""), put("c", "3"), remove("a"))
	machine.engine.Close()
	machine, applied = openMachine(t, path, 3)
	if applied != 10 {
		t.Fatalf("applied is %d, not 10", applied)
	}
	for key, want := range map[string]string{"a": "none", "b": "", "c": "3", "d": "none"} {
		if found := valueOf(t, machine, key); found != want {
			t.Errorf("%s is %q, not %q", key, found, want)
		}
	}
}

func TestASnapshotHasTheStateOfItsBeginAndReplacesAnother(t *testing.T) {
	from, _ := openMachine(t, t.TempDir(), 1)
	var commands []Command
	for i := 0; i < 3000; i++ {
		commands = append(commands, put(fmt.Sprintf("key %d", i), strings.Repeat("v", i%200)))
	}
	apply(t, from, 1, commands...)
	want := digestOf(t, from)
	stream := snapshotOf(t, from, func() { apply(t, from, 4000, put("later", "x"), remove("key 1")) })

	path := t.TempDir()
	to, _ := openMachine(t, path, 1)
	other := NewMachine(to.engine, 2, true, new(atomic.Uint64)) // its entries are adjacent, and stay
	apply(t, other, 1, put("of group 2", "y"))
	apply(t, to, 1, put("replaced", "z"))
	if err := to.RecoverFromSnapshot(bytes.NewReader(stream), nil); err != nil {
		t.Fatal(err)
	}
	if found := digestOf(t, to); found != want {
		t.Errorf("%+v is not %+v", found, want)
	}
	if valueOf(t, to, "replaced") != "none" || valueOf(t, other, "of group 2") != "y" {
		t.Error("the snapshot did not replace its group alone")
	}
	to.engine.Close()
	to, applied := openMachine(t, path, 1)
	if applied != 3000 || digestOf(t, to) != want {
		t.Errorf("after a reopen: %d, %+v", applied, digestOf(t, to))
	}
}

func TestADamagedSnapshotLeavesTheState(t *testing.T) {
	from, _ := openMachine(t, t.TempDir(), 1)
	var commands []Command
	for i := 0; i < 20000; i++ { // more than one batch of a receiver
		commands = append(commands, put(fmt.Sprintf("key %d", i), "0123456789"))
	}
	apply(t, from, 1, commands...)
	stream := snapshotOf(t, from, func() {})
	path := t.TempDir()
	to, _ := openMachine(t, path, 1)
	apply(t, to, 5, put("kept", "1"))
	want := digestOf(t, to)
	long := append([]byte{}, stream...)
	long[16] = 0xEE
	long[19] = 0xEE
	for name, damaged := range map[string][]byte{"empty": {}, "cut": stream[:len(stream)-20], "without its count": stream[:len(stream)-8],
		"of something else": append([]byte("another1"), stream[8:]...), "with a long key": long} {
		if err := to.RecoverFromSnapshot(bytes.NewReader(damaged), nil); err == nil {
			t.Errorf("a snapshot that is %s is accepted", name)
		}
		if digestOf(t, to) != want || valueOf(t, to, "kept") != "1" {
			t.Errorf("a snapshot that is %s changes the state", name)
		}
	}
	to.engine.Close()
	to, _ = openMachine(t, path, 1) // deletes what the cut snapshot has left
	if digestOf(t, to) != want {
		t.Error("a reopen after a cut snapshot changes the state")
	}
	if err := to.RecoverFromSnapshot(bytes.NewReader(stream), nil); err != nil || digestOf(t, to) != digestOf(t, from) {
		t.Errorf("the snapshot as a whole: %v", err)
	}
}

func TestMalformedCommandsAreSkipped(t *testing.T) {
	machine, _ := openMachine(t, t.TempDir(), 1)
	entries, err := machine.Update([]sm.Entry{{Index: 1}, {Index: 2, Cmd: []byte{9, 1, 'k'}}, {Index: 3, Cmd: []byte{opPut, 200, 'k'}},
		{Index: 4, Cmd: put("k", "v").Encode()}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint64{resultMalformed, resultMalformed, resultMalformed, resultApplied} {
		if entries[i].Result.Value != want {
			t.Errorf("entry %d has result %d, not %d", i+1, entries[i].Result.Value, want)
		}
	}
	if digest := digestOf(t, machine); digest.Applied != 4 || digest.Entries != 1 {
		t.Errorf("%+v", digest)
	}
}

func TestAClosedEngineAnswersWithAnError(t *testing.T) {
	machine, _ := openMachine(t, t.TempDir(), 1)
	snapshot, err := machine.engine.NewSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	machine.engine.Close()
	machine.engine.Close()
	snapshot.Release()
	if _, err := machine.Lookup([]byte("k")); err != errClosed {
		t.Errorf("lookup: %v", err)
	}
	if _, err := machine.PrepareSnapshot(); err != errClosed {
		t.Errorf("snapshot: %v", err)
	}
}
