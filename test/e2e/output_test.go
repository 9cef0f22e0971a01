// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io"
	"sync"
)

// lines writes only complete lines to out, each with a prefix, so that the output of parallel scenarios can be
// distinguished.
type lines struct {
	out    io.Writer
	prefix string

	mu   sync.Mutex
	rest []byte
}

// Write buffers what follows the last newline for the next call.
func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, text...)
	for {
		end := bytes.IndexByte(l.rest, '\n')
		if end < 0 {
			return len(text), nil
		}
		line := append([]byte(l.prefix), l.rest[:end+1]...)
		l.rest = l.rest[end+1:]
		if _, err := l.out.Write(line); err != nil {
			return len(text), err
		}
	}
}

// end writes the remaining text that has no newline.
func (l *lines) end() {
	if len(l.rest) > 0 {
		_, _ = l.Write([]byte("\n")) // The test ignores errors of its own output.
	}
}
