// SPDX-License-Identifier: Apache-2.0

package pause

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestGate(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := hyperv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	hcp := func(namespace string, until *string) *hyperv1.HostedControlPlane {
		return &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo"}, Spec: hyperv1.HostedControlPlaneSpec{PausedUntil: until}}
	}
	busy := errors.New("the server is busy")
	for name, tc := range map[string]struct {
		there *hyperv1.HostedControlPlane
		err   error
		want  State
	}{
		"When the control plane is not paused, it should report no pause":                    {there: hcp("clusters-demo", nil)},
		"When the control plane is paused, it should report that":                            {there: hcp("clusters-demo", ptr.To("true")), want: State{Paused: true, Text: "spec.pausedUntil is removed"}},
		"When the control plane is paused until a time, it should report the remaining time": {there: hcp("clusters-demo", ptr.To("2026-11-20T12:10:00Z")), want: State{Paused: true, For: 10 * time.Minute, Text: "2026-11-20T12:10:00Z"}},
		"When the pause has ended, it should report no pause":                                {there: hcp("clusters-demo", ptr.To("2026-11-20T12:00:00Z"))},
		"When the control plane is gone, it should report a pause":                           {there: hcp("clusters-other", nil), want: State{Paused: true}},
		"When the control plane cannot be read, it should return an error and no state":      {there: hcp("clusters-demo", ptr.To("true")), err: busy},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.there).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if tc.err != nil {
						return tc.err
					}
					return c.Get(ctx, key, obj, opts...)
				}}).Build()
			got, err := Gate{Management: c, ControlPlane: client.ObjectKey{Namespace: "clusters-demo", Name: "demo"}, Clock: clocktesting.NewFakePassiveClock(now)}.State(t.Context())
			if tc.err != nil {
				g.Expect(err).To(And(MatchError(busy), MatchError(ContainSubstring("clusters-demo/demo"))))
				g.Expect(got).To(Equal(State{}))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
