// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/hosted"
)

// usersSecret returns a Secret that a user created in the namespace of the fixture's cluster.
func usersSecret(name string, data map[string]string) *corev1.Secret {
	return clustertest.Secret(metav1.ObjectMeta{Namespace: "clusters", Name: name}, data)
}

// contents returns the cluster's Secrets in the hosted namespace, as "name/key=value". A copy is listed with the name
// of its source.
func (s *server) contents(t *testing.T) map[string]string {
	t.Helper()
	secrets := &corev1.SecretList{}
	if err := s.Direct.List(t.Context(), secrets, client.InNamespace("clusters-demo")); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, secret := range secrets.Items {
		if secret.Annotations[hyperv1.HostedClusterAnnotation] != "clusters/demo" {
			continue
		}
		name := secret.Name
		if secret.Labels[hyperv1.UserCopyLabel] != "" {
			NewWithT(t).Expect(hosted.IsCopyName(name)).To(BeTrue(), name)
			name = "copy of " + secret.Annotations[hyperv1.UserCopySourceAnnotation]
		}
		for key, value := range secret.Data {
			found[name+"/"+key] = string(value)
		}
	}
	return found
}

const operatorImage = "registry.example/operator:1"

// reconciler is a phase.
type reconciler interface {
	Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error)
}

// server is a Copier with an in-memory API server.
type server struct {
	*clustertest.Server
	Copier
}

func newServer(objects ...client.Object) *server {
	s := clustertest.NewServer(objects...)
	return &server{s, NewCopier(s.Refusing, &Inputs{})}
}

// copying is a test of what a phase copies from the cluster's namespace into its hosted namespace.
type copying struct {
	run     func(Copier) reconciler
	edit    func(*hyperv1.HostedCluster)
	objects []client.Object
	refuse  string
	// want is the expected content of the hosted namespace; fails is a part of the expected error.
	want  map[string]string
	fails string
	// finds is the expected condition, as "Type=Status/Reason".
	finds string
}

