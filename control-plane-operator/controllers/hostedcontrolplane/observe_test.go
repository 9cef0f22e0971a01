// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/phase"
)

// TestPlugins reports on pods of the API server whose plugins decrypt its Secrets.
func TestPlugins(t *testing.T) {
	pod := func(name, ip string, state corev1.ContainerState) *corev1.Pod {
		plugin := "kms-vault"
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name, Labels: map[string]string{"app": "kube-apiserver"}},
			Spec:       corev1.PodSpec{InitContainers: []corev1.Container{{Name: plugin}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip,
				InitContainerStatuses: []corev1.ContainerStatus{{Name: plugin, State: state}}},
		}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	crashing := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}
	starting, unaddressed := pod("starting", "192.0.2.66", running), pod("unaddressed", "", running)
	starting.Status.Phase = corev1.PodPending
	going := pod("going", "192.0.2.66", crashing)
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: now}, []string{"example.com/held"}
	plain := pod("plain", "192.0.2.66", crashing)
	plain.Spec.InitContainers = nil
	other := pod("etcd-0", "192.0.2.66", crashing)
	other.Labels["app"] = "etcd"
	const advice = "; running API servers keep serving data that they have already decrypted"
	for name, tc := range map[string]struct {
		pods  []client.Object
		want  string
		asked []string
	}{
		"When nothing encrypts by plugin, nothing should be said":          {pods: []client.Object{plain, other}, want: "none"},
		"When all plugins answer, it should be said":                       {pods: []client.Object{pod("a", "192.0.2.1", running), pod("b", "192.0.2.2", running)}, want: "True/AsExpected: ", asked: []string{"192.0.2.1", "192.0.2.2"}},
		"When a pod has only begun, its API server should not be asked":    {pods: []client.Object{starting, unaddressed}, want: "True/AsExpected: "},
		"When a pod is on its way out, nobody should hear of its plugin":   {pods: []client.Object{going, pod("a", "192.0.2.1", running)}, want: "True/AsExpected: ", asked: []string{"192.0.2.1"}},
		"When the API server hears nothing of a plugin, its pod is named":  {pods: []client.Object{pod("b", "192.0.2.66", running), pod("a", "192.0.2.1", running)}, want: "False/PluginUnavailable: pod b: no answer" + advice, asked: []string{"192.0.2.1", "192.0.2.66"}},
		"When a plugin cannot run, it should say why and ask nobody there": {pods: []client.Object{pod("b", "192.0.2.66", crashing), pod("a", "192.0.2.66", crashing)}, want: "False/PluginUnavailable: pod a: plugin vault cannot run: CrashLoopBackOff: back-off; pod b: plugin vault cannot run: CrashLoopBackOff: back-off" + advice},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var asked []string
			r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(tc.pods...).WithInterceptorFuncs(anyOrder).Build(),
				Plugins: func(_ context.Context, address string) string {
					asked = append(asked, address)
					return map[string]string{"192.0.2.66": "no answer"}[address]
				}}
			s, o := healthy()
			g.Expect(r.observePlugins(t.Context(), fixture.Namespace, &o)).To(Succeed())
			got := "none"
			if c := meta.FindStatusCondition(status(s, o, now).Conditions, string(hyperv1.KMSPluginAvailable)); c != nil {
				got = fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
			}
			if tc.want == "none" || tc.want == "True/AsExpected: " {
				g.Expect(got).To(Equal(tc.want))
			} else {
				g.Expect(got).To(HavePrefix(tc.want))
			}
			slices.Sort(asked)
			g.Expect(cmp.Diff(tc.asked, asked)).To(BeEmpty())
		})
	}
}

func TestWhoIsAskedForHealth(t *testing.T) {
	for name, tc := range map[string]struct {
		by    hyperv1.PublishingStrategyType
		shape func(*scope, *observed)
		asked bool
	}{
		"When a load balancer is before it, it should be asked there":         {by: hyperv1.LoadBalancer, asked: true},
		"When a Route leads to it, it should be asked there":                  {by: hyperv1.Route, asked: true},
		"When it is at a node port, which pods need not reach, it should not": {by: hyperv1.NodePort},
		"When it is not published yet, it should not":                         {by: hyperv1.LoadBalancer, shape: func(s *scope, _ *observed) { s.infra = nil }},
		"When it has no pods, it should not":                                  {by: hyperv1.LoadBalancer, shape: func(_ *scope, o *observed) { o.kas = nil }},
		"When none of its pods is available, nobody should ask what is known": {by: hyperv1.LoadBalancer, shape: func(_ *scope, o *observed) { o.kas.Status.Conditions = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, o := healthy()
			for i := range s.hcp.Spec.Services {
				if s.hcp.Spec.Services[i].Service == hyperv1.APIServer {
					s.hcp.Spec.Services[i].ServicePublishingStrategy.Type = tc.by
				}
			}
			if tc.shape != nil {
				tc.shape(s, &o)
			}
			var at []component.Endpoint
			r := &Reconciler{Health: func(_ context.Context, e component.Endpoint) error { at = append(at, e); return errors.New("no route") }}
			err := r.askHealth(t.Context(), s, o)
			if !tc.asked {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(at).To(BeEmpty())
				return
			}
			g.Expect(err).To(MatchError("no route"))
			g.Expect(at).To(ConsistOf(component.Endpoint{Host: "192.0.2.10", Port: 30443}))
		})
	}
}

