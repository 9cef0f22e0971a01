// SPDX-License-Identifier: Apache-2.0

package testenv

import "sigs.k8s.io/controller-runtime/pkg/client"

// Writes counts the write requests of clients, whether or not they succeed.
type Writes struct{ Count int }

// Client returns a client that counts the writes of c.
func (w *Writes) Client(c client.WithWatch) client.WithWatch {
	return Intercept(c, func(request Request) error {
		if request.Writes() {
			w.Count++
		}
		return request.Do()
	})
}

// Counted returns a client and the number of its writes.
func Counted(c client.WithWatch) (counted client.WithWatch, writes *int) {
	w := &Writes{}
	return w.Client(c), &w.Count
}