func (c copying) check(t *testing.T) {
	t.Helper()
	g, d := NewWithT(t), newServer(c.objects...)
	d.Refuse = c.refuse
	s := clustertest.Scope()
	s.Platform, _ = fixture.Platforms(nil).For(s.HC.Spec.Platform.Type)
	if c.edit != nil {
		c.edit(s.HC)
	}
	result, err := c.run(d.Copier).Reconcile(t.Context(), s)
	g.Expect(result).To(BeZero())
	if c.fails == "" {
		g.Expect(err).NotTo(HaveOccurred())
	} else {
		g.Expect(err).To(MatchError(ContainSubstring(c.fails)))
	}
	if c.want == nil {
		c.want = map[string]string{}
	}
	if diff := cmp.Diff(c.want, d.contents(t)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var found []string
	for _, c := range s.Conditions {
		found = append(found, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	g.Expect(strings.Join(found, " ")).To(Equal(c.finds))
}

func TestCopiedPullSecret(t *testing.T) {
	const config = "demo-pull-secret"
	run, source := func(c Copier) reconciler { return PullSecret{c} }, usersSecret(config, map[string]string{".dockerconfigjson": "{}", "other": "x"})
	copied := map[string]string{"pull-secret/.dockerconfigjson": "{}"}
	for name, test := range map[string]copying{
		"the Secret exists, it should copy one key":                                         {run: run, objects: []client.Object{source}, want: copied},
		"the Secret has changed, it should update the copy":                                 {run: run, objects: []client.Object{source, clustertest.Secret(clustertest.Ours("clusters-demo", "pull-secret"), map[string]string{"old": "y"})}, want: copied},
		"the Secret is missing, it should report it":                                        {run: run, fails: "spec.pullSecret: there is no Secret clusters/demo-pull-secret", finds: "ValidReleaseImage=False/SecretNotFound"},
		"the Secret is empty, it should report it":                                          {run: run, objects: []client.Object{usersSecret(config, nil)}, fails: `has no key ".dockerconfigjson"`, finds: "ValidReleaseImage=False/SecretNotFound"},
		"another cluster has a Secret with the name of the copy, it should return an error": {run: run, objects: []client.Object{source, usersSecret("x", nil), clustertest.Secret(metav1.ObjectMeta{Namespace: "clusters-demo", Name: "pull-secret"}, nil)}, fails: "an object of that name"},
		"the copy cannot be written now, it should return the error":                        {run: run, objects: []client.Object{source}, refuse: "create v1.Secret", fails: clustertest.ErrNotNow.Error()},
	} {
		t.Run("When "+name, test.check)
	}
	t.Run("When the pull secret is copied, it should be used to access the registry", func(t *testing.T) {
		for _, kind := range []corev1.SecretType{"", corev1.SecretTypeOpaque} {
			g, s, objects := NewWithT(t), clustertest.Scope(), []client.Object{source.DeepCopy()}
			want := corev1.SecretTypeDockerConfigJson
			if kind != "" {
				old := clustertest.Secret(clustertest.Ours("clusters-demo", "pull-secret"), nil)
				old.Type, want = kind, kind
				objects = append(objects, old)
			}
			d := newServer(objects...)
			_, err := PullSecret{d.Copier}.Reconcile(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d.Inputs.PullSecret).To(BeEquivalentTo("{}"))
			made := s.Secret("pull-secret")
			g.Expect(d.Has(t, made)).To(BeTrue())
			g.Expect(made.Type).To(Equal(want), "the server lets nobody change it")
		}
	})
}

func TestCopiedEncryptionKeys(t *testing.T) {
	run := func(c Copier) reconciler { return Encryption{Copier: c} }
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	byKey := func(active string, backup *corev1.LocalObjectReference) func(*hyperv1.HostedCluster) {
		return clustertest.Encrypted(hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: named(active), BackupKey: backup}})
	}
	old, empty, reserved, creds := named("old"), named(""), named("ssh-key"), named("creds")
	keys := []client.Object{usersSecret("new", map[string]string{"key": "1", "x": "y"}), usersSecret("old", map[string]string{"key": "2"}),
		usersSecret("creds", map[string]string{"a": "1", "b": "2"}), usersSecret("ssh-key", map[string]string{"key": "3"})}
	for name, test := range map[string]copying{
		"nothing is encrypted, it should copy nothing": {run: run, objects: keys},
		"there is one key, it should copy it": {run: run, edit: byKey("new", nil), objects: keys,
			want: map[string]string{"copy of new/key": "1"}},
		"the backup key has no name, it should copy only the active key": {run: run, edit: byKey("new", &empty), objects: keys,
			want: map[string]string{"copy of new/key": "1"}},
		"there is a previous key, it should copy both": {run: run, edit: byKey("new", &old), objects: keys,
			want: map[string]string{"copy of new/key": "1", "copy of old/key": "2"}},
		"the Secret of the backup key is missing, it should copy the active key and report it": {run: run, edit: byKey("new", &old), objects: keys[:1],
			want:  map[string]string{"copy of new/key": "1"},
			fails: "spec.secretEncryption.aescbc: there is no Secret clusters/old"},
		"the cluster names no key, it should report it": {run: run, edit: clustertest.Encrypted(hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC}), objects: keys,
			fails: "spec.secretEncryption.aescbc is empty"},
		"the key has the name of a control plane Secret, it should copy it under another name": {run: run, edit: byKey("ssh-key", nil), objects: keys,
			want: map[string]string{"copy of ssh-key/key": "3"}},
		"a plugin needs no credentials, it should copy nothing": {run: run, edit: clustertest.EncryptedByPlugin(nil), objects: keys},
		"a plugin has credentials, it should copy all of its keys": {run: run, edit: clustertest.EncryptedByPlugin(&creds), objects: keys,
			want: map[string]string{"copy of creds/a": "1", "copy of creds/b": "2"}},
		"the credentials of a plugin are missing, it should report it": {run: run, edit: clustertest.EncryptedByPlugin(&old), objects: keys[:1],
			fails: "spec.secretEncryption.kms.plugin.credentials: there is no Secret"},
		"the credentials of a plugin have the name of a control plane Secret, it should copy them under another name": {run: run, edit: clustertest.EncryptedByPlugin(&reserved), objects: keys,
			want: map[string]string{"copy of ssh-key/key": "3"}},
		"a cloud's KMS is used, whose keys are not copied, it should succeed": {run: run,
			edit:    clustertest.Encrypted(hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.AWS}}),
			objects: keys},
		"a plugin is set but another provider is selected, it should copy nothing": {run: run, edit: func(hc *hyperv1.HostedCluster) {
			clustertest.EncryptedByPlugin(&creds)(hc)
			hc.Spec.SecretEncryption.KMS.Provider = hyperv1.AWS
		}, objects: keys},
		"a plugin is set but the type is not KMS, it should copy nothing": {run: run, edit: func(hc *hyperv1.HostedCluster) {
			clustertest.EncryptedByPlugin(&creds)(hc)
			hc.Spec.SecretEncryption.Type = hyperv1.AESCBC
		}, objects: keys, fails: "aescbc is empty"},
		"the type is KMS without its settings, it should copy nothing": {run: run, edit: clustertest.Encrypted(hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS}), objects: keys},
	} {
		t.Run("When "+name, test.check)
	}
}

