// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/pace"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/kubeconfig"
	"github.com/openshift/hypershift/support/maas"
)

const (
	// parallelCalls limits how many of the controllers' workers may wait for tenants' clusters concurrently. Each
	// namespace has at most one call in flight.
	parallelCalls = pace.Workers / 2
	// goodFor is how long a finding about an external cluster is cached.
	goodFor             = 5 * time.Minute
	firstWait, lastWait = 10 * time.Second, 2 * time.Minute
	busyWait            = 2 * time.Second
	// renewWait is how long a connection must be used before a changed kubeconfig creates a new one without backoff.
	renewWait = 10 * time.Second
	// unusedFor is how long an unused connection is kept.
	unusedFor = time.Hour
)

// place is where virtual machines run: a client with the operator's rights in that cluster, and the namespace.
type place struct {
	client.Client
	namespace string
	// get reads a path of the API server; nil for the management cluster.
	get func(ctx context.Context, path string) ([]byte, error)
}

// infraClusters are the external clusters that run virtual machines. A tenant chooses their addresses. Therefore each
// call is short, contacts only addresses that the guard allows, and is not repeated immediately after a failure. The
// zero value works.
type infraClusters struct {
	guard *maas.Guard
	clock clock.PassiveClock // nil means the real one
	// timeout limits all calls of one use; zero means infraTimeout.
	timeout time.Duration

	mu    sync.Mutex
	known map[string]*infraCluster // by hosted namespace
	// calls contains the user namespaces with a call in flight.
	calls map[string]bool
}

// infraCluster is the external cluster of one hosted cluster.
type infraCluster struct {
	// fingerprint changes with the kubeconfig and the namespace.
	fingerprint string
	place       place
	// user is the namespace of the HostedCluster.
	user       string
	made, used time.Time
	// down is set while the cluster does not respond, and failed while calls about one subject fail.
	down   *setback
	failed map[string]*setback
	// found are the findings of calls, by subject.
	found map[string]finding
}

// setback is the failure of the last call, and the time until which no other call is made.
type setback struct {
	err   error
	until time.Time
	wait  time.Duration
}

// after returns the next setback, with twice the wait of the previous one, which may be nil.
func (s *setback) after(err error, now time.Time) *setback {
	wait := firstWait
	if s != nil {
		wait = min(2*s.wait, lastWait)
	}
	return &setback{err: err, until: now.Add(wait), wait: wait}
}

// holds reports whether it is too early for another call.
func (s *setback) holds(now time.Time) bool { return s != nil && now.Before(s.until) }

type finding struct {
	value any
	until time.Time
}

// target identifies the cluster that runs the virtual machines of a HostedCluster or NodePool.
type target struct {
	// hosted is the hosted control plane namespace, and user is the HostedCluster's namespace.
	hosted, user string
	// credentials are nil if it is the management cluster.
	credentials *hyperv1.KubevirtPlatformCredentials
}

// use calls act with a client for the virtual machines' cluster, and their namespace. c is the client of the
// management cluster. An error of an external cluster is returned as an infraError, except for NotFound and
// AlreadyExists, which act may check. After an error, use returns that error without calling act about the same
// subject again until a wait has passed. The wait doubles with each failure, even if the errors differ.
func (i *infraClusters) use(ctx context.Context, c client.Client, at target, about string,
	act func(ctx context.Context, where place) error) error {
	if at.credentials == nil {
		return act(ctx, place{Client: c, namespace: at.hosted})
	}
	raw, err := at.kubeconfig(ctx, c)
	if err != nil {
		return err
	}
	cluster, err := i.cluster(at, raw)
	if err != nil {
		return err
	}
	if err := i.begin(cluster, about); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(i.timeout, infraTimeout))
	defer cancel()
	err = act(ctx, cluster.place)
	return i.end(cluster, about, err)
}

