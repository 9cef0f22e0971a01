// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

func TestCopiedSSHKey(t *testing.T) {
	run := func(c Copier) reconciler { return SSHKey{c} }
	named := func(name string) func(*hyperv1.HostedCluster) {
		return func(hc *hyperv1.HostedCluster) { hc.Spec.SSHKey.Name = name }
	}
	old := clustertest.Secret(clustertest.Ours("clusters-demo", "ssh-key"), map[string]string{"id_rsa.pub": "old"})
	for name, test := range map[string]copying{
		"there is an SSH key, it should update the copy with the public key": {run: run, objects: []client.Object{usersSecret("demo-ssh-key", map[string]string{"id_rsa.pub": "ssh", "id_rsa": "private"}), old.DeepCopy()},
			want: map[string]string{"ssh-key/id_rsa.pub": "ssh"}},
		"the Secret has the name of a control plane Secret, it should still copy it": {run: run, edit: named("pull-secret"), objects: []client.Object{usersSecret("pull-secret", map[string]string{"id_rsa.pub": "ssh"})},
			want: map[string]string{"ssh-key/id_rsa.pub": "ssh"}},
		"the Secret has the name of the copy, it should copy it": {run: run, edit: named("ssh-key"), objects: []client.Object{usersSecret("ssh-key", map[string]string{"id_rsa.pub": "ssh"})},
			want: map[string]string{"ssh-key/id_rsa.pub": "ssh"}},
		"the Secret is missing, it should keep the copy and report it":     {run: run, objects: []client.Object{old.DeepCopy()}, want: map[string]string{"ssh-key/id_rsa.pub": "old"}, fails: "spec.sshKey: there is no Secret clusters/demo-ssh-key"},
		"there is no SSH key, it should copy nothing":                      {run: run, edit: named("")},
		"the SSH key was removed from the spec, it should delete the copy": {run: run, edit: named(""), objects: []client.Object{old.DeepCopy()}},
		"the copy cannot be deleted, it should return the error": {run: run, edit: named(""), objects: []client.Object{old.DeepCopy()}, refuse: "delete v1.Secret", fails: clustertest.ErrNotNow.Error(),
			want: map[string]string{"ssh-key/id_rsa.pub": "old"}},
		"the Secret cannot be read now, it should return the error": {run: run, refuse: "get v1.Secret clusters/demo-ssh-key", fails: "spec.sshKey: reading Secret clusters/demo-ssh-key: not now"},
	} {
		t.Run("When "+name, test.check)
	}
	t.Run("When the copy exists, it should keep its type", func(t *testing.T) {
		for kind, want := range map[corev1.SecretType]corev1.SecretType{"": corev1.SecretTypeOpaque, corev1.SecretTypeTLS: corev1.SecretTypeTLS} {
			d, live := newServer(usersSecret("demo-ssh-key", map[string]string{"id_rsa.pub": "ssh"})), old.DeepCopy()
			if live.Type = kind; kind != "" {
				NewWithT(t).Expect(d.Direct.Create(t.Context(), live)).To(Succeed())
			}
			_, err := SSHKey{d.Copier}.Reconcile(t.Context(), clustertest.Scope())
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			made := clustertest.Scope().Secret("ssh-key")
			NewWithT(t).Expect(d.Has(t, made)).To(BeTrue())
			NewWithT(t).Expect(made.Type).To(Equal(want))
		}
	})
}

func TestCopiedTrustBundle(t *testing.T) {
	source := func(data map[string]string) *corev1.ConfigMap {
		bundle := &corev1.ConfigMap{Data: data}
		bundle.Namespace, bundle.Name = "clusters", fixture.TrustBundle
		return bundle
	}
	good := source(map[string]string{"ca-bundle.crt": "PEM", "x": "y"})
	theirs := &corev1.ConfigMap{}
	theirs.Namespace, theirs.Name = "clusters-demo", "user-ca-bundle"
	for name, test := range map[string]struct {
		objects       []client.Object
		refuse, fails string
	}{
		"When the ConfigMap exists, it should copy it":                         {[]client.Object{good}, "", ""},
		"When the ConfigMap is missing, it should report it":                   {nil, "", "spec.additionalTrustBundle: there is no ConfigMap clusters/demo-trust"},
		"When the ConfigMap is empty, it should report it":                     {[]client.Object{source(nil)}, "", `spec.additionalTrustBundle: the ConfigMap clusters/demo-trust has no key "ca-bundle.crt"`},
		"When the ConfigMap cannot be read now, it should return the error":    {[]client.Object{good}, "get v1.ConfigMap clusters/demo-trust", "spec.additionalTrustBundle: reading ConfigMap clusters/demo-trust"},
		"When the copy cannot be written now, it should return the error":      {[]client.Object{good}, "create v1.ConfigMap", clustertest.ErrNotNow.Error()},
		"When the name is taken by another cluster, it should return an error": {[]client.Object{good, theirs}, "", "an object of that name"},
	} {
		t.Run(name, func(t *testing.T) {
			g, d, s := NewWithT(t), newServer(test.objects...), clustertest.Scope()
			d.Refuse = test.refuse
			_, err := TrustBundle{d.Copier}.Reconcile(t.Context(), s)
			made := &corev1.ConfigMap{ObjectMeta: clustertest.Ours("clusters-demo", "user-ca-bundle")}
			if test.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.fails)))
				g.Expect(d.Has(t, made) && len(made.Data) > 0).To(BeFalse())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d.Inputs.TrustBundle).To(BeEquivalentTo("PEM"))
			g.Expect(d.Has(t, made)).To(BeTrue())
			g.Expect(made.Data).To(Equal(map[string]string{"ca-bundle.crt": "PEM"}))
			g.Expect(made.Annotations).To(HaveKeyWithValue(hyperv1.HostedClusterAnnotation, "clusters/demo"), "else nobody would delete it again")
		})
	}
}

