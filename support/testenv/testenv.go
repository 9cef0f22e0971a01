// SPDX-License-Identifier: Apache-2.0

// Package testenv provides tests with a real kube-apiserver and etcd, ports, and random numbers that a later run can
// repeat.
package testenv

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/openshift/hypershift/support/crds"
)

// assets is the environment variable that names the folder of the binaries.
const assets = "KUBEBUILDER_ASSETS"

const (
	// startTimeout is how long etcd and the kube-apiserver may each take to start, to serve new kinds and to stop on a
	// busy machine.
	startTimeout = 5 * time.Minute
	// pace is the polling interval.
	pace = 50 * time.Millisecond
)

// Start runs a kube-apiserver with the CRDs of some folders of support/crds, and stops it when the test ends. It finds
// the binaries in KUBEBUILDER_ASSETS, or else in bin/kube in the working directory or a parent of it. The test fails if
// there are none.
func Start(t testing.TB, folders ...string) *rest.Config {
	t.Helper()
	if inMemory() {
		return startInMemory(t, folders...)
	}
	config, _ := StartUsers(t, folders...)
	return config
}

// Users returns a new client certificate of the server for a user, on each call.
type Users func(name string, groups ...string) *rest.Config

// StartUsers is Start for tests of authentication and authorization. The server accepts bootstrap tokens, as hosted
// control planes do.
func StartUsers(t testing.TB, folders ...string) (*rest.Config, Users) {
	t.Helper()
	return start(t, nil, folders...)
}

// StartNodes is StartUsers for tests of nodes: the server authorizes a kubelet for its own Node only, as hosted control
// planes do.
func StartNodes(t testing.TB) (*rest.Config, Users) {
	t.Helper()
	return start(t, map[string]string{"authorization-mode": "Node,RBAC", "enable-admission-plugins": "NodeRestriction"})
}

// advertised is the address of the Service "kubernetes" of a test's API server. No server listens on it: it is reserved
// for documentation (RFC 5737).
const advertised = "192.0.2.2"

// start runs a server with additional flags. It does not use envtest.Environment, whose waits for the first namespace
// and for CRDs end after seconds, even on a busy machine.
func start(t testing.TB, flags map[string]string, folders ...string) (*rest.Config, Users) {
	t.Helper()
	NeedsServer(t, nil)
	binaries, err := findBinaries()
	if err != nil {
		t.Fatal(err)
	}
	plane := &envtest.ControlPlane{
		Etcd:      &envtest.Etcd{Path: filepath.Join(binaries, "etcd"), StartTimeout: startTimeout, StopTimeout: startTimeout},
		APIServer: &envtest.APIServer{Path: filepath.Join(binaries, "kube-apiserver"), StartTimeout: startTimeout, StopTimeout: startTimeout},
	}
	server := plane.GetAPIServer().Configure()
	server.Set("enable-bootstrap-token-auth", "true")
	// The usual /24 is too small for a server that many tests share: nothing deletes the Services of a hosted namespace.
	server.Set("service-cluster-ip-range", "10.0.0.0/16")
	// The default is the address of the machine's default route. Policies rendered from it would differ between machines,
	// and a machine without a route would fail.
	server.Set("advertise-address", advertised)
	for name, value := range flags {
		server.Set(name, value)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Errorf("stopping the test's kube-apiserver: %v", err)
		}
	})
	if err := run(t, plane); err != nil {
		t.Fatalf("starting a kube-apiserver from %s: %v", binaries, err)
	}
	users := func(name string, groups ...string) *rest.Config {
		t.Helper()
		user, err := plane.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: 1000, Burst: 2000})
		if err != nil {
			t.Fatalf("making a certificate of user %s: %v", name, err)
		}
		return user.Config()
	}
	config := users("admin", "system:masters")
	untilReady(t, config)
	var kinds []*apiextensionsv1.CustomResourceDefinition
	for _, folder := range folders {
		loaded, err := crds.Load(folder)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, fresh(loaded)...)
	}
	install(t, config, kinds)
	return config, users
}

// run starts a server. It retries on other ports if another process takes a port before the server binds it, because a
// busy machine needs seconds to start. It does not use envtest's ports, because the kernel assigns those to any server
// of a test.
func run(t testing.TB, plane *envtest.ControlPlane) (err error) {
	t.Helper()
	for range 5 {
		plane.Etcd.URL = &url.URL{Scheme: "http", Host: FreeAddress(t)}
		plane.Etcd.Configure().Set("listen-peer-urls", "http://"+FreeAddress(t))
		plane.APIServer.SecureServing.ListenAddr = envtest.ListenAddr{Address: loopback, Port: strconv.Itoa(FreePort(t))}
		if err = plane.Start(); err == nil {
			return nil
		}
		_ = plane.Stop() // Stopping a server that never ran returns an error that is not the cause.
	}
	return err
}

// untilReady waits for objects that a kube-apiserver creates shortly after it reports itself healthy: namespaces, and
// the range of Services' addresses. The allocator of addresses learns that range by a watch.
func untilReady(t testing.TB, config *rest.Config) {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatalf("connecting to the test's kube-apiserver: %v", err)
	}
	wait(t, "its first namespace", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{})
	})
	wait(t, "an address for a Service", func(ctx context.Context) error {
		return c.Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "probe"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
		}, client.DryRunAll)
	})
}

// wait retries until try succeeds. It also works during the cleanup of a test, when the test's context has ended.
func wait(t testing.TB, what string, try func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := apiwait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), pace, startTimeout, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v: %v", what, err, last)
	}
}

// Kubeconfig returns a config as the content of a kubeconfig file.
func Kubeconfig(t testing.TB, config *rest.Config) []byte {
	t.Helper()
	NeedsServer(t, config)
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"x": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"x": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "x", AuthInfo: "x"}}, CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// fresh removes the status, because envtest would otherwise assume that the CRD is already served.
func fresh(loaded []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	for _, crd := range loaded {
		crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	}
	return loaded
}

func findBinaries() (string, error) {
	if folder := os.Getenv(assets); folder != "" && holdsBinaries(folder) {
		return folder, nil
	}
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	for {
		if candidate := filepath.Join(folder, "bin", "kube"); holdsBinaries(candidate) {
			return candidate, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", fmt.Errorf("this test needs kube-apiserver and etcd: run `make kube-binaries`, or set %s to a folder that holds them", assets)
		}
		folder = parent
	}
}

func holdsBinaries(folder string) bool {
	for _, program := range []string{"kube-apiserver", "etcd"} {
		//nolint:gosec // The folder is the developer's.
		if _, err := os.Stat(filepath.Join(folder, program)); err != nil {
			return false
		}
	}
	return true
}
