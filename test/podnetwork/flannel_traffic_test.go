// SPDX-License-Identifier: Apache-2.0

package podnetwork_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/machine/network"
)

const (
	// interval is the time between packets of packetWatch.
	interval = 10 * time.Millisecond
	// grace is how long packetWatch waits for the last answers.
	grace = time.Second
)

// packetWatch sends a numbered packet from one pod to another in each interval, and records the answers.
type packetWatch struct {
	mutex    sync.Mutex
	sent     uint32
	answered map[uint32]bool
	done     chan struct{}
	ended    sync.WaitGroup
	from     *net.UDPConn
}

func (f *flannelFixture) watch(from, to flannelPod) *packetWatch {
	f.t.Helper()
	g := NewWithT(f.t)
	w := &packetWatch{answered: map[uint32]bool{}, done: make(chan struct{})}
	target := &net.UDPAddr{IP: to.address.AsSlice(), Port: 7000}
	var echo *net.UDPConn
	g.Expect(network.Do(to.namespace, func() (err error) {
		echo, err = net.ListenUDP("udp", target)
		return err
	})).To(Succeed())
	f.t.Cleanup(func() { _ = echo.Close() })
	go func() {
		packet := make([]byte, 4)
		for {
			_, peer, err := echo.ReadFromUDP(packet)
			if err != nil {
				return
			}
			_, _ = echo.WriteToUDP(packet, peer)
		}
	}()
	g.Expect(network.Do(from.namespace, func() (err error) {
		w.from, err = net.ListenUDP("udp", nil)
		return err
	})).To(Succeed())
	f.t.Cleanup(func() { _ = w.from.Close() })
	w.ended.Go(func() { w.send(target) })
	go w.receive()
	return w
}

func (w *packetWatch) send(target *net.UDPAddr) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-ticker.C:
		}
		w.mutex.Lock()
		number := w.sent
		w.sent++
		w.mutex.Unlock()
		_, _ = w.from.WriteToUDP(binary.BigEndian.AppendUint32(nil, number), target)
	}
}

func (w *packetWatch) receive() {
	packet := make([]byte, 4)
	for {
		if _, err := io.ReadFull(w.from, packet); err != nil {
			return
		}
		w.mutex.Lock()
		w.answered[binary.BigEndian.Uint32(packet)] = true
		w.mutex.Unlock()
	}
}

// waitForAnswers waits for the first answer, and starts to count there.
func (w *packetWatch) waitForAnswers(t *testing.T) {
	t.Helper()
	count := func() int { w.mutex.Lock(); defer w.mutex.Unlock(); return len(w.answered) }
	NewWithT(t).Eventually(count).WithTimeout(settle).Should(BeNumerically(">", 0))
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.sent, w.answered = 0, map[uint32]bool{}
}

// stop returns the number of packets and of lost ones, and the longest time without an answer.
func (w *packetWatch) stop() (sent, lost int, gap time.Duration) {
	close(w.done)
	w.ended.Wait()
	<-time.After(grace)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	run := 0
	for number := range w.sent {
		if w.answered[number] {
			run = 0
			continue
		}
		lost++
		run++
		gap = max(gap, time.Duration(run)*interval)
	}
	return int(w.sent), lost, gap
}

// transfer sends 4 MiB from one pod to another, which checks the source address.
func (f *flannelFixture) transfer(t *testing.T, from, to flannelPod) {
	t.Helper()
	g := NewWithT(t)
	var listener *net.TCPListener
	address := &net.TCPAddr{IP: to.address.AsSlice(), Port: 8000}
	g.Expect(network.Do(to.namespace, func() (err error) {
		listener, err = net.ListenTCP("tcp", address)
		return err
	})).To(Succeed())
	defer listener.Close()
	g.Expect(listener.SetDeadline(time.Now().Add(settle))).To(Succeed())
	content := bytes.Repeat([]byte("pods"), 1<<20)
	sending := make(chan error, 1)
	go func() {
		sending <- network.Do(from.namespace, func() error {
			dialer := net.Dialer{Timeout: settle}
			connection, err := dialer.DialContext(t.Context(), "tcp", address.String())
			if err != nil {
				return err
			}
			defer connection.Close()
			_, err = connection.Write(content)
			return err
		})
	}()
	connection, err := listener.AcceptTCP()
	g.Expect(err).NotTo(HaveOccurred())
	defer connection.Close()
	g.Expect(connection.RemoteAddr().(*net.TCPAddr).IP.String()).To(Equal(from.address.String()))
	received, err := io.ReadAll(connection)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(received).To(HaveLen(len(content)))
	g.Expect(<-sending).To(Succeed())
}
