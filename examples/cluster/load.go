package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"os/signal"
	"sort"
	"sync"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

type loadOptions struct {
	nodes           []string
	seconds         float64
	clients         int
	readPercent     int
	valueBytes      int
	keysPerClient   int
	registerClients int
	ledger          string
	perKey          time.Duration
}

func parseLoadOptions(arguments []string) (loadOptions, error) {
	var o loadOptions
	var nodes string
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.StringVar(&nodes, "nodes", "", "addresses of the nodes, with commas")
	flags.Float64Var(&o.seconds, "seconds", 10, "how long; SIGTERM and SIGINT end the load earlier")
	flags.IntVar(&o.clients, "clients", 32, "clients that write keys of their own, each with one request in flight")
	flags.IntVar(&o.readPercent, "reads", 0, "percent of these clients' requests that read")
	flags.IntVar(&o.valueBytes, "value-bytes", 100, "bytes of their values")
	flags.IntVar(&o.keysPerClient, "keys", 1000, "keys of each of them")
	flags.IntVar(&o.registerClients, "register-clients", 0, "clients that put, get and delete common keys; their histories are checked")
	flags.StringVar(&o.ledger, "ledger", "", "file to which the acknowledged versions are appended at the end, for verify")
	flags.DurationVar(&o.perKey, "check-timeout", 20*time.Second, "time for the check of one key's history")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	var err error
	if o.nodes, err = parseNodes(nodes); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is not a flag", flags.Arg(0))
	case o.seconds <= 0:
		return o, errors.New("--seconds must be more than 0")
	case o.clients < 0 || o.registerClients < 0 || o.clients+o.registerClients == 0:
		return o, errors.New("--clients and --register-clients: at least one client is needed")
	case o.readPercent < 0 || o.readPercent > 100:
		return o, errors.New("--reads is 0 to 100")
	case o.valueBytes < 24 || o.valueBytes > maxValueBytes:
		return o, fmt.Errorf("--value-bytes is 24 to %d", maxValueBytes)
	case o.keysPerClient < 1:
		return o, errors.New("--keys is at least 1")
	}
	return o, nil
}

// LoadReport is the line that load prints.
type LoadReport struct {
	Seconds         float64        `json:"seconds"`
	Clients         int            `json:"clients"`
	Writes          int            `json:"writes"`
	WritesPerSecond float64        `json:"writes_per_second"`
	WriteP50Ms      float64        `json:"write_p50_ms"`
	WriteP99Ms      float64        `json:"write_p99_ms"`
	WriteMaxMs      float64        `json:"write_max_ms"`
	Reads           int            `json:"reads"`
	ReadP50Ms       float64        `json:"read_p50_ms,omitempty"`
	ReadP99Ms       float64        `json:"read_p99_ms,omitempty"`
	Unknown         int            `json:"unknown"`
	Errors          []string       `json:"errors,omitempty"`
	History         *HistoryReport `json:"history,omitempty"`
}

// writer is a client with keys of its own.
type writer struct {
	client     *Client
	options    *loadOptions
	prefix     string
	generation []int // of each key: counts the keys that were left
	current    []LedgerEntry
	left       []LedgerEntry
	writes     []time.Duration
	reads      []time.Duration
	unknown    int
	err        error
}

func (w *writer) run(ctx context.Context, random *rand.Rand) {
	w.generation = make([]int, w.options.keysPerClient)
	w.current = make([]LedgerEntry, w.options.keysPerClient)
	for i := range w.current {
		w.renew(i)
	}
	for i := 0; ctx.Err() == nil && w.err == nil; i = (i + 1) % len(w.current) {
		if random.Intn(100) < w.options.readPercent {
			w.read(random.Intn(len(w.current)))
		} else {
			w.write(i)
		}
	}
}

// renew begins another key in place of the i-th.
func (w *writer) renew(i int) {
	w.current[i] = LedgerEntry{Key: fmt.Sprintf("%s-%d-%d", w.prefix, i, w.generation[i]), Bytes: w.options.valueBytes}
	w.generation[i]++
}

func (w *writer) write(i int) {
	entry := &w.current[i]
	entry.Attempted++
	begin := time.Now()
	err := w.client.put(entry.Key, ledgerValue(entry.Key, entry.Attempted, entry.Bytes))
	switch {
	case err == nil:
		entry.Acked = entry.Attempted
		w.writes = append(w.writes, time.Since(begin))
	case errors.Is(err, errUnknown):
		w.unknown++
		w.left = append(w.left, *entry)
		w.renew(i)
		time.Sleep(20 * time.Millisecond)
	default:
		w.err = err
	}
}

func (w *writer) read(i int) {
	begin := time.Now()
	value, found, err := w.client.get(w.current[i].Key)
	switch {
	case err == nil:
		w.reads = append(w.reads, time.Since(begin))
		if w.err = w.current[i].check(value, found); w.err != nil {
			w.err = fmt.Errorf("%w: %v", errNotEqual, w.err)
		}
	case errors.Is(err, errUnknown):
		time.Sleep(20 * time.Millisecond)
	default:
		w.err = err
	}
}

