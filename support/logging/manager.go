// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// NewManager returns a manager that logs the changes of its controllers: its client logs writes, and its recorders log
// events. If the caller sets options.NewClient, it must use NewClient.
func NewManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	if options.NewClient == nil {
		options.NewClient = NewClient
	}
	inner, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	return &manager{Manager: inner}, nil
}

type manager struct{ ctrl.Manager }

// GetEventRecorder returns a recorder that also logs its events.
func (m *manager) GetEventRecorder(name string) events.EventRecorder {
	return newRecorder(m.Manager, m.GetLogger(), name)
}

// NewCluster returns the caches and the client of another cluster. It logs changes as a manager of NewManager does.
func NewCluster(config *rest.Config, logger logr.Logger, options ...cluster.Option) (cluster.Cluster, error) {
	logs := func(o *cluster.Options) { o.Logger, o.NewClient = logger, NewClient }
	inner, err := cluster.New(config, append(options, logs)...)
	if err != nil {
		return nil, err
	}
	return &otherCluster{Cluster: inner, log: logger}, nil
}

type otherCluster struct {
	cluster.Cluster
	log logr.Logger
}

// GetEventRecorder returns a recorder that also logs its events.
func (c *otherCluster) GetEventRecorder(name string) events.EventRecorder {
	return newRecorder(c.Cluster, c.log, name)
}

// InPhase returns a context whose logger adds the phase of a reconcile to each line.
func InPhase(ctx context.Context, phase string) context.Context {
	return log.IntoContext(ctx, log.FromContext(ctx).WithValues("phase", phase))
}
