// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/machine/network"
)

// pollInterval is the interval between checks of a condition. It is short because everything runs on this machine.
const pollInterval = 100 * time.Millisecond

// noProxy ignores the proxy of the user's environment: the addresses are local.
func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// Until calls condition until it returns nil or the context ends. When the context ends, the error contains the last
// error of condition.
func Until(ctx context.Context, condition func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		missing := condition(ctx)
		if missing == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), missing)
		case <-ticker.C:
		}
	}
}

// WaitAPI returns when the kube-apiserver is ready.
func WaitAPI(ctx context.Context, e env.Env) error {
	config, err := restConfig(e)
	if err != nil {
		return err
	}
	server, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	return Until(ctx, func(ctx context.Context) error { return get(ctx, server, env.APIURL+"/readyz") })
}

func get(ctx context.Context, server *http.Client, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := server.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, answer.Status)
	}
	return nil
}

// WaitNode returns when the node is Ready.
func WaitNode(ctx context.Context, c client.Client, node string) error {
	return Until(ctx, func(ctx context.Context) error {
		found := &corev1.Node{}
		if err := c.Get(ctx, client.ObjectKey{Name: node}, found); err != nil {
			return err
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
				return fmt.Errorf("node %s is not ready: %s", node, condition.Message)
			}
			if condition.Type == corev1.NodeReady {
				return nil
			}
		}
		return errors.New("the kubelet has not reported yet")
	})
}

// WaitDNS returns when the cluster's DNS answers at its Service's address, which proves that pods, Services and DNS
// work.
func WaitDNS(ctx context.Context) error {
	resolver := &net.Resolver{PreferGo: true, Dial: dialDNS}
	return Until(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := resolver.LookupHost(ctx, "kubernetes.default.svc."+env.ClusterDomain+".")
		return err
	})
}

// dialDNS connects to the Service from the management node's network.
func dialDNS(ctx context.Context, transport, _ string) (connection net.Conn, err error) {
	err = network.Do(env.Namespace, func() error {
		connection, err = (&net.Dialer{}).DialContext(ctx, transport, net.JoinHostPort(env.DNSServiceIP, "53"))
		return err
	})
	return connection, err
}