func TestCopiedSigningKey(t *testing.T) {
	run := func(c Copier) reconciler { return SigningKey{c} }
	named := func(hc *hyperv1.HostedCluster) {
		hc.Spec.ServiceAccountSigningKey = &corev1.LocalObjectReference{Name: "signing"}
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	private := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	exchange, err := ecdh.X25519().GenerateKey(rand.Reader)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	der, err = x509.MarshalPKCS8PrivateKey(exchange)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	cannotSign := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	with := func(data map[string]string) []client.Object { return []client.Object{usersSecret("signing", data)} }
	for name, test := range map[string]copying{
		"there is no signing key, it should copy nothing": {run: run, objects: with(map[string]string{"key": private})},
		"there is a signing key, it should copy it with its public key": {run: run, edit: named, objects: with(map[string]string{"key": private}),
			want: map[string]string{"sa-signing-key/service-account.key": private, "sa-signing-key/service-account.pub": public}},
		"there is a previous signing key, it should copy both public keys": {run: run, edit: named, objects: with(map[string]string{"key": private, "old-key.pub": "former"}),
			want: map[string]string{"sa-signing-key/service-account.key": private, "sa-signing-key/service-account.pub": public + "former"}},
		"the Secret is missing, it should report it":                 {run: run, edit: named, fails: "spec.serviceAccountSigningKey: there is no Secret clusters/signing"},
		"the key is not PEM, it should report it":                    {run: run, edit: named, objects: with(map[string]string{"key": "x"}), fails: "spec.serviceAccountSigningKey: Secret signing: its key is not PEM"},
		"the key cannot sign, it should report it":                   {run: run, edit: named, objects: with(map[string]string{"key": cannotSign}), fails: "Secret signing: its key cannot sign"},
		"the copy cannot be written now, it should return the error": {run: run, edit: named, objects: with(map[string]string{"key": private}), refuse: "create v1.Secret", fails: clustertest.ErrNotNow.Error()},
	} {
		t.Run("When "+name, test.check)
	}
}

func TestCopiedEtcdClient(t *testing.T) {
	run := func(c Copier) reconciler { return EtcdClient{c} }
	own := func(secret string) func(*hyperv1.HostedCluster) {
		return func(hc *hyperv1.HostedCluster) {
			hc.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{
				TLS: hyperv1.EtcdTLSConfig{ClientSecret: corev1.LocalObjectReference{Name: secret}}}}
		}
	}
	pair := clustertest.KeyPair(t)
	good := map[string]string{"etcd-client.crt": string(pair.CertPEM), "etcd-client.key": string(pair.KeyPEM), "etcd-client-ca.crt": string(pair.CertPEM)}
	copied := map[string]string{}
	for key, value := range good {
		copied["copy of etcd-tls/"+key] = value
	}
	bad := map[string]string{"etcd-client.crt": good["etcd-client.crt"], "etcd-client.key": good["etcd-client.crt"], "etcd-client-ca.crt": good["etcd-client-ca.crt"]}
	with := func(name string, data map[string]string) []client.Object {
		return []client.Object{usersSecret(name, data)}
	}
	const fine, wrong = "UnmanagedEtcdAvailable=True/UnmanagedEtcdAsExpected", "UnmanagedEtcdAvailable=False/UnmanagedEtcdMisconfigured"
	for name, test := range map[string]copying{
		"etcd is managed, it should copy nothing":                    {run: run, objects: with("etcd-tls", good)},
		"etcd was unmanaged before, it should copy nothing":          {run: run, edit: func(hc *hyperv1.HostedCluster) { own("etcd-tls")(hc); hc.Spec.Etcd.ManagementType = hyperv1.Managed }, objects: with("etcd-tls", good)},
		"etcd is unmanaged without settings, it should copy nothing": {run: run, edit: func(hc *hyperv1.HostedCluster) { own("")(hc); hc.Spec.Etcd.Unmanaged = nil }},
		"the Secret is complete, it should copy all keys":            {run: run, edit: own("etcd-tls"), objects: with("etcd-tls", good), want: copied, finds: fine},
		"the Secret is missing, it should report it":                 {run: run, edit: own("etcd-tls"), fails: "spec.etcd.unmanaged.tls: there is no Secret clusters/etcd-tls", finds: wrong},
		"the key is invalid, it should report it and copy nothing":   {run: run, edit: own("etcd-tls"), objects: with("etcd-tls", bad), fails: "spec.etcd.unmanaged.tls: the Secret clusters/etcd-tls: the client certificate", finds: wrong},
	} {
		t.Run("When "+name, test.check)
	}
}

