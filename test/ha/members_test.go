// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/controllers/etcd"
	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/test/journey"
)

const (
	// size is the number of members of a highly available etcd.
	size = 3
	// membersLimit is the timeout for all requests to them together.
	membersLimit = 30 * time.Second
)

// reached is a member of etcd and its URL for this test.
type reached struct {
	etcd.Members
	url string
}

// agree checks each member of etcd directly. The member must have a vote and a leader, know three voting members, and
// store the same data as the other members.
func (s *suite) agree(ctx context.Context) (bool, string, error) {
	ctx, cancel := context.WithTimeout(ctx, membersLimit)
	defer cancel()
	pods := &corev1.PodList{}
	if err := s.c.List(ctx, pods, client.InNamespace(journey.HostedNamespace(cluster)), client.MatchingLabels{"app": component.Name}); err != nil {
		return false, "", err
	}
	var asked []reached
	revision := int64(0)
	for _, pod := range pods.Items {
		url, closing, err := s.forward(ctx, pod.Name, 2379)
		if err != nil {
			return false, "", err
		}
		defer closing()
		members, err := etcd.TLSDialer(s.c)(ctx, pod.Namespace, []string{url})
		if err != nil {
			return false, "", err
		}
		defer func() { _ = members.Close() }()
		status, err := well(ctx, reached{members, url})
		if err != nil {
			return false, pod.Name + ": " + err.Error(), nil
		}
		if at := status.Header.Revision; revision == 0 || at < revision {
			revision = at
		}
		asked = append(asked, reached{members, url})
	}
	return same(ctx, asked, revision)
}

// well returns the status of a healthy member, or an error that says what is wrong with it.
func well(ctx context.Context, member reached) (*clientv3.StatusResponse, error) {
	status, err := member.Status(ctx, member.url)
	if err != nil {
		return nil, err
	}
	list, err := member.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	if status.IsLearner || status.Leader == 0 || len(status.Errors) > 0 {
		return nil, fmt.Errorf("learner: %t, leader: %x, errors: %v", status.IsLearner, status.Leader, status.Errors)
	}
	if len(list.Members) != size {
		return nil, fmt.Errorf("it knows of %d members", len(list.Members))
	}
	for _, other := range list.Members {
		if other.IsLearner || len(other.ClientURLs) == 0 {
			return nil, fmt.Errorf("%q (%x) has not joined", other.Name, other.ID)
		}
	}
	return status, nil
}

// same reports whether the members store the same data at a revision that all of them have. Concurrent compaction
// causes brief differences.
func same(ctx context.Context, members []reached, revision int64) (bool, string, error) {
	hashes := map[string]bool{}
	for _, member := range members {
		answer, err := member.HashKV(ctx, member.url, revision)
		if err != nil {
			return false, "", err
		}
		hashes[fmt.Sprintf("%08x since revision %d", answer.Hash, answer.CompactRevision)] = true
	}
	return len(members) == size && len(hashes) == 1, fmt.Sprintf("%d members, at revision %d: %v", len(members), revision, hashes), nil
}

// forward forwards a local port to a port of a pod through the management cluster's API server, as `kubectl
// port-forward` does. closing stops it.
func (s *suite) forward(ctx context.Context, pod string, port int) (url string, closing func(), err error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Path("kubeconfig"))
	if err != nil {
		return "", nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return "", nil, err
	}
	at := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(journey.HostedNamespace(cluster)).Name(pod).SubResource("portforward").URL()
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	way, err := portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at), []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return "", nil, err
	}
	go func() { ended <- way.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		return "", nil, fmt.Errorf("port-forward to %s ended: %w", pod, err)
	case <-ctx.Done():
		close(stop)
		return "", nil, ctx.Err()
	}
	ports, err := way.GetPorts()
	if err != nil {
		close(stop)
		return "", nil, err
	}
	// The certificate is valid for the name, not for an address.
	return fmt.Sprintf("https://localhost:%d", ports[0].Local), func() { close(stop) }, nil
}
