// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"

	"github.com/openshift/hypershift/test/maas-simulator/simulator"
)

// user is the request to create a user, and the response with the API key.
type user struct {
	Admin bool   `json:"admin"`
	Key   string `json:"key,omitempty"`
}

// ensureUser returns the API key of a user. It creates the user if necessary.
func ensureUser(w http.ResponseWriter, r *http.Request, s *simulator.Simulator) {
	var u user
	if !read(w, r, "a user", &u) {
		return
	}
	var err error
	if u.Key, err = s.EnsureUser(simulator.User{Name: r.PathValue("name"), Admin: u.Admin, Key: u.Key}); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	write(w, http.StatusOK, u)
}
