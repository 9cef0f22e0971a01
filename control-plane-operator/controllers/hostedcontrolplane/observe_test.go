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

// TestPlugins checks what is observed of API server pods whose plugins decrypt Secrets.
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
		"When no plugin encrypts, it should report no condition":                        {pods: []client.Object{plain, other}, want: "none"},
		"When all plugins answer, it should set the condition to true":                  {pods: []client.Object{pod("a", "192.0.2.1", running), pod("b", "192.0.2.2", running)}, want: "True/AsExpected: ", asked: []string{"192.0.2.1", "192.0.2.2"}},
		"When a Pod is still starting, it should not query its API server":              {pods: []client.Object{starting, unaddressed}, want: "True/AsExpected: "},
		"When a Pod is being deleted, it should ignore its plugin":                      {pods: []client.Object{going, pod("a", "192.0.2.1", running)}, want: "True/AsExpected: ", asked: []string{"192.0.2.1"}},
		"When the API server gets no answer from a plugin, it should name the Pod":      {pods: []client.Object{pod("b", "192.0.2.66", running), pod("a", "192.0.2.1", running)}, want: "False/PluginUnavailable: pod b: no answer" + advice, asked: []string{"192.0.2.1", "192.0.2.66"}},
		"When a plugin cannot run, it should report the cause without querying the Pod": {pods: []client.Object{pod("b", "192.0.2.66", crashing), pod("a", "192.0.2.66", crashing)}, want: "False/PluginUnavailable: pod a: plugin vault cannot run: CrashLoopBackOff: back-off; pod b: plugin vault cannot run: CrashLoopBackOff: back-off" + advice},
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
		"When the API server is published by a load balancer, it should query that address":                 {by: hyperv1.LoadBalancer, asked: true},
		"When the API server is published by a Route, it should query that address":                         {by: hyperv1.Route, asked: true},
		"When the API server is published by a node port, which Pods may not reach, it should not query it": {by: hyperv1.NodePort},
		"When the API server is not published, it should not query it":                                      {by: hyperv1.LoadBalancer, shape: func(s *scope, _ *observed) { s.infra = nil }},
		"When the API server has no Deployment, it should not query it":                                     {by: hyperv1.LoadBalancer, shape: func(_ *scope, o *observed) { o.kas = nil }},
		"When no API server Pod is available, it should not query the address":                              {by: hyperv1.LoadBalancer, shape: func(_ *scope, o *observed) { o.kas.Status.Conditions = nil }},
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
		"When an API server is available, which has reached etcd, it should not query etcd":               {shape: func(*scope, *observed) {}},
		"When no API server is available, it should query etcd":                                           {shape: func(_ *scope, o *observed) { o.kas = nil }, want: errRefused},
		"When certificates fail for another reason, it should query etcd":                                 {shape: func(s *scope, o *observed) { o.kas, s.pkiErr = nil, errors.New("other") }, want: errRefused},
		"When the Secret of etcd is incomplete, it should return that error without querying etcd":        {shape: func(s *scope, o *observed) { o.kas, s.pkiErr = nil, errors.Join(errors.New("other"), misconfigured) }, want: misconfigured},
		"When the Secret of etcd is incomplete and an API server is available, it should return no error": {shape: func(s *scope, _ *observed) { s.pkiErr = misconfigured }},
		"When etcd is managed, it should not query it": {shape: func(s *scope, o *observed) {
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

// TestBegin checks when the operator reconciles a control plane. It always reconciles a deleted control plane, since
// the reconcile removes the finalizer.
func TestBegin(t *testing.T) {
	image := fixture.ControlPlane().Spec.ReleaseImage
	for name, tc := range map[string]struct {
		operateOn string
		shape     func(*hyperv1.HostedControlPlane)
		begins    bool
	}{
		"When the operator handles any release, it should reconcile":                                      {begins: true},
		"When the operator handles this release, it should reconcile":                                     {operateOn: image, begins: true},
		"When the operator handles another release, it should not reconcile":                              {operateOn: "another"},
		"When the operator handles another release and the control plane is deleted, it should reconcile": {operateOn: "another", shape: deleted, begins: true},
		"When the control plane has its own release image, it should compare that one":                    {operateOn: "own", shape: func(hcp *hyperv1.HostedControlPlane) { own := "own"; hcp.Spec.ControlPlaneReleaseImage = &own }, begins: true},
		"When the control plane's own release image is empty, it should compare the cluster's image":      {operateOn: image, shape: func(hcp *hyperv1.HostedControlPlane) { none := ""; hcp.Spec.ControlPlaneReleaseImage = &none }, begins: true},
		"When a backup is being restored, it should not reconcile":                                        {shape: restoring},
		"When the control plane is deleted during a restore, it should reconcile":                         {shape: func(hcp *hyperv1.HostedControlPlane) { restoring(hcp); deleted(hcp) }, begins: true},
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
		"When the control plane is settled, it should requeue after the long interval":        {func(*scope) {}, settledRequeue},
		"When the control plane is not ready, it should requeue soon":                         {func(s *scope) { s.hcp.Status.Ready = false }, waitRequeue},
		"When Pods wait for a node, it should requeue soon":                                   {func(s *scope) { s.placing = true }, waitRequeue},
		"When nodes migrate to another address, it should requeue soon":                       {func(s *scope) { s.said(metav1.ConditionFalse) }, waitRequeue},
		"When all nodes use the published address, it should requeue after the long interval": {func(s *scope) { s.said(metav1.ConditionTrue) }, settledRequeue},
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
