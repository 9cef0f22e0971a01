// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// diary keeps events, as many as there are: a recorder that is full would hold up a reconciler that goes in circles, and the test that is to
// tell so with it.
type diary struct {
	mu   sync.Mutex
	told []string
}

// Eventf implements events.EventRecorder.
func (d *diary) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, fmt.Sprintf(kind+" "+reason+" "+note, args...))
}

// told returns the events since it was last called.
func (w *world) told() []string {
	w.recorder.mu.Lock()
	defer w.recorder.mu.Unlock()
	told := w.recorder.told
	w.recorder.told = nil
	return told
}
