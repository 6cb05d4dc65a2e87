package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/lni/dragonboat/v3"
)

// handler serves clients. Values are request and response bodies as they are; all else is JSON.
//
//	PUT    /v1/kv/<key>           stores the body; 200 means that it is replicated and applied
//	DELETE /v1/kv/<key>           deletes the key, which need not exist
//	GET    /v1/kv/<key>           the value, linearizable; 404 if there is none. ?stale=1 reads this node's state
//	GET    /v1/status             node, engine, memory, and the leader of each group
//	GET    /v1/digest[?group=N]   digests of the groups' states on this node
//	GET    /v1/ready              200 if each group has a leader that answers this node, else 503
//
// A key is escaped as a part of a URL. Errors are {"error": text}. After 503 or 504, a write may still be applied later.
func (n *Node) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.EscapedPath()
		switch {
		case !n.ready.Load():
			writeError(w, http.StatusServiceUnavailable, errors.New("the node is starting: try again"))
		case strings.HasPrefix(path, "/v1/kv/"):
			n.serveKey(w, r, strings.TrimPrefix(path, "/v1/kv/"))
		case r.Method != http.MethodGet:
			writeError(w, http.StatusMethodNotAllowed, fmt.Errorf("%s is not allowed here: use GET", r.Method))
		case path == "/v1/status":
			writeJSON(w, http.StatusOK, n.status())
		case path == "/v1/digest":
			n.serveDigest(w, r)
		case path == "/v1/ready":
			n.serveReady(w)
		default:
			writeError(w, http.StatusNotFound, fmt.Errorf("no such path: %s; there are /v1/kv/<key>, /v1/status, /v1/digest and /v1/ready", path))
		}
	})
}

func writeJSON(w http.ResponseWriter, code int, value interface{}) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(value)
}

func writeError(w http.ResponseWriter, code int, err error) {
	writeJSON(w, code, map[string]string{"error": err.Error()})
}

// statusOf returns the HTTP status of an error of Raft: 504 for a timeout, else 503.
func statusOf(err error) int {
	if errors.Is(err, dragonboat.ErrTimeout) {
		return http.StatusGatewayTimeout
	}
	if errors.Is(err, dragonboat.ErrPayloadTooBig) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusServiceUnavailable
}

func (n *Node) serveKey(w http.ResponseWriter, r *http.Request, escaped string) {
	text, err := url.PathUnescape(escaped)
	if err == nil {
		err = checkKey([]byte(text))
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	key := []byte(text)
	switch r.Method {
	case http.MethodGet:
		n.serveGet(w, r, key)
	case http.MethodPut:
		value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxValueBytes))
		if err != nil {
			writeBodyError(w, err)
			return
		}
		n.serveWrite(w, Command{Op: opPut, Key: key, Value: value})
	case http.MethodDelete:
		n.serveWrite(w, Command{Op: opDelete, Key: key})
	default:
		w.Header().Set("Allow", "GET, PUT, DELETE")
		writeError(w, http.StatusMethodNotAllowed, fmt.Errorf("%s is not allowed here: use GET, PUT or DELETE", r.Method))
	}
}

func writeBodyError(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		writeError(w, http.StatusRequestEntityTooLarge, fmt.Errorf("the value is larger than %d bytes", maxValueBytes))
		return
	}
	writeError(w, http.StatusBadRequest, fmt.Errorf("the body cannot be read: %w", err))
}

func (n *Node) serveGet(w http.ResponseWriter, r *http.Request, key []byte) {
	stale, err := strconv.ParseBool(orDefault(r.URL.Query().Get("stale"), "0"))
	if err != nil {
		writeError(w, http.StatusBadRequest, errors.New("stale is 0 or 1"))
		return
	}
	value, err := n.read(key, stale)
	switch {
	case err != nil:
		writeError(w, statusOf(err), err)
	case value == nil:
		writeError(w, http.StatusNotFound, errors.New("no such key"))
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Write(value)
	}
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func (n *Node) serveWrite(w http.ResponseWriter, command Command) {
	group, err := n.propose(command)
	if err != nil {
		writeError(w, statusOf(err), err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]uint64{"group": group})
}

// Status is the answer to /v1/status.
type Status struct {
	Node           uint64            `json:"node"`
	Engine         string            `json:"engine"`
	Library        string            `json:"library"`
	ResidentBytes  uint64            `json:"resident_bytes"`
	Leaders        map[uint64]uint64 `json:"leaders"` // of each group; 0 if none is known
	LeaderOfGroups int               `json:"leader_of_groups"`

	SnapshotsReceived uint64 `json:"snapshots_received"` // since the start of the process
}

func (n *Node) status() Status {
	status := Status{Node: n.options.id, Engine: n.engine.EngineName(), Library: EngineLibrary(), ResidentBytes: residentBytes(),
		Leaders: map[uint64]uint64{}, SnapshotsReceived: n.snapshotsReceived.Load()}
	for group := uint64(1); group <= n.options.groups; group++ {
		leader, known, err := n.host.GetLeaderID(group)
		if err != nil || !known {
			leader = 0
		}
		status.Leaders[group] = leader
		if leader == n.options.id {
			status.LeaderOfGroups++
		}
	}
	return status
}

func residentBytes() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}

func (n *Node) serveDigest(w http.ResponseWriter, r *http.Request) {
	first, last := uint64(1), n.options.groups
	if text := r.URL.Query().Get("group"); text != "" {
		group, err := strconv.ParseUint(text, 10, 64)
		if err != nil || group < first || group > last {
			writeError(w, http.StatusBadRequest, fmt.Errorf("group is %q: 1 to %d are there", text, last))
			return
		}
		first, last = group, group
	}
	digests := []Digest{}
	for group := first; group <= last; group++ {
		digest, err := n.digest(group)
		if err != nil {
			writeError(w, statusOf(err), fmt.Errorf("group %d: %w", group, err))
			return
		}
		digests = append(digests, digest)
	}
	writeJSON(w, http.StatusOK, digests)
}

func (n *Node) serveReady(w http.ResponseWriter) {
	for group := uint64(1); group <= n.options.groups; group++ {
		if leader, known, err := n.host.GetLeaderID(group); err != nil || !known || leader == 0 {
			writeError(w, http.StatusServiceUnavailable, fmt.Errorf("group %d has no leader: try again", group))
			return
		}
	}
	for group := uint64(1); group <= n.options.groups; group++ {
		if err := n.catchUp(group); err != nil {
			writeError(w, http.StatusServiceUnavailable, fmt.Errorf("group %d: %w", group, err))
			return
		}
	}
	writeJSON(w, http.StatusOK, map[string]bool{"ready": true})
}
