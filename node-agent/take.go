// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/openshift/hypershift/node-agent/cluster"
	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/node-agent/release"
	"github.com/openshift/hypershift/support/nodeplan"
)

const (
	architecture = runtime.GOARCH
	// nextProgram is the path where a newer node-agent is tried before it replaces this one.
	nextProgram = nodeplan.Program + ".next"
	// maxEnds is how often a kubelet may exit before its configuration is rolled back.
	maxEnds = 5
	// patience is the factor by which the timeout is extended while the API server cannot be reached. The outage may have
	// causes other than the configuration.
	patience = 3
)

// currentHash returns the hash of the configuration that the machine runs. Plans of older servers do not contain the
// hash. It is then in the headers of the installation.
func currentHash(h *host.Host) (string, error) {
	raw, err := h.Read(planPath)
	if err != nil {
		return "", err
	}
	plan, err := nodeplan.Parse(raw)
	if err != nil {
		return "", err
	}
	if plan.ConfigHash != "" {
		return plan.ConfigHash, nil
	}
	headers, err := h.Read(serverDir + "headers")
	for line := range strings.Lines(string(headers)) {
		if hash, ok := strings.CutPrefix(strings.TrimSpace(line), "TargetConfigVersionHash: "); ok {
			return hash, nil
		}
	}
	return "", err
}

// prepare fetches everything that a configuration needs, without replacing files in use, and begins the update. The
// machine is unchanged unless prepare succeeds.
func (f *follower) prepare(ctx context.Context, hash string) error {
	if err := f.renewProgram(ctx); err != nil {
		return fmt.Errorf("fetching node-agent: %w", err)
	}
	raw, err := f.ask(ctx, "/node-config/"+hash)
	if err != nil {
		return fmt.Errorf("fetching the node plan: %w", err)
	}
	target, err := nodeplan.Parse(raw.body)
	if err != nil {
		return err
	}
	if target.ConfigHash != hash {
		return fmt.Errorf("the ignition-server gave the plan of configuration %q", target.ConfigHash)
	}
	if err := release.Fetch(ctx, f.host, target); err != nil {
		return err
	}
	if err := release.Sandbox(ctx, f.host, target); err != nil {
		return fmt.Errorf("bringing the pod image into the container runtime: %w", err)
	}
	return updating(f.host, f.healthy).Begin(target)
}

// answer is a response of the ignition-server.
type answer struct {
	body   []byte
	header http.Header
}

// ask sends a request to the ignition-server with the kubelet's certificate. The token from the installation may have
// expired long ago.
func (f *follower) ask(ctx context.Context, path string) (answer, error) {
	endpoint, err := f.host.Read(nodeplan.ServerEndpoint)
	if err != nil {
		return answer{}, err
	}
	if len(endpoint) == 0 {
		return answer{}, errors.New("this machine has no address of the ignition-server, because an older release installed it; replace the machine once")
	}
	return f.askAt(ctx, strings.TrimSpace(string(endpoint)), path)
}

// askAt sends a request to the ignition-server at host[:port].
func (f *follower) askAt(ctx context.Context, endpoint, path string) (answer, error) {
	ca, err := f.host.Read(nodeplan.ServerCA)
	if err != nil {
		return answer{}, err
	}
	config, err := cluster.TLS(f.host, ca)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", nodeplan.ServerCA, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+endpoint+path, nil)
	if err != nil {
		return answer{}, err
	}
	body, header, err := get(&http.Client{Transport: &http.Transport{TLSClientConfig: config}}, request)
	return answer{body, header}, err
}

// renewProgram replaces this program with the node-agent of the ignition-server. That server renders the plan, so its
// node-agent understands the plan.
func (f *follower) renewProgram(ctx context.Context) error {
	served, err := f.ask(ctx, "/node-agent/"+f.arch)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(served.body)
	if served.header.Get("Repr-Digest") != "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":" {
		return errors.New("the downloaded program does not match its checksum")
	}
	present, err := f.host.Read(nodeplan.Program)
	if err != nil || sha256.Sum256(present) == sum {
		return err
	}
	if _, err := f.host.Write(nextProgram, served.body, 0o755); err != nil {
		return err
	}
	if err := f.host.Do(ctx, f.host.Path(nextProgram), "--help"); err != nil {
		return errors.Join(err, os.Remove(f.host.Path(nextProgram)))
	}
	if err := os.Rename(f.host.Path(nextProgram), f.host.Path(nodeplan.Program)); err != nil {
		return err
	}
	f.host.Say("updated to the node-agent of the ignition-server")
	return f.become()
}

// healthy waits until the Node is Ready with the kubelet of the current release, and the kubelet has run for a while.
func (f *follower) healthy(ctx context.Context) error {
	version, err := release.Version(ctx, f.host)
	if err != nil {
		return fmt.Errorf("the kubelet does not run: %w", err)
	}
	started := time.Now()
	answered, reason, before := time.Duration(0), "its status was not read yet", f.ended(ctx)
	for answered < f.ready && time.Since(started) < patience*f.ready {
		ends := f.ended(ctx)
		before = min(before, ends) // The asynchronous restart resets the counter.
		if ends-before >= maxEnds {
			return fmt.Errorf("the kubelet %s ended %d times: `journalctl -u kubelet` on the machine says why", version, ends-before)
		}
		asked := time.Now()
		status, err := f.node.Status(ctx)
		switch {
		case err != nil:
			reason = "the call to the API server failed: " + err.Error()
		case !status.Ready:
			reason = status.Reason
		case status.Version != version:
			reason = "it runs kubelet " + status.Version
		case status.Renewed.After(started.Add(f.alive)):
			return nil
		default:
			reason = "its kubelet has not renewed its lease for long enough"
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.poll):
		}
		if err == nil {
			answered += time.Since(asked)
		}
	}
	return fmt.Errorf("the Node was not Ready with kubelet %s in %s: %s", version, time.Since(started).Round(time.Second), reason)
}

// ended returns the number of exits of the kubelet according to systemd; zero if it is unknown.
func (f *follower) ended(ctx context.Context) int {
	ends, err := release.Ended(ctx, f.host)
	if err != nil {
		return 0
	}
	return ends
}

// removeOld removes the files of the previous release.
func (f *follower) removeOld(ctx context.Context) error {
	return release.RemoveOthers(ctx, f.host, nil)
}
