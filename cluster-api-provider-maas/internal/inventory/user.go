// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"time"

	"github.com/openshift/hypershift/support/maas"
)

// userAge is how old what is known of the user may be. A key belongs to one user as long as it lives; what the user may do can change.
const userAge = time.Hour

// User returns the user of the API key.
func (i *Inventory) User(ctx context.Context) (maas.User, error) { return i.user.get(ctx, userAge) }
