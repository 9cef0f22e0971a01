// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"net"
	"net/http"
	"sync"
)

// TrafficPath is the path of a JSON object with the number of image bytes that the registry has served to each address
// since its start.
const TrafficPath = "/traffic"

// traffic counts the bytes served to each address.
type traffic struct {
	mu    sync.Mutex
	bytes map[string]int64
}

func (t *traffic) add(address string, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bytes == nil {
		t.bytes = map[string]int64{}
	}
	t.bytes[address] += int64(bytes)
}

func (t *traffic) report(w http.ResponseWriter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(t.bytes)
}

// count returns a writer that counts the body bytes for the client of the request.
func (t *traffic) count(w http.ResponseWriter, request *http.Request) http.ResponseWriter {
	address, _, _ := net.SplitHostPort(request.RemoteAddr)
	return &counted{ResponseWriter: w, traffic: t, address: address}
}

type counted struct {
	http.ResponseWriter
	traffic *traffic
	address string
}

// Write implements http.ResponseWriter.
func (c *counted) Write(body []byte) (int, error) {
	n, err := c.ResponseWriter.Write(body)
	c.traffic.add(c.address, n)
	return n, err
}
