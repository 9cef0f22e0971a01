// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"
)

// ways are the connections that benchmarks compare: the tunnel, and one without it.
func ways(b *testing.B, f *fixture) map[string]func() (net.Conn, error) {
	b.Helper()
	s := f.apiServer("a", 1)
	f.node("one", "10.1.0.0/24")
	for len(s.Agents()) == 0 {
		runtime.Gosched()
	}
	return map[string]func() (net.Conn, error){
		"tunnel": func() (net.Conn, error) { return s.connect("10.1.0.7:" + f.echo) },
		"direct": func() (net.Conn, error) {
			return (&net.Dialer{}).DialContext(context.Background(), "tcp", "127.0.0.1:"+f.echo)
		},
	}
}

// BenchmarkRoundTrip measures a small request on an open connection.
func BenchmarkRoundTrip(b *testing.B) {
	for name, connect := range ways(b, newFixture(b)) {
		b.Run(name, func(b *testing.B) {
			conn, err := connect()
			if err != nil {
				b.Fatal(err)
			}
			measure(b, func() error { return ask(conn, "hello") })
		})
	}
}

// BenchmarkConnect measures a connection with a small request.
func BenchmarkConnect(b *testing.B) {
	for name, connect := range ways(b, newFixture(b)) {
		b.Run(name, func(b *testing.B) {
			measure(b, func() error {
				conn, err := connect()
				if err != nil {
					return err
				}
				if err := ask(conn, "hello"); err != nil {
					return err
				}
				return conn.Close()
			})
		})
	}
}

// measure reports the median time of an action.
func measure(b *testing.B, action func() error) {
	b.Helper()
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		if err := action(); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs-p50")
}

// BenchmarkThroughput measures bytes that go to a destination and back.
func BenchmarkThroughput(b *testing.B) {
	for name, connect := range ways(b, newFixture(b)) {
		b.Run(name, func(b *testing.B) {
			conn, err := connect()
			if err != nil {
				b.Fatal(err)
			}
			const size = 1 << 20
			chunk, back := make([]byte, size), make([]byte, size)
			b.SetBytes(size)
			for b.Loop() {
				sent := make(chan error, 1)
				go func() {
					_, err := conn.Write(chunk)
					sent <- err
				}()
				if _, err := io.ReadFull(conn, back); err != nil {
					b.Fatal(err)
				}
				if err := <-sent; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStreams measures the heap and stacks of both ends of a stream, with 1,000 streams open.
func BenchmarkStreams(b *testing.B) {
	f := newFixture(b)
	s := f.apiServer("a", 1)
	f.node("one", "10.1.0.0/24")
	for len(s.Agents()) == 0 {
		runtime.Gosched()
	}
	for b.Loop() {
		before := used()
		conns := s.many(b, 1000, "10.1.0.7:"+f.echo)
		for _, conn := range conns {
			if err := ask(conn, "hello"); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(used()-before)/1000/1024, "KiB/stream")
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
}

func used() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkReconnect measures when the server counts an agent as gone whose packets are lost. It also measures when the
// agent is connected again after the loss.
func BenchmarkReconnect(b *testing.B) {
	f := newFixture(b)
	s := f.apiServer("a", 1)
	n := f.node("one", "10.1.0.0/24")
	await := func(count int) time.Duration {
		start := time.Now()
		for len(s.Agents()) != count {
			<-time.After(time.Millisecond)
		}
		return time.Since(start)
	}
	await(1)
	var gone, back time.Duration
	for b.Loop() {
		n.cut.Store(true)
		gone += await(0)
		n.cut.Store(false)
		back += await(1)
	}
	b.ReportMetric(gone.Seconds()/float64(b.N), "s-detected")
	b.ReportMetric(back.Seconds()/float64(b.N), "s-reconnected")
}
