// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

func TestMain(m *testing.M) { fixture.Main(m) }
