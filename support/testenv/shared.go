// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// shared are the servers that the tests of a package share, by their folders. They are nil without Main.
var shared struct {
	sync.Mutex
	servers map[string]*rest.Config
	stop    []func()
}

// Main runs the tests of a package, and stops the servers that Shared started. TestMain calls it.
func Main(m *testing.M) {
	shared.servers = map[string]*rest.Config{}
	code := m.Run()
	for _, stop := range shared.stop {
		stop()
	}
	os.Exit(code)
}

// MainInMemory is Main for packages whose tests send so many requests that a kube-apiserver takes most of their time.
// With -short, these tests use an in-memory server, unless serverVariable names one. `make test-long` runs them without
// -short.
func MainInMemory(m *testing.M) {
	flag.Parse()
	if testing.Short() && os.Getenv(serverVariable) == "" {
		if err := os.Setenv(serverVariable, memory); err != nil {
			panic(err)
		}
	}
	Main(m)
}

// Long skips a test that takes minutes if -short is set.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes minutes: make test-long runs it")
	}
}

// Shared is like Start, but tests of a package that pass the same folders share one server, because each start takes
// ten seconds of CPU time. Each test must use its own namespaces. Without Main, Shared is Start.
func Shared(t testing.TB, folders ...string) *rest.Config {
	t.Helper()
	if shared.servers == nil {
		return Start(t, folders...)
	}
	shared.Lock()
	defer shared.Unlock()
	key := strings.Join(folders, " ")
	if shared.servers[key] == nil {
		shared.servers[key] = Start(lasting{t}, folders...)
	}
	return rest.CopyConfig(shared.servers[key])
}

// lasting is a test whose cleanup runs at the end of the package.
type lasting struct{ testing.TB }

// Cleanup implements testing.TB.
func (lasting) Cleanup(f func()) { shared.stop = append(shared.stop, f) }

// Errorf implements testing.TB. It does not need the test, which may be over.
func (lasting) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
