package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lni/dragonboat/v3"
	"github.com/lni/dragonboat/v3/config"
	"github.com/lni/dragonboat/v3/logger"
	"github.com/lni/dragonboat/v3/plugin/rocksdb"
	sm "github.com/lni/dragonboat/v3/statemachine"
)

// NodeOptions are the flags of the verb node.
type NodeOptions struct {
	id              uint64
	raft            string // addresses of all nodes, with commas; the id-th is this node's
	http            string
	data            string
	groups          uint64
	logShards       uint64
	logBufferBytes  uint64
	dataBufferBytes uint64
	snapshotEntries uint64
	keepEntries     uint64
	rttMs           uint64
	syncApplies     string
	timeout         time.Duration
}

func parseNodeOptions(arguments []string) (NodeOptions, []string, error) {
	var o NodeOptions
	flags := flag.NewFlagSet("node", flag.ContinueOnError)
	flags.Uint64Var(&o.id, "id", 0, "this node's place in --raft, from 1")
	flags.StringVar(&o.raft, "raft", "", "host:port of each node's Raft transport, with commas; the same list on all nodes")
	flags.StringVar(&o.http, "http", "127.0.0.1:8080", "host:port that clients reach")
	flags.StringVar(&o.data, "data", "", "directory of this node's data")
	flags.Uint64Var(&o.groups, "groups", 16, "Raft groups; keys are spread over them by hash; the same number for the life of the cluster")
	flags.Uint64Var(&o.logShards, "log-shards", 4, "databases of the Raft log; the same number for the life of the node")
	flags.Uint64Var(&o.logBufferBytes, "log-buffer", 4<<20, "write buffer of each database of the Raft log, in bytes")
	flags.Uint64Var(&o.dataBufferBytes, "data-buffer", 16<<20, "write buffer of the database of the groups' states, in bytes")
	flags.Uint64Var(&o.snapshotEntries, "snapshot-entries", 50000, "entries of a group between two snapshots")
	flags.Uint64Var(&o.keepEntries, "keep-entries", 5000, "entries of a group that a snapshot leaves in the log, for nodes that lag")
	flags.Uint64Var(&o.rttMs, "rtt", 20, "Raft's tick in milliseconds; leaders send heartbeats each 2, elections begin after 25")
	flags.StringVar(&o.syncApplies, "sync-applies", "auto",
		"sync each write to the groups' states: yes, no, or auto (BraidDB yes, RocksDB no: its log loses writes in order only)")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Second, "a request without an answer for so long fails")
	if err := flags.Parse(arguments); err != nil {
		return o, nil, err
	}
	members := strings.Split(o.raft, ",")
	switch {
	case flags.NArg() > 0:
		return o, nil, fmt.Errorf("%q is not a flag", flags.Arg(0))
	case o.id == 0 || o.id > uint64(len(members)):
		return o, nil, fmt.Errorf("--id is %d: with %d addresses in --raft it is 1 to %d", o.id, len(members), len(members))
	case o.data == "":
		return o, nil, errors.New("--data is missing: name a directory")
	case o.groups == 0 || o.groups > 4096:
		return o, nil, fmt.Errorf("--groups is %d: 1 to 4096 are allowed", o.groups)
	case o.logShards == 0 || o.logShards > 16:
		return o, nil, fmt.Errorf("--log-shards is %d: 1 to 16 are allowed", o.logShards)
	case o.logBufferBytes < 1<<20 || o.dataBufferBytes < 1<<20:
		return o, nil, errors.New("--log-buffer and --data-buffer are at least 1048576 bytes")
	case o.snapshotEntries == 0 || o.keepEntries == 0:
		return o, nil, errors.New("--snapshot-entries and --keep-entries are at least 1")
	case o.rttMs == 0:
		return o, nil, errors.New("--rtt is at least 1")
	case o.syncApplies != "yes" && o.syncApplies != "no" && o.syncApplies != "auto":
		return o, nil, fmt.Errorf("--sync-applies is %q: yes, no or auto", o.syncApplies)
	}
	for _, member := range members {
		if !config.IsValidAddress(member) {
			return o, nil, fmt.Errorf("--raft: %q is not host:port", member)
		}
	}
	return o, members, nil
}

// Node is one process of the cluster: an engine, the NodeHost, and a member of each group.
type Node struct {
	options NodeOptions
	members []string
	engine  *Engine
	host    *dragonboat.NodeHost
	ready   atomic.Bool // true after the start of all groups

	snapshotsReceived atomic.Uint64
}

const layoutFile = "CLUSTER"

// checkLayout refuses a directory that was created with other numbers, which would hide keys or log entries.
func checkLayout(o NodeOptions) error {
	if err := os.MkdirAll(o.data, 0o755); err != nil {
		return err
	}
	path := filepath.Join(o.data, layoutFile)
	wanted := fmt.Sprintf("node %d of %s, %d groups, %d log shards\n", o.id, o.raft, o.groups, o.logShards)
	found, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return writeDurably(path, []byte(wanted))
	}
	if err != nil {
		return err
	}
	if string(found) != wanted {
		return fmt.Errorf("%s is of %q and cannot be opened as %q: use its flags, or another --data",
			o.data, strings.TrimSpace(string(found)), strings.TrimSpace(wanted))
	}
	return nil
}

