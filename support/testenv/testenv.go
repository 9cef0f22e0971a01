// SPDX-License-Identifier: Apache-2.0

// Package testenv gives a test a real kube-apiserver and etcd, ports, and random numbers that a later run can have again.
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
	// startTimeout is how long etcd and the kube-apiserver each may take to start, to serve what they are given and to stop on a machine that has
	// other work too.
	startTimeout = 5 * time.Minute
	// pace is how often they are asked how far they are.
	pace = 50 * time.Millisecond
)

// Start runs a kube-apiserver that knows the CRDs of some folders of support/crds, and stops it when the test ends. The
// binaries are those of KUBEBUILDER_ASSETS, or else of bin/kube in the working directory or one above it. The test
// fails when there are none.
func Start(t testing.TB, folders ...string) *rest.Config {
	t.Helper()
	if inMemory() {
		return startInMemory(t, folders...)
	}
	config, _ := StartUsers(t, folders...)
	return config
}

// Users makes a client certificate of the server for a user, another one each time.
type Users func(name string, groups ...string) *rest.Config

// StartUsers is Start for tests that are about who is who. Bootstrap tokens of the server are good, as they are in hosted control planes.
func StartUsers(t testing.TB, folders ...string) (*rest.Config, Users) {
	t.Helper()
	return start(t, nil, folders...)
}

// StartNodes is StartUsers for tests of nodes: the server lets a kubelet do what concerns its own Node, as hosted control planes do.
func StartNodes(t testing.TB) (*rest.Config, Users) {
	t.Helper()
	return start(t, map[string]string{"authorization-mode": "Node,RBAC", "enable-admission-plugins": "NodeRestriction"})
}

// advertised is the address of the Service "kubernetes" of a test's API server, at which nobody listens: one of those for documentation (RFC 5737).
const advertised = "192.0.2.2"

// start runs a server with some flags of its own. It is not an envtest.Environment, whose waits for the first namespace and for CRDs end
// after seconds, whatever else the machine does.
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
	// A server that many tests share runs out of addresses of the usual /24: nothing deletes the Services of a hosted namespace.
	server.Set("service-cluster-ip-range", "10.0.0.0/16")
	// Otherwise it takes that of the machine's default route: policies that are rendered of it would be the machine's, and one without a route fails.
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

// run starts a server, again and on other ports when another process took one of them before it was bound: a busy machine takes seconds to
// get there. Ports that envtest would choose are those that the kernel gives to any server of a test.
func run(t testing.TB, plane *envtest.ControlPlane) (err error) {
	t.Helper()
	for range 5 {
		plane.Etcd.URL = &url.URL{Scheme: "http", Host: FreeAddress(t)}
		plane.Etcd.Configure().Set("listen-peer-urls", "http://"+FreeAddress(t))
		plane.APIServer.SecureServing.ListenAddr = envtest.ListenAddr{Address: loopback, Port: strconv.Itoa(FreePort(t))}
		if err = plane.Start(); err == nil {
			return nil
		}
		_ = plane.Stop() // What it says of a server that never ran is not why.
	}
	return err
}

// untilReady waits for what a kube-apiserver makes itself a moment after it calls itself healthy: namespaces, and the range of Services'
// addresses, which its allocator learns of by a watch.
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

// wait tries until something succeeds, also when the test cleans up, where its context has ended.
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

// Kubeconfig is a config as a file.
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

// fresh drops the status, which envtest would otherwise take for a CRD that is already served.
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
