// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"time"

	"github.com/openshift/hypershift/support/maas"
)

// userAge is the maximum age of the user data. An API key always belongs to the same user, but the permissions of the
// user may change.
const userAge = time.Hour

// User returns the user of the API key.
func (i *Inventory) User(ctx context.Context) (maas.User, error) { return i.user.get(ctx, userAge) }
