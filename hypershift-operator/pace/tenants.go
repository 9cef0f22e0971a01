// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"context"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// qps and burst limit the requests to the management cluster's API for the objects of one namespace. A new cluster
	// writes bursts of small objects.
	qps, burst = 100, 200
	// mostNamespaces is the number of namespaces whose rate is remembered; a namespace that is forgotten has a full burst.
	mostNamespaces = 1024
)

type namespaceKey struct{}

// WithNamespace returns a context for work on behalf of a namespace.
func WithNamespace(ctx context.Context, namespace string) context.Context {
	return context.WithValue(ctx, namespaceKey{}, namespace)
}

// NamespaceOf returns the namespace on whose behalf a context's work is done. It is empty for the operator's own work.
func NamespaceOf(ctx context.Context) string {
	namespace, _ := ctx.Value(namespaceKey{}).(string)
	return namespace
}

// ByNamespace adds the namespace of the request to the context of each reconcile. Resources that reconciles share,
// such as the request rate, can then be divided among namespaces.
func ByNamespace(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		return r.Reconcile(WithNamespace(ctx, request.Namespace), request)
	})
}

// Limiter limits the rate of requests to the management cluster's API for each namespace. The requests of one namespace
// never wait for requests of another namespace.
type Limiter struct{ buckets *lru.Cache }

var _ flowcontrol.RateLimiter = &Limiter{}

// NewLimiter returns a Limiter for rest.Config.
func NewLimiter() *Limiter { return &Limiter{buckets: lru.New(mostNamespaces)} }

func (l *Limiter) bucket(namespace string) flowcontrol.RateLimiter {
	if known, ok := l.buckets.Get(namespace); ok {
		return known.(flowcontrol.RateLimiter) //nolint:forcetypeassert // It holds nothing else.
	}
	made := flowcontrol.NewTokenBucketRateLimiter(qps, burst)
	l.buckets.Add(namespace, made)
	return made
}

// Wait implements flowcontrol.RateLimiter.
func (l *Limiter) Wait(ctx context.Context) error { return l.bucket(NamespaceOf(ctx)).Wait(ctx) }

// TryAccept implements flowcontrol.RateLimiter for the operator's own work.
func (l *Limiter) TryAccept() bool { return l.bucket("").TryAccept() }

// Accept implements flowcontrol.RateLimiter for the operator's own work.
func (l *Limiter) Accept() { l.bucket("").Accept() }

// Stop implements flowcontrol.RateLimiter.
func (*Limiter) Stop() {}

// QPS implements flowcontrol.RateLimiter.
func (*Limiter) QPS() float32 { return qps }
