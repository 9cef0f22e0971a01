// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/openshift/hypershift/tunnel/agent"
	"github.com/openshift/hypershift/tunnel/frame"
	"github.com/openshift/hypershift/tunnel/server"
)

func TestConnect(t *testing.T) {
	t.Run("prefers the agent on the destination's node", func(t *testing.T) {
		g, f := NewWithT(t), newFixture(t)
		s := f.apiServer("a", 1)
		one, two := f.node("one", "10.1.0.0/24"), f.node("two", "10.2.0.0/24")
		g.Eventually(s.Agents).Should(Equal([]string{"one", "two"}))
		for range 5 {
			g.Expect(s.request("10.2.0.7:" + f.echo)).To(Succeed())
		}
		g.Expect(s.request("10.1.0.7:" + f.echo)).To(Succeed())
		g.Expect(s.request("10.200.0.1:"+f.echo)).To(Succeed(), "any agent reaches a Service")
		g.Expect(one.dialed.Load() + two.dialed.Load()).To(BeEquivalentTo(7))
		g.Expect(two.dialed.Load()).To(BeNumerically(">=", 5))
	})
	t.Run("learns the network of a node's first pod", func(t *testing.T) {
		g, f := NewWithT(t), newFixture(t)
		s := f.apiServer("a", 1)
		var mu sync.Mutex
		network := netip.MustParsePrefix("192.0.2.1/32")
		// Of equal agents, the server takes the first.
		f.node("one", "10.1.0.0/24")
		g.Eventually(s.Agents).Should(HaveLen(1))
		two := f.node("two", "10.2.0.0/24", func(c *agent.Config) {
			c.Networks = func() ([]netip.Prefix, error) {
				mu.Lock()
				defer mu.Unlock()
				return []netip.Prefix{network}, nil
			}
		})
		g.Eventually(s.Agents).Should(HaveLen(2))
		mu.Lock()
		network = netip.MustParsePrefix("10.2.0.0/24")
		mu.Unlock()
		g.Eventually(func(g Gomega) {
			before := two.dialed.Load()
			for range 4 {
				g.Expect(s.request("10.2.0.7:" + f.echo)).To(Succeed())
			}
			g.Expect(two.dialed.Load() - before).To(BeEquivalentTo(4))
		}).Should(Succeed())
	})
	t.Run("reports why the destination is not reached", func(t *testing.T) {
		g, f := NewWithT(t), newFixture(t)
		s := f.apiServer("a", 1)
		f.node("one", "10.1.0.0/24")
		g.Eventually(s.Agents).Should(HaveLen(1))
		g.Expect(s.request("10.1.0.7:1")).To(MatchError(And(ContainSubstring("502"), ContainSubstring("node one"),
			ContainSubstring("connection refused"))))
	})
	t.Run("carries 1,000 streams at once", func(t *testing.T) {
		g, f := NewWithT(t), newFixture(t)
		registry := prometheus.NewRegistry()
		s := f.apiServer("a", 1, func(c *server.Config) { c.Metrics = registry })
		f.node("one", "10.1.0.0/24")
		g.Eventually(s.Agents).Should(HaveLen(1))
		conns := s.many(t, 1000, "10.1.0.7:"+f.echo)
		for i, conn := range conns {
			g.Expect(ask(conn, fmt.Sprint("message ", i))).To(Succeed())
		}
		g.Expect(value(registry, "hypershift_tunnel_streams")).To(BeEquivalentTo(1000))
		g.Expect(value(registry, "hypershift_tunnel_agents")).To(BeEquivalentTo(1))
		for _, conn := range conns {
			g.Expect(conn.Close()).To(Succeed())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g.Expect(s.Drain(ctx)).To(Succeed(), "all streams ended")
	})
}

// many opens connections to a destination.
func (s *apiServer) many(tb testing.TB, count int, destination string) []net.Conn {
	tb.Helper()
	conns, errs := make([]net.Conn, count), make([]error, count)
	var wait sync.WaitGroup
	limit := make(chan struct{}, 64)
	for i := range count {
		wait.Go(func() {
			limit <- struct{}{}
			conns[i], errs[i] = s.connect(destination)
			<-limit
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
	return conns
}

func TestWithoutAgent(t *testing.T) {
	t.Run("reaches kubelets as before while no agent is connected", func(t *testing.T) {
		g, f := NewWithT(t), newFixture(t)
		s := f.apiServer("a", 1, func(c *server.Config) {
			c.Direct = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+f.echo)
			}
		})
		g.Expect(s.request("192.0.2.7:10250")).To(Succeed())
	})
	t.Run("reaches a kubelet directly if its node has no agent", func(t *testing.T) {
		g, f := NewWithT(t), newFixture(t)
		s := f.apiServer("a", 1, func(c *server.Config) {
			c.Direct = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+f.echo)
			}
		})
		f.node("one", "10.1.0.0/24")
		g.Eventually(s.Agents).Should(HaveLen(1))
		g.Expect(s.request("192.0.2.7:10250")).To(Succeed())
	})
	t.Run("loses no request while the only agent is replaced", func(t *testing.T) {
		g, f := NewWithT(t), newFixture(t)
		s := f.apiServer("a", 1, func(c *server.Config) { c.Wait = time.Minute })
		n := f.node("one", "10.1.0.0/24")
		g.Eventually(s.Agents).Should(HaveLen(1))
		enough, failed := make(chan struct{}), make(chan error, 1)
		go func() {
			for {
				select {
				case <-enough:
					failed <- nil
					return
				default:
				}
				if err := s.request("10.1.0.7:" + f.echo); err != nil {
					failed <- err
					return
				}
			}
		}()
		for range 5 {
			n.stop()
			<-n.done
			g.Expect(n.err).NotTo(HaveOccurred())
			n = f.node("one", "10.1.0.0/24")
			g.Eventually(n.dialed.Load).Should(BeNumerically(">", 3))
		}
		close(enough)
		g.Expect(<-failed).NotTo(HaveOccurred())
	})
}

