// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/openshift/hypershift/node-agent/cluster"
	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/node-agent/release"
	"github.com/openshift/hypershift/support/nodeplan"
)

// address holds the addresses of the control plane.
type address struct {
	// api is the URL of the API server, ignition the host of the ignition-server; empty if unknown.
	api, ignition string
}

func (a address) String() string { return strings.TrimSpace(a.api + " " + a.ignition) }

// parseAddress parses an annotation; an empty annotation yields the zero address.
func parseAddress(text string) address {
	api, ignition, _ := strings.Cut(text, " ")
	return address{api, ignition}
}

// goesBy returns the current address, from the files of the machine.
func goesBy(h *host.Host) (address, error) {
	api, err := cluster.Server(h)
	if err != nil {
		return address{}, err
	}
	server, err := h.Read(nodeplan.ServerEndpoint)
	return address{api, hostOf(strings.TrimSpace(string(server)))}, err
}

// move switches the machine to the address in the annotation of its Node. It restarts the kubelet, which reads its
// kubeconfig only at startup; pods keep running. The Node is annotated with the address that the running kubelet uses:
// before the files change, and again after the restart. A machine that is interrupted in between restarts the kubelet
// once more.
func (f *follower) move(ctx context.Context, now cluster.Annotations) error {
	at, err := goesBy(f.host)
	if err != nil {
		return err
	}
	wanted := parseAddress(now[desiredAddress])
	if wanted.api == "" {
		wanted = at
	}
	if at.ignition == "" || wanted.ignition == "" {
		wanted.ignition = at.ignition
	}
	told, known := now[currentAddress]
	if wanted == at && !known && f.direct(at) {
		return nil // It is reported with the configuration.
	}
	if wanted == at && told == at.String() && f.direct(at) {
		return f.tellAddress(ctx, now, at, "")
	}
	if !known {
		if err := f.tellAddress(ctx, now, at, ""); err != nil {
			return err
		}
		told = at.String()
	}
	if err := f.reach(ctx, wanted); err != nil {
		problem := fmt.Errorf("address %s is not reachable; nothing was changed: %w", wanted, err)
		return errors.Join(problem, f.tellAddress(ctx, now, parseAddress(told), sentence(problem.Error())))
	}
	if err := f.goBy(ctx, parseAddress(told), wanted); err != nil {
		return err
	}
	f.host.Say("this machine now uses address %s", wanted)
	return f.tellAddress(ctx, now, wanted, "")
}

// tellAddress reports the current address on the Node.
func (f *follower) tellAddress(ctx context.Context, now cluster.Annotations, at address, message string) error {
	return f.say(ctx, now, cluster.Annotations{currentAddress: at.String(), addressMessage: message})
}

// reach checks that both servers answer at an address before the machine depends on it. The API server must know this
// Node, and the ignition-server must answer too.
func (f *follower) reach(ctx context.Context, wanted address) error {
	if err := (&cluster.Node{Host: f.host, Name: f.node.Name, Server: wanted.api}).Reach(ctx); err != nil {
		return err
	}
	if wanted.ignition == "" {
		return nil
	}
	server, err := f.host.Read(nodeplan.ServerEndpoint)
	if err != nil {
		return err
	}
	_, err = f.askAt(ctx, withHost(strings.TrimSpace(string(server)), wanted.ignition), "/healthz")
	return err
}

// goBy writes the address to the files. It restarts the kubelet if the running one uses a different API server.
func (f *follower) goBy(ctx context.Context, running, wanted address) error {
	server, err := f.host.Read(nodeplan.ServerEndpoint)
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(string(server)); text != "" {
		if _, err := f.host.Write(nodeplan.ServerEndpoint, []byte(withHost(text, wanted.ignition)+"\n"), 0o644); err != nil {
			return err
		}
	}
	direct := f.direct(wanted)
	if err := f.goDirect(wanted); err != nil {
		return err
	}
	if err := cluster.SetServer(f.host, wanted.api); err != nil {
		return err
	}
	if running.api == wanted.api && direct {
		return nil
	}
	return release.RestartKubelet(ctx, f.host)
}

// noProxy is the prefix of the line with the proxy exceptions in the environment of the units.
const noProxy = `NO_PROXY="`

// direct reports whether the kubelet reaches an API server without a proxy.
func (f *follower) direct(a address) bool {
	environment, err := f.host.Read(nodeplan.ProxyEnvironment)
	if err != nil || environment == nil {
		return true
	}
	for line := range strings.Lines(string(environment)) {
		if list, ok := strings.CutPrefix(strings.TrimSpace(line), noProxy); ok {
			list = strings.TrimSuffix(list, `"`)
			return list == "*" || strings.Contains(","+list+",", ","+hostOf(a.api)+",")
		}
	}
	return true
}

// goDirect adds the API server to the proxy exceptions of the kubelet.
func (f *follower) goDirect(a address) error {
	if f.direct(a) {
		return nil
	}
	environment, err := f.host.Read(nodeplan.ProxyEnvironment)
	if err != nil {
		return err
	}
	text := strings.Replace(string(environment), noProxy, noProxy+hostOf(a.api)+",", 1)
	_, err = f.host.Write(nodeplan.ProxyEnvironment, []byte(text), 0o600)
	return err
}

// hostOf returns the host of a URL, of host:port or of a plain host.
func hostOf(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return u.Hostname()
	}
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return text
}

// withHost replaces the host in host[:port].
func withHost(text, to string) string {
	if _, port, err := net.SplitHostPort(text); err == nil {
		return net.JoinHostPort(to, port)
	}
	return to
}
