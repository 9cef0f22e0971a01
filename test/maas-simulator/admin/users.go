// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"

	"github.com/openshift/hypershift/test/maas-simulator/simulator"
)

// user is a user that is made, and the answer to that.
type user struct {
	Admin bool   `json:"admin"`
	Key   string `json:"key,omitempty"`
}

// ensureUser answers the API key of a user, who is made unless there is one.
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
