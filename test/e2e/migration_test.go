// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/nodeupdate"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/journey"
)

// otherAddress is an additional address of the management node, like a virtual IP.
const otherAddress = "172.30.240.250"

// endpointMigration migrates the cluster to another address and back, while an existing client writes to the first
// address. The client must lose no write, and no machine may be changed.
func (s *suite) endpointMigration(t *testing.T) {
	s.createCluster(t, 2)
	s.must(t, s.Type(t.Context(), "ip", "-n", "hs-mgmt", "address", "replace", otherAddress+"/32", "dev", "hsbr0"))
	// kube-proxy would notice the new address only at its next full sync. Components that move addresses add it
	// themselves, as our virtual IP does.
	s.must(t, s.Type(t.Context(), "ip", "netns", "exec", "hs-mgmt", "nft", "add", "element", "ip", "kube-proxy", "nodeport-ips", "{ "+otherAddress+" }"))
	guest, err := s.GuestClient(s.cluster)
	s.must(t, err)
	before, err := s.standing(t.Context())
	s.must(t, err)
	calls, lost := s.changes(t), map[string]bool{}
	writer := s.write(t, guest)
	for _, host := range []string{otherAddress, env.Gateway} {
		s.publishAt(t, host)
		s.reach(t, "all nodes go by "+host, long, s.goesBy(host, lost))
	}
	g := NewWithT(t)
	g.Expect(writer.end()).To(BeEmpty(), "a write was lost")
	s.Say("%d writes, the slowest took %s", writer.count, writer.slowest.Round(100*time.Millisecond))
	g.Expect(lost).To(BeEmpty(), "nobody heard of these nodes for a while")
	// A restarted kubelet reports that it is not Ready if its API server responds later than its first report.
	s.reach(t, "the same nodes ready", soon, func(ctx context.Context) (bool, string, error) {
		now, err := s.standing(ctx)
		return maps.Equal(now, before), fmt.Sprint(now), err
	})
	g.Expect(s.changes(t)).To(Equal(calls), "MAAS was asked to change machines")
	s.destroy(t)
}

// standing returns the UID, boot and readiness of each node.
func (s *suite) standing(ctx context.Context) (map[string]string, error) {
	nodes, err := s.nodes(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for i := range nodes.Items {
		all[nodes.Items[i].Name] = fmt.Sprintf("%s ready: %s", identity(&nodes.Items[i]), readiness(&nodes.Items[i]))
	}
	return all, nil
}

// readiness returns the Ready status of a node: Unknown if its kubelet has not reported for a while.
func readiness(node *corev1.Node) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

// publishAt sets the address of all services.
func (s *suite) publishAt(t *testing.T, host string) {
	t.Helper()
	hc := &hyperv1.HostedCluster{}
	s.must(t, s.c.Get(t.Context(), client.ObjectKey{Namespace: journey.Namespace, Name: s.cluster}, hc))
	before := hc.DeepCopy()
	for i := range hc.Spec.Services {
		hc.Spec.Services[i].ServicePublishingStrategy.NodePort.Address = host
	}
	s.must(t, s.c.Patch(t.Context(), hc, client.MergeFrom(before)))
}

// goesBy checks that the cluster uses an address, reports the progress, and records nodes that are lost during the
// migration.
func (s *suite) goesBy(host string, lost map[string]bool) journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		hc := &hyperv1.HostedCluster{}
		if err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.Namespace, Name: s.cluster}, hc); err != nil {
			return false, "", err
		}
		nodes, err := s.nodes(ctx)
		if err != nil {
			return false, "", err
		}
		for i := range nodes.Items {
			if readiness(&nodes.Items[i]) == corev1.ConditionUnknown {
				lost[nodes.Items[i].Name] = true
			}
		}
		said := meta.FindStatusCondition(hc.Status.Conditions, string(hyperv1.PublishedAddressUpToDate))
		if said == nil {
			return false, "nothing is said", nil
		}
		here := hc.Status.ControlPlaneEndpoint.Host == host && strings.HasPrefix(hc.Status.IgnitionEndpoint, host+":")
		for _, n := range nodes.Items {
			api, ignition, _ := strings.Cut(n.Annotations[nodeupdate.CurrentAddress], " ")
			here = here && strings.HasPrefix(api, "https://"+host+":") && ignition == host
		}
		return here && said.Reason == "FormerAddressServed", said.Reason + ": " + said.Message, nil
	}
}

// writer writes to the guest, one write after the other, and retries each write as clients do.
type writer struct {
	stop    context.CancelFunc
	done    sync.WaitGroup
	count   int
	slowest time.Duration
	failed  []error
}

func (s *suite) write(t *testing.T, guest client.Client) *writer {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "address"}}
	s.must(t, guest.Create(t.Context(), object))
	t.Cleanup(func() { _ = guest.Delete(context.Background(), object) }) // The scenario continues with the original guest.
	w := &writer{}
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	w.done.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) { w.one(context.WithoutCancel(ctx), guest) }, 50*time.Millisecond)
	})
	return w
}

func (w *writer) one(ctx context.Context, guest client.Client) {
	w.count++
	began := time.Now()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"n":"%d"}}`, w.count))
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		last = guest.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "address"}}, patch)
		return last == nil, nil
	})
	if err != nil {
		w.failed = append(w.failed, fmt.Errorf("write %d: %w: %w", w.count, err, last))
	}
	w.slowest = max(w.slowest, time.Since(began))
}

// end stops the writes and returns the lost ones.
func (w *writer) end() []error {
	w.stop()
	w.done.Wait()
	return w.failed
}
