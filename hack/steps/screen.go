// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// screen shows the current step. On a terminal its line counts the seconds; otherwise each line is written once.
type screen struct {
	out      io.Writer
	terminal bool
}

func newScreen(out io.Writer) *screen {
	file, ok := out.(*os.File)
	if !ok {
		return &screen{out: out}
	}
	info, err := file.Stat()
	return &screen{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// begin shows a running step until the returned function is called.
func (s *screen) begin(line string) (done func()) {
	if !s.terminal {
		fmt.Fprintln(s.out, line)
		return func() {}
	}
	start, stop := time.Now(), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			fmt.Fprintf(s.out, "\r\x1b[K%s (%s)", line, time.Since(start).Round(time.Second))
			select {
			case <-stop:
				fmt.Fprint(s.out, "\r\x1b[K")
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		close(stop)
		group.Wait()
	}
}

// end shows that a step is done.
func (s *screen) end(line string) { fmt.Fprintln(s.out, line) }
