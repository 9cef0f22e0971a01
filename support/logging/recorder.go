// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/terminal"
)

// The API server refuses an event with a longer note, reason or action, in bytes.
const (
	maxNote   = 1024
	maxReason = 128
)

// recorder records events, and logs them: each change of state that matters to users is an event. Notes may repeat text
// of a tenant, a guest or a MAAS. They are therefore written in one line, without characters that control a terminal.
type recorder struct {
	events.EventRecorder
	scheme *runtime.Scheme
	log    logr.Logger
}

func newRecorder(of cluster.Cluster, logger logr.Logger, name string) events.EventRecorder {
	return &recorder{
		EventRecorder: of.GetEventRecorder(name), scheme: of.GetScheme(), log: logger.WithValues("controller", name),
	}
}

// Eventf records an event and logs it.
func (r *recorder) Eventf(
	regarding, related runtime.Object, eventtype, reason, action, note string, args ...any,
) {
	reason, action = oneLine(reason, maxReason), oneLine(action, maxReason)
	text := oneLine(fmt.Sprintf(note, args...), maxNote)
	r.EventRecorder.Eventf(regarding, related, eventtype, reason, action, "%s", text)
	details := []any{"type", eventtype, "reason", reason}
	if obj, ok := regarding.(client.Object); ok {
		details = append(details, "namespace", obj.GetNamespace(), "name", obj.GetName())
	}
	if gvk, err := apiutil.GVKForObject(regarding, r.scheme); err == nil {
		details = append(details, "kind", gvk.Kind)
	}
	r.log.V(Changes).Info(text, details...)
}

func oneLine(text string, limit int) string { return condition.Shorten(terminal.Line(text), limit) }
