// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"net"
	"net/http"
	"sync"
)

// TrafficPath is where the registry says, as a JSON object, how many bytes of images it has served to each address since it started.
const TrafficPath = "/traffic"

// traffic counts what each address was served. The zero value has served nothing.
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

// count returns a writer whose bodies are counted for who asks.
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
