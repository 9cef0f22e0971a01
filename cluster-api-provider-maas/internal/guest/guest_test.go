// SPDX-License-Identifier: Apache-2.0

package guest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/guest"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://guest.example.com:6443"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

var (
	key = client.ObjectKey{Namespace: "ns", Name: "demo"}
	id  = "maas:///az1/wq4h8c"
)

type guestWorld struct {
	nodes  *guest.Nodes
	guest  client.Client
	clock  *clocktesting.FakePassiveClock
	lists  int
	dialed *rest.Config
	down   error
}

func newGuest(t *testing.T, kubeconfig string, nodes ...client.Object) *guestWorld {
	t.Helper()
	w := &guestWorld{clock: clocktesting.NewFakePassiveClock(time.Now())}
	w.guest = fakeclient.NewClientBuilder().WithObjects(nodes...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			w.lists++
			if w.down != nil {
				return w.down
			}
			return c.List(ctx, list, opts...)
		}}).Build()
	management := fakeclient.NewClientBuilder()
	if kubeconfig != "" {
		management.WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-kubeconfig"}, Data: map[string][]byte{"value": []byte(kubeconfig)}})
	}
	w.nodes = &guest.Nodes{Reader: management.Build(), Clock: w.clock, Connect: func(cfg *rest.Config) (client.Client, error) {
		w.dialed = cfg
		return w.guest, nil
	}}
	return w
}

func node(name, providerID string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID}}
}

func TestSetProviderID(t *testing.T) {
	for name, tc := range map[string]struct {
		node  *corev1.Node
		names []string
		want  string
		fails error
		says  string
	}{
		"When the Node has the machine's host name, it should get the provider ID": {node("mole", ""), []string{"mole", "mole.maas"}, id, nil, ""},
		"When the Node has the machine's FQDN, it should get the provider ID":      {node("mole.maas", ""), []string{"mole", "mole.maas"}, id, nil, ""},
		"When the machine's name has capitals, it should match the Node":           {node("mole", ""), []string{"Mole"}, id, nil, ""},
		"When the Node already has the provider ID, it should stay unchanged":      {node("mole", id), []string{"mole"}, id, nil, ""},
		"When the Node has another provider ID, the error should name the remedy":  {node("mole", "maas:///az2/xxxxxx"), []string{"mole"}, "maas:///az2/xxxxxx", nil, "delete the Node"},
		"When there is no such Node, it should return ErrNoNode":                   {node("moles", ""), []string{"mole"}, "", guest.ErrNoNode, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newGuest(t, kubeconfig, tc.node)
			err := w.nodes.SetProviderID(t.Context(), key, tc.names, id, "az1")
			switch {
			case tc.fails != nil:
				g.Expect(err).To(MatchError(tc.fails))
			case tc.says != "":
				g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			default:
				g.Expect(err).NotTo(HaveOccurred())
			}
			got := &corev1.Node{}
			g.Expect(w.guest.Get(t.Context(), client.ObjectKeyFromObject(tc.node), got)).To(Succeed())
			g.Expect(got.Spec.ProviderID).To(Equal(tc.want))
			if tc.want == id {
				g.Expect(got.Labels).To(HaveKeyWithValue("topology.kubernetes.io/zone", "az1"))
			}
			g.Expect(w.dialed.Timeout).To(Equal(5*time.Second), "a guest that is away must not hold a worker")
		})
	}
}

func TestOneListServesAllMachines(t *testing.T) {
	g := NewWithT(t)
	w := newGuest(t, kubeconfig, node("a", ""), node("b", ""))
	g.Expect(w.nodes.SetProviderID(t.Context(), key, []string{"a"}, "maas:///z/a", "az1")).To(Succeed())
	g.Expect(w.nodes.SetProviderID(t.Context(), key, []string{"b"}, "maas:///z/b", "az1")).To(Succeed())
	g.Expect(w.nodes.SetProviderID(t.Context(), key, []string{"c"}, "maas:///z/c", "az1")).To(MatchError(guest.ErrNoNode))
	g.Expect(w.lists).To(Equal(1))
	g.Expect(w.guest.Create(t.Context(), node("c", ""))).To(Succeed())
	w.clock.SetTime(w.clock.Now().Add(11 * time.Second))
	g.Expect(w.nodes.SetProviderID(t.Context(), key, []string{"c"}, "maas:///z/c", "az1")).To(Succeed())
}

func TestGuestThatIsAway(t *testing.T) {
	g := NewWithT(t)
	w := newGuest(t, kubeconfig, node("a", ""))
	w.down = errors.New("connection refused")
	for range 20 {
		g.Expect(w.nodes.SetProviderID(t.Context(), key, []string{"a"}, id, "az1")).To(MatchError(w.down))
	}
	g.Expect(w.lists).To(Equal(1), "twenty machines must not each wait for it")
	w.down = nil
	w.clock.SetTime(w.clock.Now().Add(11 * time.Second))
	g.Expect(w.nodes.SetProviderID(t.Context(), key, []string{"a"}, id, "az1")).To(Succeed())
}

func TestKubeconfig(t *testing.T) {
	g := NewWithT(t)
	g.Expect(newGuest(t, "").nodes.SetProviderID(t.Context(), key, nil, id, "az1")).To(MatchError(guest.ErrNoNode), "it is waited for")
	err := newGuest(t, "{").nodes.SetProviderID(t.Context(), key, nil, id, "az1")
	g.Expect(err).To(MatchError(ContainSubstring(`key "value" of Secret ns/demo-kubeconfig is unusable`)))
	t.Run("When a kubeconfig refers to a file or a program, it should be rejected before the guest is dialed", func(t *testing.T) {
		for _, field := range []string{"tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token",
			"exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}"} {
			g, w := NewWithT(t), newGuest(t, strings.Replace(kubeconfig, "users: [{name: u, user: {",
				"users: [{name: u, user: {"+field+", ", 1))
			err := w.nodes.SetProviderID(t.Context(), key, []string{"a"}, id, "az1")
			g.Expect(err).To(MatchError(ContainSubstring("users[].user.")))
			g.Expect(w.dialed).To(BeNil())
		}
	})
}

func TestZoneOfNode(t *testing.T) {
	for name, tc := range map[string]struct{ have, zone, want string }{
		"When the Node has no zone label, it should get the machine's zone":            {"", "az1", "az1"},
		"When the Node has a zone label, it should stay unchanged":                     {"mine", "az1", "mine"},
		"When the zone name is not a valid label value, it should be converted to one": {"", "rack 7 ", "rack-7"},
		"When the zone name is too long for a label value, it should be truncated":     {"", strings.Repeat("z", 80), strings.Repeat("z", 63)},
		"When MAAS reports no zone, the Node should get no zone label":                 {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n := node("mole", id)
			if tc.have != "" {
				n.Labels = map[string]string{corev1.LabelTopologyZone: tc.have}
			}
			w := newGuest(t, kubeconfig, n)
			g.Expect(w.nodes.SetProviderID(t.Context(), key, []string{"mole"}, id, tc.zone)).To(Succeed())
			g.Expect(w.guest.Get(t.Context(), client.ObjectKeyFromObject(n), n)).To(Succeed())
			g.Expect(n.Labels[corev1.LabelTopologyZone]).To(Equal(tc.want))
		})
	}
}
