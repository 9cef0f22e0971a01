// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/support/testenv"
)

// providerEnv makes the test binary run as the provider, for tests that need a real process.
const providerEnv = "TEST_AS_PROVIDER"

func TestMain(m *testing.M) {
	if os.Getenv(providerEnv) != "" {
		go dieWithParent()
		main()
		return
	}
	// The log of a provider that is killed and gets injected errors is of no interest.
	ctrl.SetLogger(logr.Discard())
	testenv.Main(m)
}

// dieWithParent ends this process when the other end of its standard input is closed.
func dieWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}
