// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// diary records any number of events. A full recorder would block a reconciler that loops, and with it the test that
// should detect the loop.
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