// writeDurably creates the file with all of its content, or not at all.
func writeDurably(path string, content []byte) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func (n *Node) start() error {
	if err := checkLayout(n.options); err != nil {
		return err
	}
	var err error
	if n.engine, err = OpenEngine(filepath.Join(n.options.data, "state"), int(n.options.dataBufferBytes)); err != nil {
		return err
	}
	logDB := config.GetTinyMemLogDBConfig()
	logDB.Shards = n.options.logShards
	logDB.KVWriteBufferSize = n.options.logBufferBytes
	expert := config.GetDefaultExpertConfig()
	expert.LogDB = logDB
	expert.LogDBFactory = &rocksdb.Factory{}
	n.host, err = dragonboat.NewNodeHost(config.NodeHostConfig{
		NodeHostDir:    filepath.Join(n.options.data, "raft"),
		RTTMillisecond: n.options.rttMs,
		RaftAddress:    n.members[n.options.id-1],
		Expert:         expert,
	})
	if err != nil {
		return fmt.Errorf("node %d: %w", n.options.id, err)
	}
	return n.startGroups()
}

func (n *Node) startGroups() error {
	members := map[uint64]dragonboat.Target{}
	for i, member := range n.members {
		members[uint64(i+1)] = member
	}
	syncWrites := n.options.syncApplies == "yes" || (n.options.syncApplies == "auto" && n.engine.EngineName() == "braiddb")
	create := func(group, _ uint64) sm.IOnDiskStateMachine {
		return NewMachine(n.engine, group, syncWrites, &n.snapshotsReceived)
	}
	for group := uint64(1); group <= n.options.groups; group++ {
		err := n.host.StartOnDiskCluster(members, false, create, config.Config{
			NodeID:             n.options.id,
			ClusterID:          group,
			CheckQuorum:        true,
			ElectionRTT:        25,
			HeartbeatRTT:       2,
			SnapshotEntries:    n.options.snapshotEntries,
			CompactionOverhead: n.options.keepEntries,
		})
		if err != nil {
			return fmt.Errorf("group %d: %w", group, err)
		}
	}
	n.ready.Store(true)
	return nil
}

func (n *Node) propose(command Command) (uint64, error) {
	group := GroupOf(command.Key, n.options.groups)
	ctx, cancel := context.WithTimeout(context.Background(), n.options.timeout)
	defer cancel()
	result, err := n.host.SyncPropose(ctx, n.host.GetNoOPSession(group), command.Encode())
	if err == nil && result.Value != resultApplied {
		err = errBadCommand
	}
	return group, err
}

// read returns the value of the key: linearizable by ReadIndex, or, if stale is true, what this node has applied.
func (n *Node) read(key []byte, stale bool) ([]byte, error) {
	group := GroupOf(key, n.options.groups)
	var value interface{}
	var err error
	if stale {
		value, err = n.host.StaleRead(group, key)
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), n.options.timeout)
		defer cancel()
		value, err = n.host.SyncRead(ctx, group, key)
	}
	if err != nil {
		return nil, err
	}
	return value.([]byte), nil
}

// catchUp returns when this node has applied all writes of the group that were acknowledged before the call.
func (n *Node) catchUp(group uint64) error {
	ctx, cancel := context.WithTimeout(context.Background(), n.options.timeout)
	defer cancel()
	_, err := n.host.SyncRead(ctx, group, FreshnessQuery{})
	return err
}

// digest returns the digest of a group on this node, after all writes that were acknowledged before the call.
func (n *Node) digest(group uint64) (Digest, error) {
	if err := n.catchUp(group); err != nil {
		return Digest{}, err
	}
	found, err := n.host.StaleRead(group, DigestQuery{})
	if err != nil {
		return Digest{}, err
	}
	return found.(Digest), nil
}

func runNode(arguments []string) error {
	options, members, err := parseNodeOptions(arguments)
	if err != nil {
		return err
	}
	for _, name := range []string{"dragonboat", "raft", "rsm", "transport", "logdb", "rocksdb", "grpc", "config", "order", "settings"} {
		logger.GetLogger(name).SetLevel(logger.WARNING)
	}
	// The port is taken before the databases are opened: a second process of the same node ends here.
	listener, err := net.Listen("tcp", options.http)
	if err != nil {
		return err
	}
	node := &Node{options: options, members: members}
	server := &http.Server{
		Handler:           node.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       60 * time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if err := node.start(); err != nil {
		return err
	}
	fmt.Printf("node %d: serves http://%s, engine %s, library %s\n", options.id, listener.Addr(), node.engine.EngineName(), EngineLibrary())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	select {
	case err := <-failed:
		return err
	case <-stop:
	}
	ctx, cancel := context.WithTimeout(context.Background(), options.timeout)
	defer cancel()
	server.Shutdown(ctx)
	node.host.Stop()
	node.engine.Close()
	return nil
}
