package main

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMain(m *testing.M) {
	// What a provider logs while it is killed and lied to is no news.
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
