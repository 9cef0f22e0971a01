// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	supportpki "github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/testenv"
)

// ownSecret is the Secret with which the user grants access.
const ownSecret = "own-etcd"

// TestOwnEtcd lets real API servers store data in an etcd that the user runs. It accepts only clients of the user's
// CA.
func TestOwnEtcd(t *testing.T) {
	testenv.Long(t)
	findBinaries(t)
	ca := userCA(t)
	url := startOwnEtcd(t, ca)

	t.Run("When the user's etcd accepts the certificate, the API server should store its objects there", func(t *testing.T) {
		m := newOwnMachine(t, url, ca, ca)
		m.run(kubeapiserver.New())
		m.write("kept")
		if stored := m.storedIn(url, "/kubernetes.io/configmaps/default/"); len(stored["/kubernetes.io/configmaps/default/kept"]) == 0 {
			t.Errorf("etcd has %d ConfigMaps, and not the one that was written", len(stored))
		}
		if err := etcd.AskOwn(t.Context(), m.scope.Client, m.scope.HCP, nil); err != nil {
			t.Errorf("an etcd that serves is told to be away: %v", err)
		}
	})
	t.Run("When the user names several URLs and a new certificate, the API server should roll out and use a live member", func(t *testing.T) {
		m := newOwnMachine(t, "https://"+strings.Replace(testenv.FreeAddress(t), "127.0.0.1", "localhost", 1)+","+url, ca, ca)
		before, user := m.template().Annotations[configHash], &corev1.Secret{}
		m.get(ownSecret, user)
		user.Data = userSecret(t, ca, ca).Data
		if err := m.scope.Client.Update(t.Context(), user); err != nil {
			t.Fatal(err)
		}
		m.reconcile()
		if m.template().Annotations[configHash] == before {
			t.Error("the API server goes on with the former certificate")
		}
		m.run(kubeapiserver.New())
		m.write("kept-too")
		if err := etcd.AskOwn(t.Context(), m.scope.Client, m.scope.HCP, nil); err != nil {
			t.Errorf("an etcd of which a member serves is told to be away: %v", err)
		}
	})
	refused := map[string]struct {
		url         string
		signer, was *supportpki.KeyPair
		says        string
	}{
		"refuses the client":                  {url, userCA(t), ca, "remote error: tls:"},
		"is not the one that the user trusts": {url, ca, userCA(t), "certificate signed by unknown authority"},
		"does not run":                        {"https://" + testenv.FreeAddress(t), ca, ca, "connection refused"},
	}
	for name, tc := range refused {
		t.Run("When the user's etcd "+name+" the API server should not start and the error should be one sentence", func(t *testing.T) {
			m := newOwnMachine(t, tc.url, tc.signer, tc.was)
			p := m.launch(kubeapiserver.New())
			if err := m.waitStarted(p.container, p.exited); err == nil {
				t.Error("the API server is ready without etcd")
			} else {
				p.exited <- err
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := etcd.AskOwn(ctx, m.scope.Client, m.scope.HCP, nil)
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "the etcd at "+tc.url) || strings.Contains(err.Error(), "\n") {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func userCA(t *testing.T) *supportpki.KeyPair {
	t.Helper()
	ca, err := supportpki.NewCA(supportpki.Name{CommonName: "corporate"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func issue(t *testing.T, ca *supportpki.KeyPair, leaf supportpki.Leaf) *supportpki.KeyPair {
	t.Helper()
	pair, err := ca.Issue(leaf, supportpki.Lifetime{Validity: time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// userSecret returns a Secret with a client certificate of one CA, for a server whose certificate another CA signed.
func userSecret(t *testing.T, signer, trusted *supportpki.KeyPair) *corev1.Secret {
	t.Helper()
	client := issue(t, signer, supportpki.Leaf{Name: supportpki.Name{CommonName: "hosted"}, Client: true})
	return secret(ownSecret, map[string][]byte{
		"etcd-client.crt": client.CertPEM, "etcd-client.key": client.KeyPEM, "etcd-client-ca.crt": trusted.CertPEM,
	})
}

// newOwnMachine returns a machine for an API server whose etcd the user runs.
func newOwnMachine(t *testing.T, url string, signer, trusted *supportpki.KeyPair) *machine {
	t.Helper()
	hcp := controlPlane(func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{
			Endpoint: url, TLS: hyperv1.EtcdTLSConfig{ClientSecret: corev1.LocalObjectReference{Name: ownSecret}},
		}}
	})
	if err := Validate(hcp); err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, hcp, userSecret(t, signer, trusted))
	// The URL of the user's etcd is already local, so the test must not replace its port.
	m.ports = map[string]string{"6443": m.ports["6443"]}
	m.reconcile()
	return m
}

// reconcile updates the API server's Deployment, and all files of its pods, to the user's settings.
func (m *machine) reconcile() {
	m.t.Helper()
	withPKI(m.t, m.scope)
	if err := kubeapiserver.New().Reconcile(m.t.Context(), m.scope); err != nil {
		m.t.Fatal(err)
	}
}

// write makes the API server store an object.
func (m *machine) write(name string) {
	m.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	guest := kubernetes.NewForConfigOrDie(m.guestConfig())
	if _, err := guest.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(m.t.Context(), cm, metav1.CreateOptions{}); err != nil {
		m.t.Fatal(err)
	}
}

// startOwnEtcd runs an etcd that requires client certificates of a CA, and returns its URL.
func startOwnEtcd(t *testing.T, ca *supportpki.KeyPair) string {
	t.Helper()
	server := issue(t, ca, supportpki.Leaf{Name: supportpki.Name{CommonName: "etcd"}, Hosts: []string{"localhost", "127.0.0.1"}, Server: true, Client: true})
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	address := testenv.FreeAddress(t)
	url, peer := "https://"+address, "http://"+testenv.FreeAddress(t)
	p := startProgram(t, filepath.Join(findBinaries(t), etcd.Name), "--name=own", "--data-dir="+filepath.Join(dir, "data"),
		"--listen-client-urls="+url, "--advertise-client-urls="+url, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster=own="+peer, "--client-cert-auth", "--trusted-ca-file="+file("ca.crt", ca.CertPEM),
		"--cert-file="+file("server.crt", server.CertPEM), "--key-file="+file("server.key", server.KeyPEM))
	m := newOwnMachine(t, url, ca, ca)
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		return etcd.AskOwn(ctx, m.scope.Client, m.scope.HCP, nil) == nil, nil
	})
	if err != nil {
		t.Fatalf("the user's etcd does not serve: %v\n%s", err, lastLines(p.output.String(), 25))
	}
	return url
}
