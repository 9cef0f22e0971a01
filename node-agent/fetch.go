// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/openshift/hypershift/node-agent/cluster"
	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/support/nodeplan"
)

const (
	// serverDir holds what the first boot stage wrote for access to the ignition-server.
	serverDir = "/etc/hypershift/ignition-server/"
	// planPath holds the plan. With it, a machine that boots again needs no server. The token for the server may have
	// expired.
	planPath = nodeplan.Path
	// joined is the path of the kubelet's kubeconfig, which is written once the kubelet has its first certificate.
	joined = cluster.Kubeconfig

	// planAge is how long a machine that has not joined uses its plan. The bootstrap token in the plan is valid for an
	// hour.
	planAge = 40 * time.Minute

	fetchTimeout = time.Minute
	maxPlan      = 64 << 20
)

// plan returns the plan on the machine, or else the plan of the ignition-server.
func plan(ctx context.Context, h *host.Host) (*nodeplan.Plan, error) {
	raw, err := h.Read(planPath)
	if err != nil {
		return nil, err
	}
	if raw != nil && !outdated(h) {
		return nodeplan.Parse(raw)
	}
	fetched, err := fetch(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("fetching the node plan: %w", err)
	}
	parsed, err := nodeplan.Parse(fetched)
	if err != nil {
		return nil, err
	}
	if _, err := h.Write(planPath, fetched, 0o600); err != nil {
		return nil, fmt.Errorf("storing the node plan: %w", err)
	}
	h.Say("the ignition-server gave this machine its node plan")
	return parsed, nil
}

// outdated reports whether the plan is too old to join the cluster with it. A plan that Ignition wrote never counts as
// outdated, since it cannot be fetched again.
func outdated(h *host.Host) bool {
	info, err := os.Stat(h.Path(planPath))
	return err == nil && time.Since(info.ModTime()) > planAge && !h.Exists(joined) && h.Exists(serverDir+"headers")
}

func fetch(ctx context.Context, h *host.Host) ([]byte, error) {
	endpoint, err := h.Read(serverDir + "endpoint")
	if err != nil {
		return nil, err
	}
	client, err := client(h)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+strings.TrimSpace(string(endpoint))+"/ignition", nil)
	if err != nil {
		return nil, err
	}
	if err := addHeaders(h, request); err != nil {
		return nil, err
	}
	body, _, err := get(client, request)
	return body, err
}

// get returns the body and the headers of a successful response.
func get(client *http.Client, request *http.Request) ([]byte, http.Header, error) {
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(request.Context(), fetchTimeout)
	defer cancel()
	answer, err := client.Do(request.WithContext(ctx))
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxPlan))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the answer of %s: %w", request.URL, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("%s answered %s: %s", request.URL, answer.Status, strings.TrimSpace(string(body[:min(len(body), 300)])))
	}
	return body, answer.Header, nil
}

// client returns an HTTP client that trusts only the CA of the cluster. It uses no proxy, as for the API server.
func client(h *host.Host) (*http.Client, error) {
	ca, err := h.Read(serverDir + "ca.crt")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New(serverDir + "ca.crt holds no certificate")
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}}, nil
}

// addHeaders adds the headers that the first boot stage wrote as lines "name: value". The token is one of them.
func addHeaders(h *host.Host, request *http.Request) error {
	text, err := h.Read(serverDir + "headers")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			request.Header.Set(name, value)
		}
	}
	return nil
}
