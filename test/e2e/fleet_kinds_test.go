// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/journey"
)

// userDomain is the name of the user's certificate of cluster available.
const userDomain = "api.users.example"

// createMetal creates the cluster with a pool of metal machines and waits until its API serves. The machines boot while
// the test creates other clusters.
func (s *suite) createMetal(t *testing.T, payload string, flags ...string) {
	t.Helper()
	flags = append([]string{"--maas-api-key-file", s.keyFile, "--resource-pool", workers, "--image", ignitionImage,
		"--release-image", payload}, flags...)
	s.must(t, s.CreateCluster(t.Context(), s.cluster, 1, flags...))
	s.serves(t)
}

// serves waits until the cluster's API serves, and stores its kubeconfig.
func (s *suite) serves(t *testing.T) {
	t.Helper()
	s.reach(t, journey.StageAvailable, long, journey.ClusterAvailable(s.c, s.cluster))
	s.must(t, s.SaveKubeconfig(t.Context(), s.cluster))
}

// createAsOfCAPMAAS creates a highly available cluster as users of CAPMAAS write it, with its keys in the Secret and
// a failure domain. Its API server has a certificate of the user.
func (s *suite) createAsOfCAPMAAS(t *testing.T, payload string) {
	t.Helper()
	s.must(t, s.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: journey.Namespace}}))
	const credentials = "of-capmaas"
	key, err := os.ReadFile(s.keyFile)
	s.must(t, err)
	s.must(t, s.c.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: journey.Namespace, Name: credentials},
		Data: map[string][]byte{
			hyperv1.MAASServerURLKey: []byte(env.MAASURL), hyperv1.MAASAPIKeyAltKey: bytes.TrimSpace(key),
		},
	}))
	s.must(t, s.Type(t.Context(), "hypershift", "create", "cluster", "maas", "--name", s.cluster,
		"--control-plane-availability-policy", "HighlyAvailable", "--node-pool-replicas", "1", "--erase", "None",
		"--credentials-secret", credentials,
		"--resource-pool", workers, "--failure-domain", firstZone, "--image", ignitionImage,
		"--release-image", payload, "--pull-secret", s.Path("pull-secret.json"),
		"--additional-trust-bundle", env.Env{Dir: s.Dir, Bin: s.Bin}.RegistryCA()))
	name := s.userCertificate(t)
	s.patch(t, fmt.Sprintf(`{"spec":{"configuration":{"apiServer":{"servingCerts":{"namedCertificates":[`+
		`{"names":[%q],"servingCertificate":{"name":%q}}]}}}}}`, userDomain, name))
	s.serves(t)
	s.reach(t, "the user's certificate served", soon, s.servesUserCertificate())
}

// userCertificate creates a Secret with a certificate for userDomain, and returns its name.
func (s *suite) userCertificate(t *testing.T) string {
	t.Helper()
	now := time.Now()
	ca, err := pki.NewCA(pki.Name{CommonName: "users"}, now)
	s.must(t, err)
	leaf, err := ca.Issue(pki.Leaf{Server: true, Hosts: []string{userDomain}}, pki.Lifetime{}, now)
	s.must(t, err)
	s.must(t, os.WriteFile(s.Path("users-ca.crt"), ca.CertPEM, 0o600))
	const name = "users-certificate"
	s.must(t, s.c.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: journey.Namespace, Name: name},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: leaf.CertPEM, corev1.TLSPrivateKeyKey: leaf.KeyPEM},
	}))
	return name
}

// servesUserCertificate checks that the API server answers with the certificate of userCertificate.
func (s *suite) servesUserCertificate() journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		config, err := clientcmd.BuildConfigFromFlags("", s.Path(s.cluster+".kubeconfig"))
		if err != nil {
			return false, "", err
		}
		server, err := url.Parse(config.Host)
		if err != nil {
			return false, "", err
		}
		ca, err := os.ReadFile(s.Path("users-ca.crt"))
		if err != nil {
			return false, "", err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca)
		dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: userDomain, MinVersion: tls.VersionTLS12}}
		connection, err := dialer.DialContext(ctx, "tcp", server.Host)
		if err != nil {
			return false, "", err
		}
		return true, "", connection.Close()
	}
}

// rotatePullSecret replaces the content of the cluster's pull secret, and waits until the control plane has it.
func (s *suite) rotatePullSecret(t *testing.T) {
	t.Helper()
	const content = `{"auths":{"registry.users.example":{"auth":"dXNlcjpuZXc="}}}`
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: journey.Namespace, Name: s.cluster + "-pull-secret"}
	s.must(t, s.c.Get(t.Context(), key, secret))
	secret.Data = map[string][]byte{corev1.DockerConfigJsonKey: []byte(content)}
	s.must(t, s.c.Update(t.Context(), secret))
	key = client.ObjectKey{Namespace: journey.HostedNamespace(s.cluster), Name: hosted.PullSecret}
	s.reach(t, "control plane has the new pull secret", soon, func(ctx context.Context) (bool, string, error) {
		err := s.c.Get(ctx, key, secret)
		return string(secret.Data[corev1.DockerConfigJsonKey]) == content, "it has the old one", err
	})
}

// createNone creates a cluster of platform None with a machine that the user provides.
func (s *suite) createNone(t *testing.T, payload string) {
	t.Helper()
	s.must(t, s.Type(t.Context(), "hypershift", "create", "cluster", "none", "--name", s.cluster,
		"--node-pool-replicas=-1", "--release-image", payload, "--pull-secret", s.Path("pull-secret.json"),
		"--additional-trust-bundle", env.Env{Dir: s.Dir, Bin: s.Bin}.RegistryCA()))
	s.must(t, s.Type(t.Context(), "hypershift", "create", "nodepool", "none", "--name", s.cluster,
		"--cluster-name", s.cluster, "--replicas", "1"))
	s.serves(t)
	s.bringMachine(t, s.cluster)
}

// patch changes the HostedCluster with a command of a user.
func (s *suite) patch(t *testing.T, change string) {
	t.Helper()
	s.must(t, s.Type(t.Context(), "kubectl", "patch", "hostedcluster", s.cluster, "-n", journey.Namespace,
		"--type=merge", "-p", change))
}
