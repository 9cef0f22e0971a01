// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
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

// otherAddress is a further one of the management node, such as a virtual IP is.
const otherAddress = "172.30.240.250"

// goOver takes the cluster to another address and back, while a client that was there before writes by the first one: it loses nothing, and no
// machine is touched.
func (s *suite) goOver(t *testing.T) {
	s.must(t, s.Type(t.Context(), "ip", "-n", "hs-mgmt", "address", "replace", otherAddress+"/32", "dev", "hsbr0"))
	// kube-proxy knows it when it writes all of its rules next; who moves addresses tells it, as our virtual IP does.
	s.must(t, s.Type(t.Context(), "ip", "netns", "exec", "hs-mgmt", "nft", "add", "element", "ip", "kube-proxy", "nodeport-ips", "{ "+otherAddress+" }"))
	guest, err := s.GuestClient(cluster)
	s.must(t, err)
	before, calls := s.standing(t), s.changes(t)
	writer := s.write(t, guest)
	for _, host := range []string{otherAddress, env.Gateway} {
		s.publishAt(t, host)
		s.reach(t, "all nodes go by "+host, long, s.goesBy(host))
	}
	g := NewWithT(t)
	g.Expect(writer.end()).To(BeEmpty(), "a write was lost")
	s.Say("%d writes, the slowest took %s", writer.count, writer.slowest.Round(100*time.Millisecond))
	g.Expect(s.standing(t)).To(Equal(before), "nodes were Ready all the time")
	g.Expect(s.changes(t)).To(Equal(calls), "MAAS was asked to change machines")
}

// standing says of each node which one it is, and since when it is Ready.
func (s *suite) standing(t *testing.T) map[string]string {
	t.Helper()
	nodes, err := s.nodes(t.Context())
	s.must(t, err)
	all := map[string]string{}
	for _, n := range nodes.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				all[n.Name] = fmt.Sprintf("%s %s since %s", n.UID, c.Status, c.LastTransitionTime)
			}
		}
	}
	return all
}

// publishAt sets the address of all services.
func (s *suite) publishAt(t *testing.T, host string) {
	t.Helper()
	hc := &hyperv1.HostedCluster{}
	s.must(t, s.c.Get(t.Context(), client.ObjectKey{Namespace: journey.Namespace, Name: cluster}, hc))
	before := hc.DeepCopy()
	for i := range hc.Spec.Services {
		hc.Spec.Services[i].ServicePublishingStrategy.NodePort.Address = host
	}
	s.must(t, s.c.Patch(t.Context(), hc, client.MergeFrom(before)))
}

// goesBy checks that the cluster has come to an address, and says how far it is.
func (s *suite) goesBy(host string) journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		hc := &hyperv1.HostedCluster{}
		if err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.Namespace, Name: cluster}, hc); err != nil {
			return false, "", err
		}
		nodes, err := s.nodes(ctx)
		if err != nil {
			return false, "", err
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

// writer writes to the guest, one write after the other, and tries each again as clients do.
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
	t.Cleanup(func() { _ = guest.Delete(context.Background(), object) }) // The walk goes on with the guest as it was.
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

// end stops writing and tells which writes were lost.
func (w *writer) end() []error {
	w.stop()
	w.done.Wait()
	return w.failed
}