func TestAskOwnEtcd(t *testing.T) {
	errRefused, misconfigured := errors.New("refused"), &pki.OwnEtcdError{Err: errors.New("Secret demo/own has no key etcd-client.key")}
	for name, tc := range map[string]struct {
		shape func(*scope, *observed)
		want  error
	}{
		"When an API server is available, which has asked it, nobody should":          {shape: func(*scope, *observed) {}},
		"When no API server is available, it should be asked":                         {shape: func(_ *scope, o *observed) { o.kas = nil }, want: errRefused},
		"When certificates fail for another reason, it should be asked":               {shape: func(s *scope, o *observed) { o.kas, s.pkiErr = nil, errors.New("other") }, want: errRefused},
		"When its Secret is not whole, that should be said without asking":            {shape: func(s *scope, o *observed) { o.kas, s.pkiErr = nil, errors.Join(errors.New("other"), misconfigured) }, want: misconfigured},
		"When its Secret is not whole and an API server goes on, etcd should be fine": {shape: func(s *scope, _ *observed) { s.pkiErr = misconfigured }},
		"When etcd is managed, its members are asked elsewhere, and here it should not be": {shape: func(s *scope, o *observed) {
			o.kas = nil
			s.hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := healthy()
			s.hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{Endpoint: "https://etcd.example:2379"}}
			tc.shape(s, &o)
			r := &Reconciler{OwnEtcd: func(context.Context, client.Reader, *hyperv1.HostedControlPlane) error { return errRefused }}
			err := r.askOwnEtcd(t.Context(), s, o)
			if tc.want == nil {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(BeIdenticalTo(tc.want))
		})
	}
}

// TestBegin has the cases in which an operator does not reconcile a control plane. None of them may block its deletion:
// begin allows the reconcile that removes the finalizer.
func TestBegin(t *testing.T) {
	image := fixture.ControlPlane().Spec.ReleaseImage
	for name, tc := range map[string]struct {
		operateOn string
		shape     func(*hyperv1.HostedControlPlane)
		begins    bool
	}{
		"When any release is its business, it should begin":                      {begins: true},
		"When the release is its business, it should begin":                      {operateOn: image, begins: true},
		"When another release is, it should keep its hands off":                  {operateOn: "another"},
		"When another release is and it is deleted, it should let it go":         {operateOn: "another", shape: deleted, begins: true},
		"When the control plane has a release of its own, that should count":     {operateOn: "own", shape: func(hcp *hyperv1.HostedControlPlane) { own := "own"; hcp.Spec.ControlPlaneReleaseImage = &own }, begins: true},
		"When that is empty, the cluster's should count":                         {operateOn: image, shape: func(hcp *hyperv1.HostedControlPlane) { none := ""; hcp.Spec.ControlPlaneReleaseImage = &none }, begins: true},
		"When a backup is being restored, it should wait":                        {shape: restoring},
		"When a backup is being restored and it is deleted, it should let it go": {shape: func(hcp *hyperv1.HostedControlPlane) { restoring(hcp); deleted(hcp) }, begins: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := fixture.ControlPlane()
			if tc.shape != nil {
				tc.shape(hcp)
			}
			r := &Reconciler{OperateOnReleaseImage: tc.operateOn}
			if hcp.DeletionTimestamp.IsZero() {
				r.Client = fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(hcp).WithStatusSubresource(hcp).Build()
			}
			s, err := r.begin(t.Context(), hcp)
			if !tc.begins {
				g.Expect(err).To(MatchError(phase.ErrStop))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.hcp).To(BeIdenticalTo(hcp))
		})
	}
}

func deleted(hcp *hyperv1.HostedControlPlane) { hcp.DeletionTimestamp = &metav1.Time{Time: now} }

func restoring(hcp *hyperv1.HostedControlPlane) {
	hcp.Annotations = map[string]string{hyperv1.RestoringAnnotation: "true"}
}

func TestResync(t *testing.T) {
	for name, tc := range map[string]struct {
		shape func(*scope)
		want  time.Duration
	}{
		"When it is settled, it should be looked at seldom":                     {func(*scope) {}, settledRequeue},
		"When it is not ready, it should be looked at soon":                     {func(s *scope) { s.hcp.Status.Ready = false }, waitRequeue},
		"When pods wait for a node, it should be looked at soon":                {func(s *scope) { s.placing = true }, waitRequeue},
		"When users go over to another address, it should be looked at soon":    {func(s *scope) { s.said(metav1.ConditionFalse) }, waitRequeue},
		"When all have gone over to the address, it should be looked at seldom": {func(s *scope) { s.said(metav1.ConditionTrue) }, settledRequeue},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{hcp: fixture.ControlPlane()}
			s.hcp.Status.Ready = true
			tc.shape(s)
			if got := resync(s); got != tc.want {
				t.Errorf("after %s, want %s", got, tc.want)
			}
		})
	}
}

// said sets whether all nodes use the published address.
func (s *scope) said(status metav1.ConditionStatus) {
	meta.SetStatusCondition(&s.hcp.Status.Conditions, metav1.Condition{Type: string(hyperv1.PublishedAddressUpToDate), Status: status, Reason: "Said"})
}
