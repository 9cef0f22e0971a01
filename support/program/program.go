// SPDX-License-Identifier: Apache-2.0

// Package program makes the managers of all programs. One object that cannot be decoded does not stop them, and a cache
// that does not have the state of the API server makes them not ready.
package program

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/informers"
	"github.com/openshift/hypershift/support/logging"
	"github.com/openshift/hypershift/support/undecodable"
)

// The clusters that caches are of, as label of metrics.
const (
	Management = "management"
	Guest      = "guest"
)

// recorderName is the controller that events about objects are from that cannot be decoded.
const recorderName = "decoder"

// Conditions has the type of the condition of a kind that is false while an object cannot be decoded. The controller of
// the kind computes it otherwise.
type Conditions map[schema.GroupKind]string

// OfTenants are the Conditions of the kinds that tenants write.
var OfTenants = Conditions{
	hyperv1.GroupVersion.WithKind("HostedCluster").GroupKind(): string(hyperv1.ReconciliationSucceeded),
	hyperv1.GroupVersion.WithKind("NodePool").GroupKind():      string(hyperv1.ReconciliationSucceeded),
}

// NewManager returns a manager of controllers of a cluster, which is Management or Guest, that logs what they change as
// logging.NewManager does. Objects of the kinds of conditions have one while they cannot be decoded.
func NewManager(of string, config *rest.Config, options ctrl.Options, conditions ...Conditions) (ctrl.Manager, error) {
	w, err := watchOver(of, config, options.Scheme, &options.Cache)
	if err != nil {
		return nil, err
	}
	mgr, err := logging.NewManager(w.config, options)
	if err != nil {
		return nil, err
	}
	w.reports.Record(mgr.GetEventRecorder(recorderName))
	for _, types := range conditions {
		if err := mgr.Add(undecodable.NewConditions(w.filter, types, mgr.GetAPIReader(), mgr.GetClient())); err != nil {
			return nil, err
		}
	}
	return mgr, mgr.AddReadyzCheck("caches-"+of, w.informers.Check)
}

// AddCluster adds to a manager the caches and the client of another cluster.
func AddCluster(
	mgr ctrl.Manager, of string, config *rest.Config, scheme *runtime.Scheme, options cache.Options, c client.Options,
) (cluster.Cluster, error) {
	w, err := watchOver(of, config, scheme, &options)
	if err != nil {
		return nil, err
	}
	other, err := cluster.New(w.config, func(o *cluster.Options) {
		o.Scheme, o.Cache, o.Client, o.NewClient = scheme, options, c, logging.NewClient
	})
	if err != nil {
		return nil, err
	}
	w.reports.Record(other.GetEventRecorder(recorderName))
	return other, errors.Join(mgr.Add(other), mgr.AddReadyzCheck("caches-"+of, w.informers.Check))
}

// watched is what watches over the caches of a cluster.
type watched struct {
	config    *rest.Config
	informers *informers.Set
	reports   *undecodable.Reports
	filter    *undecodable.Filter
}

func watchOver(of string, config *rest.Config, known *runtime.Scheme, options *cache.Options) (*watched, error) {
	if known == nil {
		known = scheme.Scheme
	}
	objects, err := registered(undecodable.NewMetric())
	if err != nil {
		return nil, err
	}
	synced, err := registered(informers.NewMetric())
	if err != nil {
		return nil, err
	}
	w := &watched{
		config: rest.CopyConfig(config), informers: informers.New(known, clock.RealClock{}),
		reports: undecodable.NewReports(objects),
	}
	synced.Add(of, w.informers)
	w.filter = undecodable.New(known, w.reports, w.informers.Lookup)
	w.config.Wrap(w.filter.Wrap)
	options.NewInformer = w.informers.NewInformer
	return w, nil
}

// registered registers a metric of the process, and returns the one that another manager of the process registered
// before.
func registered[C prometheus.Collector](metric C) (C, error) {
	err := ctrlmetrics.Registry.Register(metric)
	var before prometheus.AlreadyRegisteredError
	if errors.As(err, &before) {
		if same, ok := before.ExistingCollector.(C); ok {
			return same, nil
		}
	}
	if err != nil {
		return metric, fmt.Errorf("registering the metrics of caches: %w", err)
	}
	return metric, nil
}
