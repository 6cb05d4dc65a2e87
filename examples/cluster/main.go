// Command cluster is a replicated key-value service: keys are spread over Raft groups by hash, each group is replicated by Dragonboat,
// and both the Raft log and the groups' states are in BraidDB or RocksDB, through RocksDB's C API. scripts/cluster runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

const usage = `usage: cluster node   --id N --raft host:port,... --http host:port --data directory [...]
       cluster load   --nodes http://host:port,... [...]   writes and reads; prints one line of JSON
       cluster verify --nodes http://host:port,... [...]   reads acknowledged writes back, compares the nodes' digests
       cluster VERB --help                                 the flags of a verb`

// errNotEqual is the failure of a check, as opposed to one of the checker.
var errNotEqual = errors.New("the check failed")

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	verbs := map[string]func([]string) error{"node": runNode, "load": runLoad, "verify": runVerify}
	run, known := verbs[os.Args[1]]
	if !known {
		fmt.Fprintf(os.Stderr, "cluster: %q is not a verb\n%s\n", os.Args[1], usage)
		os.Exit(2)
	}
	err := run(os.Args[2:])
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errNotEqual):
		fmt.Fprintf(os.Stderr, "cluster %s: %v\n", os.Args[1], err)
		os.Exit(1)
	default:
		fmt.Fprintf(os.Stderr, "cluster %s: %v\n", os.Args[1], err)
		os.Exit(2)
	}
}
