// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/pki"
)

// prepareStore creates the object store's certificates, and the credentials of its one user.
func prepareStore(e env.Env) error {
	if err := os.MkdirAll(e.StoreDir(), 0o700); err != nil {
		return err
	}
	authority, err := pki.Ensure(e.StoreDir(), "ca")
	if err != nil {
		return err
	}
	if _, err := authority.Issue(pki.Leaf{Name: "s3", User: "s3", Hosts: []string{env.Gateway}}); err != nil {
		return err
	}
	if _, err := os.Stat(e.StoreCredentials()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	credentials := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", rand.Text(), rand.Text())
	return writeFile(e.StoreCredentials(), []byte(credentials), 0o600)
}
