// SPDX-License-Identifier: Apache-2.0

package undecodable

import (
	"strings"
	"sync"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Reason is the reason of the events and conditions of objects that cannot be decoded.
const Reason = "Undecodable"

// causeLength limits how much of an error an event and the log repeat. The error quotes the object.
const causeLength = 300

// NewMetric returns the metric that counts the objects that cannot be decoded.
func NewMetric() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hypershift_undecodable_objects",
		Help: "1 for each object that the program cannot decode. It works with the last state that it could decode.",
	}, []string{"kind", "namespace", "name"})
}

// Reports reports objects that cannot be decoded. It is safe for concurrent use.
type Reports struct {
	metric *prometheus.GaugeVec

	mu       sync.Mutex
	recorder events.EventRecorder
	// found is called for each version of an object; may be nil.
	found func(*object)
	// last is the last report of each object.
	last map[reported]report
}

// report holds the version of an object and the reason why it cannot be decoded.
type report struct{ version, cause string }

// reported is the identity of an object.
type reported struct {
	kind            schema.GroupKind
	namespace, name string
}

// NewReports returns Reports that set a metric.
func NewReports(metric *prometheus.GaugeVec) *Reports {
	return &Reports{metric: metric, last: map[reported]report{}}
}

// Record sets the recorder of future events.
func (r *Reports) Record(recorder events.EventRecorder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorder = recorder
}

func identity(o *object) reported {
	return reported{o.GroupVersionKind().GroupKind(), o.Metadata.Namespace, o.Metadata.Name}
}

// message returns the text that users read about an object.
func message(cause string) string {
	return "The object cannot be decoded, so changes of it have no effect: " + cause +
		"; correct the value with kubectl edit"
}

// add reports an object, once for each cause.
func (r *Reports) add(o *object, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, now := identity(o), report{o.Metadata.ResourceVersion, printable(cause.Error())}
	before, known := r.last[id]
	if known && before == now {
		return
	}
	r.last[id] = now
	if r.found != nil {
		r.found(o)
	}
	if known && before.cause == now.cause {
		return
	}
	r.metric.WithLabelValues(id.kind.Kind, id.namespace, id.name).Set(1)
	ctrl.Log.WithName("undecodable").Info("Ignoring an object that cannot be decoded",
		"kind", id.kind.Kind, "namespace", id.namespace, "name", id.name, "cause", now.cause)
	if r.recorder == nil {
		return
	}
	about := &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta}
	about.Namespace, about.Name = id.namespace, id.name
	about.UID, about.ResourceVersion = o.Metadata.UID, o.Metadata.ResourceVersion
	r.recorder.Eventf(about, nil, corev1.EventTypeWarning, Reason, "Decode", "%s", message(now.cause))
}

// remove forgets an object that can be decoded or is deleted.
func (r *Reports) remove(o *object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(identity(o))
}

// keep forgets the objects of a kind in a namespace, or in all namespaces for "", that are not among the failed objects
// of a complete list.
func (r *Reports) keep(kind schema.GroupKind, namespace string, failed map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.last {
		key := id.namespace + "/" + id.name
		if id.kind == kind && (namespace == "" || namespace == id.namespace) && !failed[key] {
			r.forget(id)
		}
	}
}

func (r *Reports) forget(id reported) {
	if _, known := r.last[id]; !known {
		return
	}
	delete(r.last, id)
	r.metric.DeleteLabelValues(id.kind.Kind, id.namespace, id.name)
}

// printable returns the beginning of a text, without control characters.
func printable(text string) string {
	text = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, text)
	if runes := []rune(text); len(runes) > causeLength {
		return string(runes[:causeLength]) + "..."
	}
	return text
}