// cloud is a fake platform that records its calls.
type cloud struct {
	platform.Platform
	asked []platform.Cluster
	err   error
}

func (c *cloud) ReconcileSecretEncryption(_ context.Context, _ client.Client, cluster platform.Cluster) error {
	c.asked = append(c.asked, cluster)
	return c.err
}

func TestEncryptionByAPlatform(t *testing.T) {
	for name, err := range map[string]error{"When the platform copies its keys, it should return no error": nil, "When the platform fails, it should return the error": clustertest.ErrNotNow} {
		t.Run(name, func(t *testing.T) {
			c, s := &cloud{err: err}, clustertest.Scope()
			s.Platform = c
			clustertest.Encrypted(hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.AWS}})(s.HC)
			_, got := Encryption{newServer().Copier, operatorImage}.Reconcile(t.Context(), s)
			NewWithT(t).Expect(c.asked).To(HaveLen(1))
			NewWithT(t).Expect(c.asked[0].OperatorImage).To(Equal(operatorImage))
			if got != err {
				t.Errorf("%v, want %v", got, err)
			}
		})
	}
}

func TestCopiedEtcdBackup(t *testing.T) {
	run := func(c Copier) reconciler { return EtcdBackup{c} }
	scheduled := func(key, s3 string) func(*hyperv1.HostedCluster) {
		return func(hc *hyperv1.HostedCluster) {
			hc.Spec.Etcd.Managed.AutomatedBackup = &hyperv1.AutomatedEtcdBackupConfig{EncryptionKey: hyperv1.SecretReference{Name: key}}
			if s3 != "" {
				hc.Spec.Etcd.Managed.AutomatedBackup.Storage.S3 = &hyperv1.HCPEtcdBackupS3{Credentials: hyperv1.SecretReference{Name: s3}}
			}
		}
	}
	age := usersSecret("age", map[string]string{"recipients": "public", "identity": "private"})
	with := func(name string, data map[string]string) []client.Object {
		return []client.Object{age.DeepCopy(), usersSecret(name, data)}
	}
	const field = "spec.etcd.managed.automatedBackup."
	public := map[string]string{"copy of age/recipients": "public"}
	for name, test := range map[string]copying{
		"nothing is scheduled, it should copy nothing": {run: run, objects: with("s3", nil)},
		"etcd is unmanaged, it should copy nothing":    {run: run, edit: func(hc *hyperv1.HostedCluster) { hc.Spec.Etcd.Managed = nil }},
		"the Secret of the key is missing, it should report it": {run: run, edit: scheduled("age", ""), fails: field +
			"encryptionKey: there is no Secret clusters/age"},
		"the storage is not S3, it should copy only the public key": {run: run, edit: scheduled("age", ""), objects: with("s3", nil), want: public},
		"the Secret of the credentials is missing, it should report it": {run: run, edit: scheduled("age", "s3"), objects: []client.Object{age.DeepCopy()},
			want: public, fails: field + "storage.s3.credentials: there is no Secret clusters/s3"},
		"the credentials are empty, it should report it": {run: run, edit: scheduled("age", "s3"),
			objects: with("s3", map[string]string{"credentials": ""}), want: public, fails: field +
				`storage.s3.credentials: the Secret clusters/s3 has no key "credentials"`},
		"the storage needs no CA, it should copy only the credentials": {run: run, edit: scheduled("age", "s3"),
			objects: with("s3", map[string]string{"credentials": "c", "ca-bundle.crt": "", "x": "y"}),
			want:    map[string]string{"copy of age/recipients": "public", "copy of s3/credentials": "c"}},
		"the storage has a CA, it should copy it too": {run: run, edit: scheduled("age", "s3"),
			objects: with("s3", map[string]string{"credentials": "c", "ca-bundle.crt": "CA"}),
			want: map[string]string{"copy of age/recipients": "public", "copy of s3/credentials": "c",
				"copy of s3/ca-bundle.crt": "CA"}},
		"the credentials have the name of a control plane Secret, it should copy them under another name": {run: run, edit: scheduled("age", "ssh-key"),
			objects: with("ssh-key", map[string]string{"credentials": "c"}),
			want:    map[string]string{"copy of age/recipients": "public", "copy of ssh-key/credentials": "c"}},
		"the copy cannot be written now, it should return the error": {run: run, edit: scheduled("age", ""), objects: with("s3", nil), refuse: "create v1.Secret", fails: field + "encryptionKey"},
	} {
		t.Run("When "+name, test.check)
	}
}

