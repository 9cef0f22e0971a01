// SPDX-License-Identifier: Apache-2.0

// Package program creates the managers of all programs. One object that cannot be decoded does not stop a manager. A
// manager whose cache does not match the state of the API server is not ready.
package program

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/informers"
	"github.com/openshift/hypershift/support/logging"
	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/undecodable"
)

// The values of the metrics label that names the cluster of a cache.
const (
	Management = "management"
	Guest      = "guest"
)

// recorderName is the name of the controller in events about objects that cannot be decoded.
const recorderName = "decoder"

// Conditions maps each kind to the type of the condition that is false while an object cannot be decoded. Otherwise the
// kind's controller computes that condition.
type Conditions map[schema.GroupKind]string

// OfTenants are the Conditions of the kinds that tenants write.
var OfTenants = Conditions{
	hyperv1.GroupVersion.WithKind("HostedCluster").GroupKind(): string(hyperv1.ReconciliationSucceeded),
	hyperv1.GroupVersion.WithKind("NodePool").GroupKind():      string(hyperv1.ReconciliationSucceeded),
}

// NewManager returns a manager for controllers of a cluster, which is Management or Guest. It logs changes as
// logging.NewManager does. For the kinds in conditions, the condition of an object is false while the object cannot be
// decoded.
func NewManager(of string, config *rest.Config, options ctrl.Options, conditions ...Conditions) (ctrl.Manager, error) {
	w, err := watchOver(of, config, options.Scheme, &options.Cache)
	if err != nil {
		return nil, err
	}
	options.MapperProvider = mapper
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

// mapper returns the RESTMapper of a manager.
func mapper(config *rest.Config, c *http.Client) (meta.RESTMapper, error) {
	inner, err := apiutil.NewDynamicRESTMapper(config, c)
	if err != nil {
		return nil, err
	}
	return management.Remembering(inner, clock.RealClock{}), nil
}

// AddCluster adds to a manager the caches and the client of another cluster.
func AddCluster(
	mgr ctrl.Manager, of string, config *rest.Config, scheme *runtime.Scheme, options cache.Options, c client.Options,
) (cluster.Cluster, error) {
	w, err := watchOver(of, config, scheme, &options)
	if err != nil {
		return nil, err
	}
	other, err := logging.NewCluster(w.config, mgr.GetLogger(), func(o *cluster.Options) {
		o.Scheme, o.Cache, o.Client = scheme, options, c
	})
	if err != nil {
		return nil, err
	}
	w.reports.Record(other.GetEventRecorder(recorderName))
	return other, errors.Join(mgr.Add(other), mgr.AddReadyzCheck("caches-"+of, w.informers.Check))
}

// watched holds the monitors of a cluster's caches.
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

// registered registers a metric of the process. If another manager of the process has already registered it,
// registered returns the existing metric.
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