func TestNames(t *testing.T) {
	g, f := NewWithT(t), newFixture(t)
	s := f.apiServer("a", 1, func(c *server.Config) {
		c.Direct = func(ctx context.Context, network, address string) (net.Conn, error) {
			g.Expect(address).To(Equal("webhook.example.com:443"))
			return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+f.echo)
		}
	})
	one := f.node("one", "10.1.0.0/24")
	g.Eventually(s.Agents).Should(HaveLen(1))
	g.Expect(s.request("webhook.example.com:443")).To(Succeed())
	g.Expect(one.dialed.Load()).To(BeZero(), "nodes do not resolve names for the API server")
	guarded := f.apiServer("b", 1, func(c *server.Config) { c.Direct = nil })
	g.Expect(guarded.request("localhost:"+f.echo)).To(MatchError(ContainSubstring("403")), "a name for this host")
}

func TestServers(t *testing.T) {
	g, f := NewWithT(t), newFixture(t)
	a, b := f.apiServer("a", 3), f.apiServer("b", 3)
	c := f.apiServer("c", 3)
	n := f.node("one", "10.1.0.0/24")
	g.Eventually(n.Servers).Should(Equal([]string{"a", "b", "c"}), "the load balancer leads to each of them")
	for _, s := range []*apiServer{a, b, c} {
		g.Expect(s.request("10.1.0.7:" + f.echo)).To(Succeed())
	}
	// A successor of a server that ends has another ID.
	a.stop()
	g.Expect(a.Drain(t.Context())).To(Succeed())
	g.Eventually(n.Servers).Should(Equal([]string{"b", "c"}))
	d := f.apiServer("d", 3)
	g.Eventually(n.Servers).Should(Equal([]string{"b", "c", "d"}))
	g.Expect(d.request("10.1.0.7:" + f.echo)).To(Succeed())
}

