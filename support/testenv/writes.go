// SPDX-License-Identifier: Apache-2.0

package testenv

import "sigs.k8s.io/controller-runtime/pkg/client"

// Writes counts what clients ask their server to write, whether or not that succeeds.
type Writes struct{ Count int }

// Client is c, counted.
func (w *Writes) Client(c client.WithWatch) client.WithWatch {
	return Intercept(c, func(request Request) error {
		if request.Writes() {
			w.Count++
		}
		return request.Do()
	})
}

// Counted is a client and the number of its writes.
func Counted(c client.WithWatch) (counted client.WithWatch, writes *int) {
	w := &Writes{}
	return w.Client(c), &w.Count
}
