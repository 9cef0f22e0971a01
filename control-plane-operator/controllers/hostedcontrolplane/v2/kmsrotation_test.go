// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"bytes"
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/support/testenv"
)

// TestKMSPlugin makes a real API server encrypt with a plugin. It migrates from a key in a Secret to the plugin, to a
// second key of the plugin, and back to a Secret. It reads and writes Secrets at every step. It also stops the plugin
// and checks what still works.
func TestKMSPlugin(t *testing.T) {
	testenv.Long(t)
	r := newRotation(t, 1)
	// The path of a socket must be short, and t.TempDir returns long paths.
	sockets, err := os.MkdirTemp("", "kms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	r.servers[0].sockets = sockets
	plugin := newPlugin(t, sockets, "vault")

	r.scope.HCP.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{
		Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "key-1"}},
	}
	r.settle()
	r.all("k8s:enc:secretbox:v1:")
	r.goOver("to the plugin", encryptedBy("vault"))
	r.all("k8s:enc:kms:v2:vault:")
	r.rotates(plugin)

	r.check("the plugin is there")
	plugin.stop()
	r.lives(0)
	r.replaceUnready(0)
	plugin.serve()
	r.replace(0, kubeapiserver.New())
	r.check("the plugin is back and a server started anew")

	r.use("away from the plugin", "key-2")
	r.all("k8s:enc:secretbox:v1:")
	plugin.stop()
	r.replace(0, kubeapiserver.New())
	r.check("the plugin is gone for good")
	if config := r.config(); len(config.Data) != 1 || bytes.Contains(config.Data["config.yaml"], []byte("kms")) {
		t.Errorf("the plugin is still in the configuration:\n%s", config.Data["config.yaml"])
	}
	if pod := r.template().Spec; kubeapiserver.HasPlugins(&pod) || strings.Contains(pod.Containers[0].ReadinessProbe.HTTPGet.Path, "kms") {
		t.Errorf("the plugin still runs: %v", pod.InitContainers)
	}
}

func encryptedBy(plugin string) *hyperv1.SecretEncryptionSpec {
	return &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{
		Provider: hyperv1.KMSPlugin, Plugin: &hyperv1.KMSPluginSpec{Name: plugin, Image: "registry.example/kms/" + plugin + ":1"},
	}}
}

// stored returns the guest's Secrets as they are in etcd.
func (r *rotation) stored() map[string][]byte {
	r.t.Helper()
	return r.servers[0].storedIn("https://localhost:"+r.servers[0].ports["2379"], "/kubernetes.io/secrets/")
}

// storedIn returns the data in the API server's etcd, by key prefix.
func (m *machine) storedIn(url, prefix string) map[string][]byte {
	m.t.Helper()
	config, err := etcd.ClientTLS(m.t.Context(), m.scope.Client, namespace)
	if err != nil {
		m.t.Fatal(err)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: 30 * time.Second, TLS: config})
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close()
	answer, err := c.Get(m.t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		m.t.Fatal(err)
	}
	stored := map[string][]byte{}
	for _, kv := range answer.Kvs {
		stored[string(kv.Key)] = kv.Value
	}
	return stored
}

// all checks that all data is stored with the given key prefix.
func (r *rotation) all(prefix string) {
	r.t.Helper()
	stored := r.stored()
	if len(stored) == 0 {
		r.t.Fatal("etcd has no Secrets")
	}
	for key, value := range stored {
		if !bytes.HasPrefix(value, []byte(prefix)) {
			r.t.Errorf("%s is stored as %.40q, not as %s", key, value, prefix)
		}
	}
}

// rotates makes the plugin switch to a new key. The plugin loses the previous key when the config operator reports that
// no data needs it.
func (r *rotation) rotates(p *plugin) {
	r.t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	m := r.reencryption(clock)
	keyID := func() string { return r.config().Annotations[kubeapiserver.EncryptionKeyID] }
	r.reencrypt(m)
	clock.SetTime(clock.Now().Add(time.Hour))
	r.reencrypt(m)
	before, stored := keyID(), r.stored()
	if before == "" {
		r.t.Fatal("the key of the plugin is not remembered")
	}
	p.take("second")
	// Restart the API server: it would query its plugin only once a minute.
	r.replace(0, kubeapiserver.New())
	m.Guest = r.guests[0]
	r.reencrypt(m)
	if keyID() != before {
		r.t.Fatal("another API server may still write with the key before")
	}
	clock.SetTime(clock.Now().Add(time.Hour))
	r.reencrypt(m)
	if keyID() == before {
		r.t.Fatal("what the plugin encrypted with another key was not written anew")
	}
	for key, value := range r.stored() {
		if bytes.Equal(value, stored[key]) {
			r.t.Errorf("%s is as it was", key)
		}
	}
	p.lose("first")
	r.replace(0, kubeapiserver.New())
	r.check("the plugin lost the key before")
}

// lives checks that a server is neither restarted nor taken out of service when its plugin is down: both probes
// succeed, and objects other than Secrets can be written.
func (r *rotation) lives(i int) {
	r.t.Helper()
	container := r.template().Spec.Containers[0]
	caller := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answers := func(path string) int {
		response, err := caller.Get("https://127.0.0.1:" + r.servers[i].ports["6443"] + path)
		if err != nil {
			return 0
		}
		response.Body.Close()
		return response.StatusCode
	}
	comes := func(path string, status int) error {
		return wait.PollUntilContextTimeout(r.t.Context(), 200*time.Millisecond, patience, true, func(context.Context) (bool, error) {
			return answers(path) == status, nil
		})
	}
	if comes(container.StartupProbe.HTTPGet.Path, http.StatusInternalServerError) != nil {
		r.t.Fatal("the API server does not notice that its plugin is away")
	}
	for _, probe := range []*corev1.Probe{container.ReadinessProbe, container.LivenessProbe} {
		if comes(probe.HTTPGet.Path, http.StatusOK) != nil {
			r.t.Errorf("%s answers %d", probe.HTTPGet.Path, answers(probe.HTTPGet.Path))
		}
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "without-plugin"}}
	if err := r.guests[i].Create(r.t.Context(), cm); err != nil {
		r.t.Errorf("what is no Secret cannot be written: %v", err)
	}
}

// replaceUnready restarts a server whose plugin is down. The server must not count as started, and must not be able to
// read Secrets.
func (r *rotation) replaceUnready(i int) {
	r.t.Helper()
	m, kas := r.servers[i], kubeapiserver.New()
	r.stops[i]()
	m.unready = true
	defer func() { m.unready = false }()
	r.replace(i, kas)
	list := &corev1.SecretList{}
	// The client retries as the server requests, so the call needs a timeout.
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
	defer cancel()
	if err := r.guests[i].List(ctx, list, client.InNamespace("default")); err == nil {
		r.t.Errorf("%d Secrets are read without the plugin", len(list.Items))
	}
}