func TestCopiedAuditWebhook(t *testing.T) {
	run := func(c Copier) reconciler { return AuditWebhook{c} }
	named := func(name string) func(*hyperv1.HostedCluster) {
		return func(hc *hyperv1.HostedCluster) { hc.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: name} }
	}
	kubeconfig := func(user string) map[string]string {
		return map[string]string{"webhook-kubeconfig": `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
  clusters: [{name: a, cluster: {server: "https://audit.example"}}], users: [{name: a, user: ` + user + `}]}`}
	}
	good := kubeconfig("{token: secret}")
	with := func(name string, data map[string]string) []client.Object {
		return []client.Object{usersSecret(name, data)}
	}
	const field = "spec.auditWebhook: "
	for name, test := range map[string]copying{
		"there is no audit webhook, it should copy nothing": {run: run, objects: with("audit", good)},
		"there is an audit webhook, it should copy its kubeconfig": {run: run, edit: named("audit"), objects: with("audit", good),
			want: map[string]string{"copy of audit/webhook-kubeconfig": good["webhook-kubeconfig"]}},
		"the Secret is missing, it should report it": {run: run, edit: named("audit"), fails: field + "there is no Secret clusters/audit"},
		"the kubeconfig reads a local file, it should reject it": {run: run, edit: named("audit"),
			objects: with("audit", kubeconfig("{tokenFile: /var/run/token}")), fails: field +
				"the Secret clusters/audit, key webhook-kubeconfig: "},
		"the Secret has the name of a control plane Secret, it should copy it under another name": {run: run, edit: named("pull-secret"), objects: with("pull-secret", good),
			want: map[string]string{"copy of pull-secret/webhook-kubeconfig": good["webhook-kubeconfig"]}},
		"the copy cannot be written now, it should return the error": {run: run, edit: named("audit"), objects: with("audit", good), refuse: "create v1.Secret", fails: field},
	} {
		t.Run("When "+name, test.check)
	}
}

// TestSources checks that errors name the object that the user has to fix.
func TestSources(t *testing.T) {
	d, s := newServer(usersSecret("empty", map[string]string{"a": "1"})), clustertest.Scope()
	_, err := d.Secret(t.Context(), s, "", "a")
	NewWithT(t).Expect(err).To(MatchError("it names no Secret: set its name"))
	_, err = d.ConfigMap(t.Context(), s, "", "a")
	NewWithT(t).Expect(err).To(MatchError("it names no ConfigMap: set its name"))
	_, err = d.Secret(t.Context(), s, "empty", "a", "b")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`"b"`)))
	source, err := d.Secret(t.Context(), s, "empty", "a")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(source.Data).To(HaveKey("a"))
}

// TestSigningKeys uses the kinds of keys that users create with openssl.
func TestSigningKeys(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, tc := range []struct {
		name    string
		private []byte
		says    string
	}{
		{"When the key is PKCS #8, it should return the public key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), ""},
		{"When the key is not a private key, it should name the accepted formats", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: public}),
			"its key is neither a PKCS #1 nor a PKCS #8 private key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			text, err := publicKey(tc.private)
			if tc.says != "" {
				g.Expect(err).To(MatchError(tc.says))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			block, _ := pem.Decode(text)
			g.Expect(block).NotTo(BeNil())
			g.Expect(block.Bytes).To(Equal(public))
		})
	}
}

func TestPublicKey(t *testing.T) {
	t.Run("When the key is not PEM, it should return an error that does not contain the key", func(t *testing.T) {
		_, err := publicKey([]byte("top secret"))
		g := NewWithT(t)
		g.Expect(err).To(MatchError("its key is not PEM"))
	})
}
