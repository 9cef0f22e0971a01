// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	"github.com/openshift/hypershift/support/testenv"
)

func TestMain(m *testing.M) { testenv.MainInMemory(m) }
