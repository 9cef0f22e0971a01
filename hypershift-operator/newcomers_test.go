// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
	"github.com/openshift/hypershift/support/crds"
)

// announced is a cache whose events come from the test.
type announced struct {
	cache.Cache
	informer *controllertest.FakeInformer
}

// GetInformer implements cache.Cache.
func (a *announced) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return a.informer, nil
}

// TestNewcomers checks the retries when the API server fails while the kinds of MAAS become available.
func TestNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var refused atomic.Bool
		c := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if refused.Load() {
					return errors.New("etcdserver: request timed out")
				}
				return c.Get(ctx, key, obj, opts...)
			},
		}).Build()
		platforms, err := registry.All().New(platform.Environment{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(platforms.SwitchOff(t.Context(), c)).To(Succeed())
		informer := controllertest.NewFakeInformer(controllertest.Synced)
		ended := make(chan error, 1)
		go func() {
			ended <- (&newcomers{cache: &announced{informer: informer}, reader: c, platforms: platforms}).Start(t.Context())
		}()
		synctest.Wait()
		for _, name := range crds.Names(crds.Infrastructure) {
			g.Expect(c.Create(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name},
				Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
					{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}}})).To(Succeed())
		}

		refused.Store(true)
		informer.Add(&metav1.PartialObjectMetadata{})
		<-time.After(3 * newcomersRetry)
		synctest.Wait() // The third retry is also due now.
		g.Expect(ended).NotTo(Receive(), "the operator goes on")
		refused.Store(false)
		<-time.After(newcomersRetry)
		synctest.Wait()
		g.Expect(ended).To(Receive(MatchError(ContainSubstring("the kinds of platform MAAS are now served"))))
	})
}
