// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"errors"
	"io"
)

const (
	// smallBuffer is the buffer of a connection that sends little: most of thousands of streams are idle.
	smallBuffer = 2 << 10
	largeBuffer = 32 << 10
)

// Half is a connection whose two directions end separately.
type Half interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Splice connects two connections until both directions ended, or one failed, and closes them.
func Splice(a, b Half) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		forward(a, b)
	}()
	forward(b, a)
	<-done
	_, _ = a.Close(), b.Close()
}

// forward copies one direction and passes its end on.
func forward(to, from Half) {
	if err := relay(to, from); err != nil {
		// The other direction waits in a read of one of them.
		_, _ = to.Close(), from.Close()
		return
	}
	_ = to.CloseWrite()
}

func relay(to io.Writer, from io.Reader) error {
	buffer := make([]byte, smallBuffer)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n == smallBuffer && len(buffer) == smallBuffer:
			buffer = make([]byte, largeBuffer)
		}
	}
}