// kubeconfig returns the copy that the provider uses too, or else the user's kubeconfig.
func (at target) kubeconfig(ctx context.Context, c client.Reader) ([]byte, error) {
	copied := &corev1.Secret{}
	err := c.Get(ctx, client.ObjectKey{Namespace: at.hosted, Name: infraCredentials}, copied)
	if err == nil && len(copied.Data[kubeconfigKey]) > 0 && hosted.Trusted(copied) == nil {
		return copied.Data[kubeconfigKey], nil
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", at.hosted, infraCredentials, err)
	}
	ref := at.credentials.InfraKubeConfigSecret
	if ref == nil {
		return nil, &infraError{reason: reasonNoCredentials, message: "no kubeconfig is named"}
	}
	key := client.ObjectKey{Namespace: at.user, Name: ref.Name}
	source := &corev1.Secret{}
	if err := c.Get(ctx, key, source); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	raw := source.Data[ref.Key]
	if len(raw) == 0 {
		message := fmt.Sprintf("Secret %s has no kubeconfig under %s", key, ref.Key)
		return nil, &infraError{reason: reasonNoCredentials, message: message}
	}
	if _, err := kubeconfig.Parse(raw); err != nil {
		message := fmt.Sprintf("the kubeconfig under %s of Secret %s is not used: %v", ref.Key, key, err)
		return nil, &infraError{reason: reasonNoCredentials, message: message}
	}
	return raw, nil
}

// cluster returns the existing connection, or creates a new one.
func (i *infraClusters) cluster(at target, raw []byte) (*infraCluster, error) {
	sum := sha256.Sum256(append([]byte(at.credentials.InfraNamespace+"\n"), raw...))
	fingerprint := hex.EncodeToString(sum[:])
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	if known := i.known[at.hosted]; known != nil {
		if known.fingerprint == fingerprint {
			known.used = now
			return known, nil
		}
		if left := renewWait - now.Sub(known.made); left > 0 {
			return nil, &infraError{reason: reasonBusy, message: "its kubeconfig changed a moment ago", again: left}
		}
	}
	where, err := connect(raw, at.credentials.InfraNamespace, i.guard, cmp.Or(i.timeout, infraTimeout))
	if err != nil {
		return nil, err
	}
	if i.known == nil {
		i.known = map[string]*infraCluster{}
	}
	for hosted, cluster := range i.known {
		if now.Sub(cluster.used) > unusedFor {
			delete(i.known, hosted)
		}
	}
	i.known[at.hosted] = &infraCluster{
		fingerprint: fingerprint, place: where, user: at.user, made: now, used: now, found: map[string]finding{},
		failed: map[string]*setback{},
	}
	return i.known[at.hosted], nil
}

// begin allows a call, unless the last one just failed or too many calls are in flight.
func (i *infraClusters) begin(cluster *infraCluster, about string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, last := range []*setback{cluster.down, cluster.failed[about]} {
		if last.holds(i.now()) {
			return last.err
		}
	}
	if len(i.calls) >= parallelCalls || i.calls[cluster.user] {
		return &infraError{reason: reasonBusy, message: "too many requests to such clusters are in progress; the request is retried", again: busyWait}
	}
	if i.calls == nil {
		i.calls = map[string]bool{}
	}
	i.calls[cluster.user] = true
	return nil
}

// end records a failure: for all subjects if the connection failed, otherwise for one. It doubles the wait with each
// consecutive failure.
func (i *infraClusters) end(cluster *infraCluster, about string, err error) error {
	told := tell(err)
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.calls, cluster.user)
	var failure *infraError
	if errors.As(told, &failure) && failure.connection {
		cluster.down = cluster.down.after(failure, i.now())
		failure.again = cluster.down.wait
		return failure
	}
	cluster.down = nil
	if told == nil {
		delete(cluster.failed, about)
		return nil
	}
	cluster.failed[about] = cluster.failed[about].after(told, i.now())
	return told
}

// recall returns a recent finding about an external cluster. Nothing is cached about the management cluster, because
// its objects are watched.
func (i *infraClusters) recall(at target, about string) (any, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	cluster := i.known[at.hosted]
	if at.credentials == nil || cluster == nil {
		return nil, false
	}
	found, known := cluster.found[about]
	return found.value, known && i.now().Before(found.until)
}

func (i *infraClusters) remember(at target, about string, value any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	cluster := i.known[at.hosted]
	if cluster == nil {
		return
	}
	for other, old := range cluster.found {
		if !i.now().Before(old.until) {
			delete(cluster.found, other)
		}
	}
	cluster.found[about] = finding{value: value, until: i.now().Add(goodFor)}
}

// forget removes the findings of a cluster about the given subjects, or about all if none is given. The connection and
// its failures stay.
func (i *infraClusters) forget(hosted string, about ...string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if cluster := i.known[hosted]; cluster != nil {
		maps.DeleteFunc(cluster.found, func(each string, _ finding) bool {
			return len(about) == 0 ||
				slices.Contains(about, each)
		})
	}
}

func (i *infraClusters) now() time.Time {
	if i.clock == nil {
		return time.Now()
	}
	return i.clock.Now()
}
