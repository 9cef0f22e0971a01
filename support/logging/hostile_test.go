// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// hostile holds texts of a tenant, a guest or a MAAS, such as an error of its server.
var hostile = map[string]string{
	"a line feed":           "x\n{\"level\":\"info\",\"msg\":\"forged\"}",
	"a carriage return":     "failed\rok",
	"an escape sequence":    "\x1b[2J",
	"a title of a window":   "\x1b]0;x\x07",
	"a C1 character":        "\u009b31m",
	"a deletion":            "abc\x7f\x08",
	"a line separator":      "a\u2028b\u2029c",
	"reversed text":         "\u202egpj",
	"a tag":                 "\U000e0041",
	"invalid UTF-8":         "\x9b31m\xff",
	"a verb of Go's format": "%!s %n %s",
	"a long text":           strings.Repeat("é", 4000),
}

// harmful reports whether a rune could add a line or control a terminal.
func harmful(r rune) bool { return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) }

// event is an event as the recorder passed it to the library.
type event struct{ eventtype, reason, action, note string }

type fakeRecorder struct {
	events.EventRecorder
	got []event
}

func (f *fakeRecorder) Eventf(_, _ runtime.Object, eventtype, reason, action, note string, args ...any) {
	f.got = append(f.got, event{eventtype, reason, action, fmt.Sprintf(note, args...)})
}

// hostileRecorder returns a recorder, what it records and what it logs.
func hostileRecorder(t *testing.T) (*recorder, *fakeRecorder, *bytes.Buffer) {
	t.Helper()
	out, inner := &bytes.Buffer{}, &fakeRecorder{}
	logger, err := parsed(t).logger(out)
	if err != nil {
		t.Fatal(err)
	}
	return &recorder{EventRecorder: inner, scheme: scheme.Scheme, log: logger.WithValues("controller", "demo-controller")}, inner, out
}

func TestEvents(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}}
	t.Run("an event is recorded and logged", func(t *testing.T) {
		g := NewWithT(t)
		r, inner, out := hostileRecorder(t)
		r.Eventf(pod, nil, corev1.EventTypeWarning, "Broken", "Look", "it is %s", "broken")
		g.Expect(inner.got).To(ConsistOf(event{"Warning", "Broken", "Look", "it is broken"}))
		g.Expect(lines(t, out)).To(ConsistOf(map[string]any{"level": "info", "msg": "it is broken",
			"controller": "demo-controller", "type": "Warning", "reason": "Broken", "namespace": "default",
			"name": "demo", "kind": "Pod"}))
	})
	t.Run("a line feed becomes an escape", func(t *testing.T) {
		g := NewWithT(t)
		r, inner, _ := hostileRecorder(t)
		r.Eventf(pod, nil, corev1.EventTypeWarning, "Broken", "Look", "%s", "a\nb\x1b[2J")
		g.Expect(inner.got).To(ConsistOf(event{"Warning", "Broken", "Look", `a\nb\x1b[2J`}))
	})
	for name, text := range hostile {
		t.Run(name+" is one line that the API server accepts", func(t *testing.T) {
			g := NewWithT(t)
			r, inner, out := hostileRecorder(t)
			r.Eventf(pod, nil, corev1.EventTypeWarning, text, text, "it is "+text+" %s", text)
			g.Expect(inner.got).To(HaveLen(1))
			for part, limit := range map[string]int{inner.got[0].note: 1024, inner.got[0].reason: 128, inner.got[0].action: 128} {
				g.Expect(len(part)).To(BeNumerically("<=", limit), "the API server refuses the event")
				g.Expect(utf8.ValidString(part)).To(BeTrue(), "%q", part)
				g.Expect(strings.IndexFunc(part, harmful)).To(Equal(-1), "%q", part)
			}
			g.Expect(lines(t, out)).To(HaveLen(1))
		})
	}
}

// TestRecordersOfManagers checks the recorders that programs get.
func TestRecordersOfManagers(t *testing.T) {
	config := &rest.Config{Host: "127.0.0.1:1"}
	mgr, err := NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewCluster(config, mgr.GetLogger())
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]events.EventRecorder{
		"a manager": mgr.GetEventRecorder("demo"), "another cluster": other.GetEventRecorder("demo"),
	} {
		t.Run("the recorder of "+name+" writes one line", func(t *testing.T) {
			NewWithT(t).Expect(got).To(BeAssignableToTypeOf(&recorder{}))
		})
	}
}

// TestLogLines checks that text of a tenant, a guest or a MAAS cannot forge a line of the log, or control the
// terminal of a reader.
func TestLogLines(t *testing.T) {
	for _, format := range []string{"json", "console"} {
		for name, text := range hostile {
			t.Run(name+" is one line in the format "+format, func(t *testing.T) {
				g := NewWithT(t)
				var out bytes.Buffer
				logger, err := parsed(t, "--log-format="+format).logger(&out)
				g.Expect(err).NotTo(HaveOccurred())
				logger.WithValues("name", text).Error(errors.New(text), text, "message", text, "all", []string{text})
				logged := out.String()
				g.Expect(strings.HasSuffix(logged, "\n")).To(BeTrue())
				logged = strings.ReplaceAll(strings.TrimSuffix(logged, "\n"), "\t", "")
				g.Expect(strings.IndexFunc(logged, harmful)).To(Equal(-1), "%q", logged)
				if format == "json" {
					line := map[string]any{}
					g.Expect(json.Unmarshal([]byte(logged), &line)).To(Succeed())
					g.Expect(line).To(HaveKeyWithValue("msg", string([]rune(text))), "the text is still there")
				}
			})
		}
	}
}
