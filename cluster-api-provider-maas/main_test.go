// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// providerEnv makes the test binary be the provider itself, for the tests that need a real process.
const providerEnv = "TEST_AS_PROVIDER"

func TestMain(m *testing.M) {
	if os.Getenv(providerEnv) != "" {
		go dieWithParent()
		main()
		return
	}
	// What a provider logs while it is killed and lied to is no news.
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// dieWithParent ends this process when the other end of its standard input is gone.
func dieWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}
