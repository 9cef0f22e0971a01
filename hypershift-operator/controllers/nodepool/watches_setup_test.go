// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// canned is a cache in which there are objects from the beginning, each of another kind.
type canned struct {
	*informertest.FakeInformers
	objects []client.Object
}

func (c canned) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	kind, err := apiutil.GVKForObject(obj, c.Scheme)
	return cannedInformer{controllertest.NewFakeInformer(controllertest.Synced), slices.DeleteFunc(slices.Clone(c.objects), func(there client.Object) bool {
		is, _ := apiutil.GVKForObject(there, c.Scheme)
		return is != kind
	})}, err
}

type cannedInformer struct {
	*controllertest.FakeInformer
	objects []client.Object
}

// AddEventHandlerWithOptions tells of the objects at once, as an informer does that has read them.
func (i cannedInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	for _, obj := range i.objects {
		handler.OnAdd(obj, true)
	}
	return i.FakeInformer.AddEventHandlerWithOptions(handler, options)
}

// TestWatchesInMemory has one object of each kind that a pool depends on. The pools that are asked for do not exist.
func TestWatchesInMemory(t *testing.T) {
	made := func(by string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "clusters", Name: by, Annotations: map[string]string{hyperv1.NodePoolAnnotation: "clusters/" + by}}
	}
	pool, reader, follower := fixture.NodePool("clusters"), fixture.NodePool("clusters"), fixture.NodePool("followed")
	reader.Name, reader.Spec.Config = "reader", []corev1.LocalObjectReference{{Name: "read"}}
	follower.Name = "follower"
	objects := []client.Object{
		pool, fixture.HostedCluster("followed"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "read"}},
		&corev1.Secret{ObjectMeta: made("secret")}, &clusterv1.MachineDeployment{ObjectMeta: made("deployment")},
		&clusterv1.MachineSet{ObjectMeta: made("set")}, &clusterv1.Machine{ObjectMeta: made("machine")},
		&clusterv1.MachineHealthCheck{ObjectMeta: made("check")}, &infrav1.MaasMachine{ObjectMeta: made("maas-machine")},
		&infrav1.MaasCluster{ObjectMeta: made("maas-cluster")}, &infrav1.MaasMachineTemplate{ObjectMeta: made("template")},
	}
	w := inMemory(t)
	var mutex sync.Mutex
	var seen []string
	asked := func() []string {
		mutex.Lock()
		defer mutex.Unlock()
		return slices.Clone(seen)
	}
	requests := testenv.NewRequests(testenv.Intercept(w.client, func(request testenv.Request) error {
		if _, is := request.Of.(*hyperv1.NodePool); is {
			mutex.Lock()
			seen = append(seen, request.Key.String())
			mutex.Unlock()
		}
		return request.Do()
	}))
	requests.Listed = []client.Object{reader, follower}
	scheme := fixture.Scheme()
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return w.client.RESTMapper(), nil },
		NewClient:      func(*rest.Config, client.Options) (client.Client, error) { return w.client, nil },
		NewCache: func(*rest.Config, cache.Options) (cache.Cache, error) {
			return canned{&informertest.FakeInformers{Scheme: scheme}, objects}, nil
		},
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.Reconciler.Client = requests
	w.Expect(w.SetupWithManager(testenv.Watched(mgr, requests))).To(Succeed())
	testenv.Run(t, mgr)
	all := []string{"clusters/" + pool.Name, "clusters/reader", "followed/follower"}
	for _, obj := range objects[3:] {
		all = append(all, "clusters/"+obj.GetName())
	}
	w.Eventually(asked).Should(ConsistOf(all))
}