func (w *writer) ledger() []LedgerEntry {
	entries := w.left
	for _, entry := range w.current {
		if entry.Attempted > 0 {
			entries = append(entries, entry)
		}
	}
	return entries
}

const (
	registerRound = 500 * time.Millisecond // then other keys, so that a history stays short
	registerKeys  = 4
)

// registers puts, gets and deletes keys that all its kind use, and returns what it saw.
func registers(ctx context.Context, client *Client, id int, run string, begin time.Time, random *rand.Rand) ([]porcupine.Operation, error) {
	var history []porcupine.Operation
	for count := 0; ctx.Err() == nil; count++ {
		call := time.Since(begin)
		in := registerInput{op: opGet, key: fmt.Sprintf("register-%s-%d-%d", run, call/registerRound, random.Intn(registerKeys))}
		var out registerOutput
		var err error
		switch choice := random.Intn(20); {
		case choice < 9:
			in.op, in.value = opPut, fmt.Sprintf("%d.%d", id, count)
			err = client.put(in.key, []byte(in.value))
		case choice < 10:
			in.op = opDelete
			err = client.delete(in.key)
		default:
			var value []byte
			value, out.found, err = client.get(in.key)
			if out.found {
				out.value = string(value)
			}
		}
		end := int64(time.Since(begin))
		if err != nil && !errors.Is(err, errUnknown) {
			return nil, err
		}
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			if in.op == opGet {
				continue
			}
			end = neverReturned
		}
		history = append(history, porcupine.Operation{ClientId: id, Input: in, Call: int64(call), Output: out, Return: end})
	}
	return history, nil
}

func runLoad(arguments []string) error {
	options, err := parseLoadOptions(arguments)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(options.seconds*float64(time.Second)))
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	begin := time.Now()
	run := fmt.Sprintf("%x", begin.UnixNano())
	transport := newTransport(options.clients + options.registerClients)
	writers := make([]*writer, options.clients)
	histories := make([][]porcupine.Operation, options.registerClients)
	historyErrors := make([]error, options.registerClients)
	var running sync.WaitGroup
	for i := range writers {
		writers[i] = &writer{client: newClient(options.nodes, i, transport), options: &options, prefix: fmt.Sprintf("%s-%d", run, i)}
		running.Add(1)
		go func(i int) {
			defer running.Done()
			writers[i].run(ctx, rand.New(rand.NewSource(begin.UnixNano()+int64(i))))
		}(i)
	}
	for i := range histories {
		running.Add(1)
		go func(i int) {
			defer running.Done()
			random := rand.New(rand.NewSource(begin.UnixNano() - int64(i) - 1))
			histories[i], historyErrors[i] = registers(ctx, newClient(options.nodes, i, transport), i, run, begin, random)
		}(i)
	}
	running.Wait()
	report := LoadReport{Seconds: time.Since(begin).Seconds(), Clients: options.clients}
	err = report.addWriters(writers, options.ledger)
	if options.registerClients > 0 {
		err = firstError(err, report.addHistories(histories, historyErrors, options.perKey))
	}
	line, _ := json.Marshal(report)
	fmt.Println(string(line))
	return err
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (r *LoadReport) addWriters(writers []*writer, ledger string) error {
	var writes, reads []time.Duration
	var entries []LedgerEntry
	var failure error
	for _, writer := range writers {
		writes = append(writes, writer.writes...)
		reads = append(reads, writer.reads...)
		entries = append(entries, writer.ledger()...)
		r.Unknown += writer.unknown
		if writer.err != nil {
			r.Errors = append(r.Errors, writer.err.Error())
			failure = writer.err
		}
	}
	r.Writes, r.Reads = len(writes), len(reads)
	r.WritesPerSecond = float64(len(writes)) / r.Seconds
	r.WriteP50Ms, r.WriteP99Ms, r.WriteMaxMs = quantile(writes, 0.5), quantile(writes, 0.99), quantile(writes, 1)
	r.ReadP50Ms, r.ReadP99Ms = quantile(reads, 0.5), quantile(reads, 0.99)
	if ledger == "" {
		return failure
	}
	return firstError(failure, appendLedger(ledger, entries))
}

// quantile sorts the durations and returns one in milliseconds.
func quantile(durations []time.Duration, share float64) float64 {
	if len(durations) == 0 {
		return 0
	}
	sort.Slice(durations, func(i, j int) bool { return durations[i] < durations[j] })
	return float64(durations[int(share*float64(len(durations)-1))]) / float64(time.Millisecond)
}

func (r *LoadReport) addHistories(histories [][]porcupine.Operation, failures []error, perKey time.Duration) error {
	var all []porcupine.Operation
	for i, history := range histories {
		if failures[i] != nil {
			return failures[i]
		}
		all = append(all, history...)
	}
	report := checkHistory(all, perKey)
	r.History = &report
	if report.Verdict == "not linearizable" {
		fmt.Fprintln(os.Stderr, report.Example)
		return fmt.Errorf("%w: a history is not linearizable", errNotEqual)
	}
	return nil
}
