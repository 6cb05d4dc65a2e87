package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// runVerify reads the keys of a ledger back, linearizably, and compares the digests of all nodes.
func runVerify(arguments []string) error {
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	nodesText := flags.String("nodes", "", "addresses of the nodes, with commas")
	ledger := flags.String("ledger", "", "file of acknowledged versions that load wrote")
	patience := flags.Duration("patience", 30*time.Second, "how long a request is repeated until a node answers")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	nodes, err := parseNodes(*nodesText)
	if err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not a flag", flags.Arg(0))
	}
	var entries []LedgerEntry
	if *ledger != "" {
		if entries, err = readLedger(*ledger); err != nil {
			return err
		}
	}
	if err := readBack(nodes, entries, *patience); err != nil {
		return err
	}
	groups, count, err := compareDigests(nodes, *patience)
	if err != nil {
		return err
	}
	fmt.Printf("verify: %d keys of the ledger read back; %d groups with %d entries equal on %d nodes\n", len(entries), groups, count, len(nodes))
	return nil
}

const (
	readers        = 16
	mostFailures   = 10
	retryInterval  = 100 * time.Millisecond
	digestInterval = 500 * time.Millisecond
)

func readBack(nodes []string, entries []LedgerEntry, patience time.Duration) error {
	transport := newTransport(readers)
	var mu sync.Mutex
	var failures []error
	var running sync.WaitGroup
	for reader := 0; reader < readers; reader++ {
		running.Add(1)
		go func(reader int) {
			defer running.Done()
			client := newClient(nodes, reader, transport)
			for i := reader; i < len(entries); i += readers {
				if err := readOne(client, entries[i], patience); err != nil {
					mu.Lock()
					failures = append(failures, err)
					enough := len(failures) >= mostFailures
					mu.Unlock()
					if enough {
						return
					}
				}
			}
		}(reader)
	}
	running.Wait()
	for _, failure := range failures {
		fmt.Fprintln(os.Stderr, failure)
	}
	if len(failures) > 0 {
		return fmt.Errorf("%w: %d or more keys are wrong", errNotEqual, len(failures))
	}
	return nil
}

func readOne(client *Client, entry LedgerEntry, patience time.Duration) error {
	for begin := time.Now(); ; time.Sleep(retryInterval) {
		value, found, err := client.get(entry.Key)
		if err == nil {
			return entry.check(value, found)
		}
		if !errors.Is(err, errUnknown) || time.Since(begin) > patience {
			return fmt.Errorf("key %s: %w", entry.Key, err)
		}
	}
}

// compareDigests returns the number of groups and of their entries. Groups that differ are asked again, since nodes apply at different
// times; with equal applied indices, a difference is final.
func compareDigests(nodes []string, patience time.Duration) (int, uint64, error) {
	transport := newTransport(1)
	transport.Timeout = patience
	for begin := time.Now(); ; time.Sleep(digestInterval) {
		byNode := make([][]Digest, len(nodes))
		var failure error
		for i, node := range nodes {
			if byNode[i], failure = digestsOf(node, transport); failure != nil {
				break
			}
		}
		late := time.Since(begin) > patience
		if failure == nil {
			lags, difference := findDifference(nodes, byNode)
			if difference == nil {
				return countEntries(byNode[0])
			}
			if !lags || late {
				return 0, 0, fmt.Errorf("%w: %v", errNotEqual, difference)
			}
			continue
		}
		if late {
			return 0, 0, failure
		}
	}
}

func digestsOf(node string, transport *http.Client) ([]Digest, error) {
	_, content, err := newClient([]string{node}, 0, transport).send(http.MethodGet, "/v1/digest", nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", node, err)
	}
	var digests []Digest
	if err := json.Unmarshal(content, &digests); err != nil {
		return nil, fmt.Errorf("%s: the digests cannot be read: %w", node, err)
	}
	return digests, nil
}

// findDifference returns the first difference, and whether it is one of applied indices.
func findDifference(nodes []string, byNode [][]Digest) (bool, error) {
	for i := range byNode {
		if len(byNode[i]) != len(byNode[0]) {
			return false, fmt.Errorf("%s has %d groups, %s has %d", nodes[0], len(byNode[0]), nodes[i], len(byNode[i]))
		}
		for j, digest := range byNode[i] {
			if digest != byNode[0][j] {
				return digest.Applied != byNode[0][j].Applied, fmt.Errorf("group %d differs: %s has %+v, %s has %+v",
					digest.Group, nodes[0], byNode[0][j], nodes[i], digest)
			}
		}
	}
	return false, nil
}

func countEntries(digests []Digest) (int, uint64, error) {
	count := uint64(0)
	for _, digest := range digests {
		count += digest.Entries
	}
	return len(digests), count, nil
}