// TestDropped checks that objects of other clusters are kept.
func TestDropped(t *testing.T) {
	bundle := func(owner string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "user-ca-bundle",
			Labels:      map[string]string{hyperv1.OperatorObjectLabel: "true"},
			Annotations: map[string]string{hyperv1.HostedClusterAnnotation: owner}}}
	}
	older := func(owner string) client.Object {
		bundle := bundle(owner)
		bundle.SetLabels(nil)
		return bundle
	}
	none := func(hc *hyperv1.HostedCluster) { hc.Spec.AdditionalTrustBundle = nil }
	for name, test := range map[string]struct {
		objects []client.Object
		edit    func(*hyperv1.HostedCluster)
		refuse  string
		stays   bool
		fails   bool
	}{
		"the bundle belongs to the cluster, it should delete it":                            {[]client.Object{bundle("clusters/demo")}, none, "", false, false},
		"the bundle belongs to another cluster, it should keep it":                          {[]client.Object{bundle("clusters/other")}, none, "", true, false},
		"the bundle does not exist, it should succeed":                                      {nil, none, "", false, false},
		"the bundle has no label, so it may belong to the configuration, it should keep it": {[]client.Object{older("clusters/demo")}, none, "", true, false},
		"the bundle cannot be read now, it should return the error":                         {[]client.Object{bundle("clusters/demo")}, none, "get v1.ConfigMap clusters-demo/user-ca-bundle", true, true},
		"the bundle cannot be deleted now, it should return the error":                      {[]client.Object{bundle("clusters/demo")}, none, "delete v1.ConfigMap", true, true},
		"the bundle belongs to another cluster and cannot be deleted, it should succeed":    {[]client.Object{bundle("clusters/other")}, none, "delete v1.ConfigMap", true, false},
	} {
		t.Run("When "+name, func(t *testing.T) {
			d := newServer(test.objects...)
			d.Refuse = test.refuse
			_, err := TrustBundle{d.Copier}.Reconcile(t.Context(), clustertest.Scope(func(s *cluster.Scope) { test.edit(s.HC) }))
			NewWithT(t).Expect(err != nil).To(Equal(test.fails))
			NewWithT(t).Expect(d.Has(t, bundle(""))).To(Equal(test.stays))
		})
	}
}