func TestBrokenConnection(t *testing.T) {
	g, f := NewWithT(t), newFixture(t)
	s := f.apiServer("a", 1)
	one := f.node("one", "10.1.0.0/24")
	f.node("two", "10.2.0.0/24")
	g.Eventually(s.Agents).Should(HaveLen(2))
	conn, err := s.connect("10.1.0.7:" + f.echo)
	g.Expect(err).NotTo(HaveOccurred())
	// Both ends still have the connection, but no packet arrives.
	one.cut.Store(true)
	g.Eventually(s.Agents).Should(Equal([]string{"two"}))
	g.Eventually(one.Servers).Should(BeEmpty())
	g.Expect(ask(conn, "anyone there?")).NotTo(Succeed(), "the API server learns that its connection is lost")
	g.Expect(s.request("10.1.0.7:"+f.echo)).To(Succeed(), "another agent reaches the pod")
	one.cut.Store(false)
	g.Eventually(s.Agents).Should(Equal([]string{"one", "two"}))
	g.Consistently(s.Agents, "4s").Should(HaveLen(2), "an idle connection stays")
}

func TestDrain(t *testing.T) {
	t.Run("an agent ends after its streams, and others get the new ones", func(t *testing.T) {
		g, f := NewWithT(t), newFixture(t)
		s := f.apiServer("a", 1)
		one, two := f.node("one", "10.1.0.0/24"), f.node("two", "10.2.0.0/24")
		g.Eventually(s.Agents).Should(HaveLen(2))
		conn, err := s.connect("10.1.0.7:" + f.echo)
		g.Expect(err).NotTo(HaveOccurred())
		one.stop()
		g.Eventually(func() int64 {
			g.Expect(s.request("10.1.0.7:" + f.echo)).To(Succeed())
			return two.dialed.Load()
		}).Should(BeNumerically(">", 0))
		g.Expect(ask(conn, "still there?")).To(Succeed())
		g.Expect(one.done).NotTo(BeClosed())
		g.Expect(conn.Close()).To(Succeed())
		g.Eventually(one.done).Should(BeClosed())
		g.Expect(one.err).NotTo(HaveOccurred())
	})
	t.Run("connections of an agent that ends are closed between two requests", func(t *testing.T) {
		g, f := NewWithT(t), newFixture(t)
		s := f.apiServer("a", 1, func(c *server.Config) { c.Retire = time.Millisecond })
		one := f.node("one", "10.1.0.0/24")
		f.node("two", "10.2.0.0/24")
		g.Eventually(s.Agents).Should(HaveLen(2))
		asked, err := s.connect("10.1.0.7:" + f.echo)
		g.Expect(err).NotTo(HaveOccurred())
		waits, err := s.connect("10.1.0.7:" + f.silent)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ask(asked, "hello")).To(Succeed())
		_, err = waits.Write([]byte("a request whose answer takes long"))
		g.Expect(err).NotTo(HaveOccurred())
		one.stop()
		_, err = asked.Read(make([]byte, 1))
		g.Expect(err).To(MatchError(io.EOF))
		g.Expect(one.done).NotTo(BeClosed(), "a request is not answered yet")
		g.Expect(waits.SetReadDeadline(time.Now().Add(100 * time.Millisecond))).To(Succeed())
		_, err = waits.Read(make([]byte, 1))
		g.Expect(err).To(MatchError(os.ErrDeadlineExceeded))
		g.Expect(waits.Close()).To(Succeed())
		g.Eventually(one.done).Should(BeClosed())
	})
	t.Run("an agent ends after the grace period", func(t *testing.T) {
		g, f := NewWithT(t), newFixture(t)
		s := f.apiServer("a", 1)
		one := f.node("one", "10.1.0.0/24", func(c *agent.Config) { c.Grace = time.Millisecond })
		g.Eventually(s.Agents).Should(HaveLen(1))
		_, err := s.connect("10.1.0.7:" + f.echo)
		g.Expect(err).NotTo(HaveOccurred())
		one.stop()
		g.Eventually(one.done).Should(BeClosed())
		g.Expect(one.err).To(MatchError(ContainSubstring("were open after 1ms")))
	})
	t.Run("a server ends after its streams", func(t *testing.T) {
		g, f := NewWithT(t), newFixture(t)
		s := f.apiServer("a", 1)
		n := f.node("one", "10.1.0.0/24")
		g.Eventually(s.Agents).Should(HaveLen(1))
		conn, err := s.connect("10.1.0.7:" + f.echo)
		g.Expect(err).NotTo(HaveOccurred())
		drained := make(chan error, 1)
		go func() { drained <- s.Drain(t.Context()) }()
		g.Eventually(n.Servers).Should(BeEmpty(), "the agent looks for another server")
		g.Expect(s.request("10.1.0.7:" + f.echo)).To(MatchError(ContainSubstring("503")))
		g.Expect(ask(conn, "still there?")).To(Succeed())
		g.Expect(drained).NotTo(Receive())
		g.Expect(conn.Close()).To(Succeed())
		g.Eventually(drained).Should(Receive(BeNil()))
	})
	t.Run("a server ends when its time is over", func(t *testing.T) {
		g, f := NewWithT(t), newFixture(t)
		s := f.apiServer("a", 1)
		f.node("one", "10.1.0.0/24")
		g.Eventually(s.Agents).Should(HaveLen(1))
		_, err := s.connect("10.1.0.7:" + f.echo)
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		g.Expect(s.Drain(ctx)).To(MatchError(context.Canceled))
	})
}

