// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// life is a fixture with the MaasMachine "m". It has the objects that Cluster API creates for m, in a fake client,
// and a simulated MAAS with the same clock.
type life struct {
	*Reconciler
	site *simtest.Site
	said *events.FakeRecorder
	t    *testing.T
}

// newLife returns a fixture with a MAAS of this seed, which is called as this user.
func newLife(t *testing.T, user, seed string, change ...func(*infrav1.MaasMachine)) *life {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(infrav1.AddToScheme(s), clusterv1.AddToScheme(s), corev1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	site := simtest.New(t, seed)
	site.Clock.SetTime(time.Now().UTC().Truncate(time.Second).Add(-time.Hour))
	l := &life{site: site, said: events.NewFakeRecorder(100), t: t}
	c := fakeclient.NewClientBuilder().WithScheme(s).WithStatusSubresource(&infrav1.MaasMachine{}).WithObjects(born(site.Clock.Now(), change)...).Build()
	l.Reconciler = &Reconciler{Client: c, Reader: c, Recorder: l.said, Clock: site.Clock, Identities: identity.NewResolver(identity.Options{Clock: site.Clock,
		Template:    maas.Config{Clock: site.Clock, Retry: maas.RetryPolicy{Attempts: -1}},
		Environment: map[string][]byte{maas.SecretKeyEndpoint: []byte(simtest.Listen(t, site.Simulator)), maas.SecretKeyAPIKey: []byte(site.Key(user))}})}
	l.Default()
	return l
}

// born returns the objects that exist when a MaasMachine is created.
func born(at time.Time, change []func(*infrav1.MaasMachine)) []client.Object {
	meta := func(name string, labels ...string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{}, CreationTimestamp: metav1.NewTime(at)}
		for i := 0; i < len(labels); i += 2 {
			m.Labels[labels[i]] = labels[i+1]
		}
		return m
	}
	cluster := &clusterv1.Cluster{ObjectMeta: meta("demo"), Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{Name: "demo"}}}
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	infra := &infrav1.MaasCluster{ObjectMeta: meta("demo")}
	infra.UID = "8d3c61f2-3f43-4f0b-8c55-1f0a5a6d9f10"
	owner := &clusterv1.Machine{ObjectMeta: meta("m"), Spec: clusterv1.MachineSpec{ClusterName: "demo", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("bootstrap")}}}
	secret := &corev1.Secret{ObjectMeta: meta("bootstrap"), Data: map[string][]byte{"value": []byte("#cloud-config\nx: 1\n")}}
	m := &infrav1.MaasMachine{ObjectMeta: meta("m", clusterv1.ClusterNameLabel, "demo"), Spec: infrav1.MaasMachineSpec{Image: "custom/node-image", MinCPU: ptr.To(2)}}
	m.UID = "0f3c61f2-3f43-4f0b-8c55-1f0a5a6d9f10"
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "m", UID: "machine"}}
	for _, do := range change {
		do(m)
	}
	return []client.Object{cluster, infra, owner, secret, m}
}

// try advances MAAS by a duration, then reconciles the MaasMachine.
func (l *life) try(after time.Duration) (ctrl.Result, error) {
	for ; after > 0; after -= 5 * time.Second {
		l.site.Pass(min(after, 5*time.Second))
	}
	return l.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m"}})
}

func (l *life) pass(after time.Duration) ctrl.Result {
	l.t.Helper()
	result, err := l.try(after)
	if err != nil {
		l.t.Fatal(err)
	}
	return result
}

// expect runs a reconcile and checks its requeue delay, the Ready condition, and its events.
func (l *life) expect(after, again time.Duration, ready string, events ...string) {
	l.t.Helper()
	result := l.pass(after)
	if !soon(result, again) {
		l.t.Errorf("it comes back after %s, and not %s", result.RequeueAfter, again)
	}
	if got := conditionsOf(l.now(), ConditionReady); ready != "" && !slices.Equal(got, []string{"Ready " + ready}) {
		l.t.Errorf("it is %v, and not %s", got, ready)
	}
	if diff := cmp.Diff(events, told(l.said)); diff != "" {
		l.t.Errorf("events (-want +got):\n%s", diff)
	}
}

// soon reports whether a reconcile is requeued after a duration, plus jitter.
func soon(result ctrl.Result, after time.Duration) bool {
	return result.RequeueAfter >= after && result.RequeueAfter <= after+after/5
}

// told returns the events since the last call: "Warning NoCapacity".
func told(recorder *events.FakeRecorder) []string {
	var all []string
	for len(recorder.Events) > 0 {
		words := strings.SplitN(<-recorder.Events, " ", 3)
		all = append(all, fmt.Sprintf("%s %s", words[0], words[1]))
	}
	return all
}

// now returns the stored MaasMachine. Its name is empty if it is gone.
func (l *life) now() *infrav1.MaasMachine {
	l.t.Helper()
	m := &infrav1.MaasMachine{}
	if err := l.Client.Get(l.t.Context(), client.ObjectKey{Namespace: "ns", Name: "m"}, m); err != nil && !apierrors.IsNotFound(err) {
		l.t.Fatal(err)
	}
	return m
}

func (l *life) infra() *infrav1.MaasCluster {
	l.t.Helper()
	m := &infrav1.MaasCluster{}
	if err := l.Client.Get(l.t.Context(), client.ObjectKey{Namespace: "ns", Name: "demo"}, m); err != nil {
		l.t.Fatal(err)
	}
	return m
}

// change edits an object as a user would.
func change[T client.Object](l *life, obj T, do func(T)) {
	l.t.Helper()
	do(obj)
	if err := l.Client.Update(l.t.Context(), obj); err != nil {
		l.t.Fatal(err)
	}
}

// remove advances the clock to the real time and deletes the MaasMachine: the fake client sets the deletion timestamp
// to the real time.
func (l *life) remove() {
	l.t.Helper()
	l.site.Pass(max(0, time.Now().Truncate(time.Second).Sub(l.Clock.Now())))
	if err := l.Client.Delete(l.t.Context(), l.now()); err != nil {
		l.t.Fatal(err)
	}
}

// runs reconciles the MaasMachine until its machine runs.
func (l *life) runs() *life {
	l.t.Helper()
	l.pass(0)
	l.pass(2 * time.Minute)
	if !l.now().Status.Ready {
		l.t.Fatalf("it does not run: %+v", l.now().Status.Conditions)
	}
	told(l.said)
	return l
}
