package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client sends requests to one of the nodes, and to the next one after a failure. One goroutine uses it.
type Client struct {
	nodes   []string
	current int
	http    *http.Client
}

// errUnknown says that a request has no answer: a write may have been applied, or may be applied later.
var errUnknown = errors.New("outcome unknown")

func newTransport(connections int) *http.Client {
	return &http.Client{
		Timeout: 4 * time.Second,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: time.Second}).DialContext,
			MaxIdleConnsPerHost: connections,
			DisableCompression:  true,
		},
	}
}

func parseNodes(text string) ([]string, error) {
	if text == "" {
		return nil, errors.New("--nodes is missing: name the nodes' addresses, for example http://127.0.0.1:8080")
	}
	nodes := strings.Split(text, ",")
	for i, node := range nodes {
		parsed, err := url.Parse(node)
		if err != nil || parsed.Scheme != "http" || parsed.Host == "" {
			return nil, fmt.Errorf("--nodes: %q is not of the form http://host:port", node)
		}
		nodes[i] = strings.TrimSuffix(node, "/")
	}
	return nodes, nil
}

func newClient(nodes []string, first int, transport *http.Client) *Client {
	return &Client{nodes: nodes, current: first % len(nodes), http: transport}
}

// send returns status and body. Any failure but a refusal of the request (4xx) is errUnknown.
func (c *Client) send(method, path string, body []byte) (int, []byte, error) {
	request, err := http.NewRequest(method, c.nodes[c.current]+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	response, err := c.http.Do(request)
	var content []byte
	if err == nil {
		content, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	if err != nil {
		c.current = (c.current + 1) % len(c.nodes)
		return 0, nil, fmt.Errorf("%w: %v", errUnknown, err)
	}
	switch {
	case response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNotFound:
		return response.StatusCode, content, nil
	case response.StatusCode >= 500:
		c.current = (c.current + 1) % len(c.nodes)
		return response.StatusCode, nil, fmt.Errorf("%w: %s: %s", errUnknown, response.Status, strings.TrimSpace(string(content)))
	default:
		return response.StatusCode, nil, fmt.Errorf("refused: %s: %s", response.Status, strings.TrimSpace(string(content)))
	}
}

func (c *Client) put(key string, value []byte) error {
	_, _, err := c.send(http.MethodPut, "/v1/kv/"+url.PathEscape(key), value)
	return err
}

func (c *Client) delete(key string) error {
	_, _, err := c.send(http.MethodDelete, "/v1/kv/"+url.PathEscape(key), nil)
	return err
}

// get returns the value and whether the key exists.
func (c *Client) get(key string) ([]byte, bool, error) {
	status, value, err := c.send(http.MethodGet, "/v1/kv/"+url.PathEscape(key), nil)
	return value, status == http.StatusOK, err
}