func TestForbiddenDestinations(t *testing.T) {
	g, f := NewWithT(t), newFixture(t)
	s := f.apiServer("a", 1)
	one := f.node("one", "10.1.0.0/24")
	g.Eventually(s.Agents).Should(HaveLen(1))
	// An agent does not trust the server with this.
	agents := f.listen("tcp", "127.0.0.1:0")
	two := f.node("two", "10.2.0.0/24", func(c *agent.Config) {
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == "balancer:1" {
				address = agents.Addr().String()
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
	})
	conn, err := agents.Accept()
	g.Expect(err).NotTo(HaveOccurred())
	session, err := frame.Accept(t.Context(), conn, f.files(f.ca, serverName, "").Server())
	g.Expect(err).NotTo(HaveOccurred())
	control, err := session.Accept()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(frame.Read(control, &frame.Agent{})).To(Succeed())
	g.Expect(frame.Write(control, frame.Server{ID: "x", Servers: 1})).To(Succeed())
	g.Eventually(two.Servers).Should(Equal([]string{"x"}))
	for _, address := range []string{
		"127.0.0.1:" + f.echo, "127.8.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "0.0.0.0:80", "[::]:80",
		"169.254.169.254:80", "[fe80::1]:80", "[fd00:ec2::254]:80", "224.0.0.1:80", "[ff02::1]:80", "255.255.255.255:80",
		"10.1.0.7:0", "10.1.0.7",
	} {
		g.Expect(s.request(address)).To(MatchError(ContainSubstring("403")), address)
		stream, err := session.Open()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(frame.Write(stream, frame.Request{Address: address})).To(Succeed())
		response := frame.Response{}
		g.Expect(frame.Read(stream, &response)).To(Succeed())
		g.Expect(response.Error).To(ContainSubstring("destination"), address)
	}
	g.Expect(one.dialed.Load()).To(BeZero())
	stream, err := session.Open()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(frame.Write(stream, frame.Request{Address: "192.0.2.1:6443"})).To(Succeed())
	response := frame.Response{}
	g.Expect(frame.Read(stream, &response)).To(Succeed())
	g.Expect(response.Error).To(ContainSubstring("neither in the cluster network nor on this node"))
}

// TestOtherNetworks checks that agents are not asked for addresses that are neither in the cluster network nor on their
// node. A user could give a pod the address of the management cluster's API, which nodes may reach.
func TestOtherNetworks(t *testing.T) {
	g, f := NewWithT(t), newFixture(t)
	var direct []string
	s := f.apiServer("a", 1, func(c *server.Config) {
		c.Direct = func(_ context.Context, _, address string) (net.Conn, error) {
			direct = append(direct, address)
			return nil, errors.New("a network policy drops this")
		}
	})
	f.node("one", "10.1.0.0/24", func(c *agent.Config) {
		dial := c.Dial
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			g.Expect(address).To(Or(Equal("balancer:1"), Equal("192.0.2.7:10250")))
			return dial(ctx, network, address)
		}
		c.Networks = func() ([]netip.Prefix, error) { return []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32")}, nil }
	})
	g.Eventually(s.Agents).Should(HaveLen(1))
	g.Expect(s.request("192.0.2.1:6443")).To(MatchError(ContainSubstring("a network policy drops this")))
	g.Expect(s.request("192.0.2.7:10250")).To(MatchError(ContainSubstring("node one")), "the node itself")
	g.Expect(direct).To(Equal([]string{"192.0.2.1:6443"}))
	conn, err := net.Dial("unix", s.socket)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = conn.Write([]byte("CONNECT 192.0.2.1:6443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
	g.Expect(err).NotTo(HaveOccurred())
	line, err := bufio.NewReader(conn).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(line).To(ContainSubstring("a network policy drops this"), "users see the status line alone")
}

func TestCertificates(t *testing.T) {
	for name, certificate := range map[string]func(f *fixture) (*tls.Config, error){
		"of another authority": func(f *fixture) (*tls.Config, error) {
			return f.files(f.otherCA, "system:node:one", "system:nodes").Client(serverName)
		},
		"of a user": func(f *fixture) (*tls.Config, error) {
			return f.files(f.ca, "system:admin", "system:masters").Client(serverName)
		},
		"of a false node": func(f *fixture) (*tls.Config, error) {
			return f.files(f.ca, "system:node:one", "").Client(serverName)
		},
		"without a name": func(f *fixture) (*tls.Config, error) {
			return f.files(f.ca, "system:node:", "system:nodes").Client(serverName)
		},
		"that is not there": func(*fixture) (*tls.Config, error) { return &tls.Config{InsecureSkipVerify: true}, nil },
	} {
		t.Run("a server refuses a certificate "+name, func(t *testing.T) {
			g, f := NewWithT(t), newFixture(t)
			registry := prometheus.NewRegistry()
			s := f.apiServer("a", 1, func(c *server.Config) { c.Metrics = registry })
			n := f.node("one", "10.1.0.0/24", func(c *agent.Config) {
				c.TLS = func() (*tls.Config, error) { return certificate(f) }
			})
			g.Eventually(func() (float64, error) {
				return value(registry, "hypershift_tunnel_refused_agents_total")
			}).Should(BeNumerically(">", 1))
			g.Expect(s.Agents()).To(BeEmpty())
			g.Expect(n.Servers()).To(BeEmpty())
		})
	}
	t.Run("an agent refuses a server of another name or authority", func(t *testing.T) {
		f := newFixture(t)
		for _, files := range []struct {
			signer *authority
			name   string
		}{{f.otherCA, serverName}, {f.ca, "other.test"}} {
			g := NewWithT(t)
			client, err := f.files(f.ca, "system:node:one", "system:nodes").Client(files.name)
			g.Expect(err).NotTo(HaveOccurred())
			server, listener := f.files(files.signer, serverName, "").Server(), f.listen("tcp", "127.0.0.1:0")
			go func() {
				if conn, err := listener.Accept(); err == nil {
					_, _ = frame.Accept(t.Context(), conn, server)
				}
			}()
			conn, err := net.Dial("tcp", listener.Addr().String())
			g.Expect(err).NotTo(HaveOccurred())
			_, err = frame.Dial(t.Context(), conn, client)
			g.Expect(err).To(MatchError(ContainSubstring("certificate")))
		}
	})
	t.Run("missing files are named", func(t *testing.T) {
		_, err := frame.Files{Certificate: "none.crt", Key: "none.key"}.Client(serverName)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("none.crt")))
	})
}

// value returns the value of a metric.
func value(registry *prometheus.Registry, name string) (float64, error) {
	families, err := registry.Gather()
	if err != nil {
		return 0, err
	}
	for _, family := range families {
		if family.GetName() == name {
			metric := family.GetMetric()[0]
			return metric.GetCounter().GetValue() + metric.GetGauge().GetValue(), nil
		}
	}
	return 0, errors.New("no metric " + name)
}
