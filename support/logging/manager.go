// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
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
	return &recorder{EventRecorder: m.Manager.GetEventRecorder(name), scheme: m.GetScheme(), log: m.GetLogger().WithValues("controller", name)}
}

// recorder logs events: each change of state that matters to users is an event.
type recorder struct {
	events.EventRecorder
	scheme *runtime.Scheme
	log    logr.Logger
}

// Eventf records an event and logs it.
func (r *recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, eventtype, reason, action, note, args...)
	details := []any{"type", eventtype, "reason", reason}
	if obj, ok := regarding.(client.Object); ok {
		details = append(details, "namespace", obj.GetNamespace(), "name", obj.GetName())
	}
	if gvk, err := apiutil.GVKForObject(regarding, r.scheme); err == nil {
		details = append(details, "kind", gvk.Kind)
	}
	r.log.V(Changes).Info(fmt.Sprintf(note, args...), details...)
}

// InPhase returns a context whose logger adds the phase of a reconcile to each line.
func InPhase(ctx context.Context, phase string) context.Context {
	return log.IntoContext(ctx, log.FromContext(ctx).WithValues("phase", phase))
}
