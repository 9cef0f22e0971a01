// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// patience is the timeout for a watch to report a change, and for a manager to fill its caches or to end, on a busy
// machine.
const patience = 2 * time.Minute

// Requests is a client that records which objects are read by name. A reconciler first reads the object that it is
// called for. So a reconcile of an object that does not exist can be observed, and has no other effect.
type Requests struct {
	client.Client
	// Listed are objects that do not exist but are included in lists. A watch that maps to all objects of a list maps to
	// them.
	Listed []client.Object

	mutex sync.Mutex
	seen  map[string]int
}

// NewRequests wraps a client.
func NewRequests(c client.Client) *Requests { return &Requests{Client: c, seen: map[string]int{}} }

// Get implements client.Reader.
func (r *Requests) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	r.mutex.Lock()
	r.seen[request(obj, key)]++
	r.mutex.Unlock()
	return r.Client.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (r *Requests) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := r.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	wanted := (&client.ListOptions{}).ApplyOptions(opts)
	for _, obj := range r.Listed {
		if r.lists(list, obj) && (wanted.Namespace == "" || wanted.Namespace == obj.GetNamespace()) &&
			(wanted.LabelSelector == nil || wanted.LabelSelector.Matches(labels.Set(obj.GetLabels()))) {
			items = append(items, obj.DeepCopyObject())
		}
	}
	return meta.SetList(list, items)
}

func (r *Requests) lists(list client.ObjectList, obj client.Object) bool {
	kinds, err := apiutil.GVKForObject(list, r.Scheme())
	if err != nil {
		return false
	}
	kind, err := apiutil.GVKForObject(obj, r.Scheme())
	return err == nil && kinds.GroupVersion() == kind.GroupVersion() && kinds.Kind == kind.Kind+"List"
}

func (r *Requests) count(obj client.Object, key client.ObjectKey) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.seen[request(obj, key)]
}

func request(obj client.Object, key client.ObjectKey) string { return fmt.Sprintf("%T %s", obj, key) }

// Expect applies a change, and fails the test if no controller reconciles the object because of it.
func (r *Requests) Expect(t *testing.T, obj client.Object, key client.ObjectKey, change func() error) {
	t.Helper()
	g := NewWithT(t)
	before := r.count(obj, key)
	g.Expect(change()).To(Succeed())
	g.Eventually(func() int { return r.count(obj, key) }).WithContext(t.Context()).WithTimeout(patience).
		Should(BeNumerically(">", before), "no controller reconciled %T %s", obj, key)
}

// ExpectCreated creates an object. It fails the test if its creation does not cause a reconcile of asked.
func (r *Requests) ExpectCreated(t *testing.T, obj, asked client.Object) {
	t.Helper()
	r.Expect(t, asked, client.ObjectKeyFromObject(asked), func() error { return r.Create(t.Context(), obj) })
}

// Await waits until a controller reconciles an object.
func (r *Requests) Await(t *testing.T, obj client.Object, key client.ObjectKey) {
	t.Helper()
	NewWithT(t).Eventually(func() int { return r.count(obj, key) }).WithContext(t.Context()).WithTimeout(patience).
		Should(BeNumerically(">", 0), "no controller reconciled %T %s", obj, key)
}

// Manage runs a manager with the controllers that add registers, until the test ends. It returns the client that the
// controllers use. With namespaces, the manager is limited to them: on a shared server, it would otherwise reconcile
// the objects of other tests too.
func Manage(t *testing.T, cfg *rest.Config, scheme *runtime.Scheme, add func(mgr ctrl.Manager) error, namespaces ...string) *Requests {
	t.Helper()
	NeedsServer(t, cfg)
	seen := map[string]cache.Config{}
	for _, namespace := range namespaces {
		seen[namespace] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, GracefulShutdownTimeout: ptr.To(patience),
		Cache: cache.Options{DefaultNamespaces: seen},
	})
	if err != nil {
		t.Fatal(err)
	}
	requests := NewRequests(mgr.GetClient())
	if err := add(Watched(mgr, requests)); err != nil {
		t.Fatal(err)
	}
	Run(t, mgr)
	return requests
}

// Run runs a manager until stop is called or the test ends.
func Run(t *testing.T, mgr ctrl.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Watched returns a manager that gives its controllers the client requests, which records their reads.
func Watched(mgr ctrl.Manager, requests *Requests) ctrl.Manager { return watched{mgr, requests} }

type watched struct {
	ctrl.Manager
	requests *Requests
}

// GetClient implements ctrl.Manager.
func (w watched) GetClient() client.Client { return w.requests }

// GetControllerOptions implements ctrl.Manager. It allows the tests of a package to register the same controller more
// than once.
func (w watched) GetControllerOptions() config.Controller {
	options := w.Manager.GetControllerOptions()
	options.SkipNameValidation = ptr.To(true)
	return options
}
