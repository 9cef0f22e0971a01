// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
)

func byPlugin(plugin *hyperv1.KMSPluginSpec) *hyperv1.SecretEncryptionSpec {
	return &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.KMSPlugin, Plugin: plugin}}
}

func TestValidateEncryption(t *testing.T) {
	for name, tc := range map[string]struct {
		spec *hyperv1.SecretEncryptionSpec
		can  bool
	}{
		"no encryption":                 {nil, true},
		"a key":                         {&hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{}}, true},
		"type aescbc without a block":   {&hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC}, false},
		"type kms with an aescbc block": {&hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, AESCBC: &hyperv1.AESCBCSpec{}}, false},
		"type kms without a kms block":  {&hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS}, false},
		"the KMS of a cloud provider": {&hyperv1.SecretEncryptionSpec{
			Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.AZURE, Plugin: vault("v:1")}}, false},
		"a plugin":                            {byPlugin(vault("v:1")), true},
		"a KMS plugin without a plugin block": {byPlugin(nil), false},
		"type aescbc with a kms block":        {&hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, KMS: byPlugin(vault("v:1")).KMS}, false},
	} {
		t.Run("When a cluster requests "+name+" it should be accepted or rejected", func(t *testing.T) {
			g, hcp := NewWithT(t), clusterWith()
			hcp.Spec.SecretEncryption = tc.spec
			if tc.can {
				g.Expect(ValidateEncryption(hcp)).To(Succeed())
				return
			}
			g.Expect(ValidateEncryption(hcp)).To(MatchError(ContainSubstring("use type aescbc, or kms with provider")))
			g.Expect(WantedKey(t.Context(), hostedClient(), hcp)).To(BeNil(), "what cannot be had is no target")
		})
	}
}

func TestWantedKey(t *testing.T) {
	short := keySecret("short-key")
	short.Data["key"] = []byte("short")
	c := hostedClient(keySecret("a-key"), keySecret("b-key"), short)
	wanted := func(spec *hyperv1.SecretEncryptionSpec) *hyperv1.SecretEncryptionKeyStatus {
		hcp := clusterWith()
		hcp.Spec.SecretEncryption = spec
		return WantedKey(t.Context(), c, hcp)
	}
	of := func(name string) *hyperv1.SecretEncryptionSpec {
		return &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: name}}}
	}
	t.Run("When the key is in a Secret, it should return the Secret's name and a hash of the key", func(t *testing.T) {
		g, a := NewWithT(t), wanted(of("a-key"))
		g.Expect(a.Provider).To(Equal(hyperv1.SecretEncryptionProviderAESCBC))
		g.Expect(a.AESCBC.Secret.Name).To(Equal("a-key"))
		g.Expect(a.AESCBC.DataHash).NotTo(Equal(wanted(of("b-key")).AESCBC.DataHash))
		g.Expect(a.AESCBC.DataHash).NotTo(ContainSubstring("aaaa"), "nothing of the key itself")
	})
	t.Run("When the key is in a plugin, it should return the plugin's name", func(t *testing.T) {
		g, key := NewWithT(t), wanted(byPlugin(vault("v:1")))
		g.Expect(key.Provider).To(Equal(hyperv1.SecretEncryptionProviderPlugin))
		g.Expect(key.Plugin.Name).To(Equal("vault"))
	})
	for name, spec := range map[string]*hyperv1.SecretEncryptionSpec{"nothing is encrypted": nil, "the Secret does not exist": of("lost"), "the key is invalid": of("short-key")} {
		t.Run("When "+name+" it should return no key", func(t *testing.T) {
			NewWithT(t).Expect(wanted(spec)).To(BeNil())
		})
	}
}

func TestEncryptionStageOf(t *testing.T) {
	byVault := stored(t, move{number: 4, stage: hyperv1.EncryptionMigrationCompleted, providers: []provider{{Kind: kms, Name: "vault"}, box("a")}})
	byKey := stored(t, move{number: 4, stage: hyperv1.EncryptionMigrationCompleted, providers: []provider{box("a"), {Kind: kms, Name: "vault"}}})
	at := func(stage hyperv1.EncryptionMigrationState) *corev1.Secret {
		return stored(t, move{number: 7, stage: stage, providers: []provider{box("a"), box("b")}})
	}
	for _, tc := range []struct {
		name            string
		live            *corev1.Secret
		reason, message string
		done            bool
	}{
		{"API servers learn to read", at(hyperv1.EncryptionMigrationReadOnlyDeploy), "ReadOnlyRolloutInProgress", "Migration 7: ", false},
		{"API servers start to write with the new key", at(hyperv1.EncryptionMigrationWritePromote), "WritePromotionInProgress", "Migration 7: ", false},
		{"stored objects are rewritten", at(hyperv1.EncryptionMigrationMigrating), "ReEncryptionInProgress", "Migration 7: ", false},
		{"a migration to a plugin is completed", byVault, "ReEncryptionCompleted", "by plugin vault", true},
		{"a migration to a key is completed", byKey, "ReEncryptionCompleted", "by secretbox, with a key of type aescbc", true},
	} {
		t.Run("When "+tc.name+" it should return the reason and message", func(t *testing.T) {
			g := NewWithT(t)
			reason, message, done := EncryptionStageOf(tc.live)
			g.Expect(reason).To(Equal(tc.reason))
			g.Expect(message).To(ContainSubstring(tc.message))
			g.Expect(done).To(Equal(tc.done))
		})
	}
	for name, tc := range map[string]struct {
		live *corev1.Secret
		want string
	}{
		"a plugin":                           {byVault, "vault"},
		"a key while a plugin only decrypts": {byKey, ""},
		"unreadable":                         {&corev1.Secret{Data: map[string][]byte{encryptionKey: []byte("{")}}, ""},
		"not set":                            {&corev1.Secret{}, ""},
	} {
		t.Run("When what encrypts is "+name+" it should return the plugin's name or nothing", func(t *testing.T) {
			NewWithT(t).Expect(WritingPlugin(tc.live)).To(Equal(tc.want))
		})
	}
}

// TestStatusOfPlugins checks that a key that only a plugin knows is identified by the plugin's name.
func TestStatusOfPlugins(t *testing.T) {
	g, now := NewWithT(t), time.Unix(0, 0)
	key := func(name string) hyperv1.SecretEncryptionKeyStatus {
		return hyperv1.SecretEncryptionKeyStatus{Provider: hyperv1.SecretEncryptionProviderPlugin, Plugin: hyperv1.KMSPluginKeyStatus{Name: name}}
	}
	live := func(stage hyperv1.EncryptionMigrationState, names ...string) *corev1.Secret {
		var providers []provider
		for _, name := range names {
			providers = append(providers, provider{Kind: kms, Name: name})
		}
		return stored(t, move{number: 1, stage: stage, providers: providers})
	}
	done := hyperv1.EncryptionMigrationCompleted
	status := EncryptionStatus(hyperv1.SecretEncryptionStatus{}, live(done, "vault"), key("vault"), now)
	g.Expect(status.ActiveKey).To(Equal(key("vault")))
	g.Expect(status.History).To(BeEmpty(), "it comes from no key")

	status = EncryptionStatus(status, live(done, "vault"), key("hsm"), now)
	g.Expect(status.ActiveKey).To(Equal(key("vault")), "the plugin that is asked for encrypts nothing yet")
	g.Expect(status.TargetKey).To(Equal(key("hsm")))
	g.Expect(status.History).To(HaveLen(1))
	g.Expect(status.History[0].State).To(Equal(hyperv1.EncryptionMigrationReadOnlyDeploy))

	status = EncryptionStatus(status, live(done, "hsm"), key("hsm"), now.Add(time.Hour))
	g.Expect(status.ActiveKey).To(Equal(key("hsm")))
	g.Expect(status.TargetKey).To(BeZero())
	g.Expect(status.History).To(HaveLen(1))
	g.Expect(status.History[0].CompletionTime.Sub(status.History[0].StartedTime.Time)).To(Equal(time.Hour))
	g.Expect(EncryptionStatus(status, live(done, "hsm"), key("hsm"), now.Add(2*time.Hour))).To(Equal(status), "what is settled changes no more")
}

func TestRunPlugins(t *testing.T) {
	config := func(known plugins) *corev1.Secret {
		var providers []provider
		for name := range known {
			providers = append(providers, provider{Kind: kms, Name: name})
		}
		live := stored(t, move{stage: hyperv1.EncryptionMigrationCompleted, providers: append(providers, box("a"))})
		live.Namespace, live.Name = fixture.Namespace, EncryptionSecret
		NewWithT(t).Expect(known.write(live)).To(Succeed())
		return live
	}
	t.Run("When two plugins are needed, both should run, always in the same order", func(t *testing.T) {
		g := NewWithT(t)
		known := plugins{"vault": {Name: "vault", Image: "v.example/v:1"}, "hsm": {Name: "hsm", Image: "h.example/h:1"}}
		spec := rendered(t, scopeOf(clusterWith(encryptedWith("a-key")), config(known))).Spec.Template.Spec
		var names []string
		for _, container := range spec.InitContainers[2:] { // The others wait for etcd, and serve the tunnel.
			names = append(names, container.Name+" "+container.Image)
		}
		g.Expect(names).To(Equal([]string{"kms-hsm h.example/h:1", "kms-vault v.example/v:1"}))
		g.Expect(spec.Containers[0].ReadinessProbe.HTTPGet.Path).To(Equal("/readyz?exclude=kms-providers"))
		g.Expect(HasPlugins(&spec)).To(BeTrue())
	})
	t.Run("When no plugin is needed, the probes should not exclude KMS", func(t *testing.T) {
		g := NewWithT(t)
		spec := rendered(t, scopeOf(clusterWith(encryptedWith("a-key")), config(plugins{}))).Spec.Template.Spec
		g.Expect(spec.InitContainers).To(HaveLen(2), "one that waits for etcd, and the tunnel")
		g.Expect(spec.Containers[0].ReadinessProbe.HTTPGet.Path).To(Equal("/readyz"))
		g.Expect(HasPlugins(&spec)).To(BeFalse())
	})
	t.Run("When a plugin names a Secret of the control plane, it should roll out nothing", func(t *testing.T) {
		own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "root-ca", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "demo", UID: "1"}}}}
		known := plugins{"vault": {Name: "vault", Credentials: &corev1.LocalObjectReference{Name: "root-ca"}}}
		_, err := New().Render(t.Context(), scopeOf(clusterWith(encryptedWith("a-key")), own, config(known)))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("Secret root-ca is one of the control plane's own")))
	})
	t.Run("When the encryption configuration changes, the Pod annotation should change without revealing it", func(t *testing.T) {
		g := NewWithT(t)
		mark := func(known plugins) string {
			return rendered(t, scopeOf(clusterWith(encryptedWith("a-key")), config(known))).Spec.Template.Annotations[encryptionAnnotation]
		}
		one, other := mark(plugins{}), mark(plugins{"vault": {Name: "vault"}})
		g.Expect(one).To(HaveLen(16))
		g.Expect(other).NotTo(Equal(one))
		g.Expect(mark(plugins{})).To(Equal(one))
		g.Expect(rendered(t, scopeOf(clusterWith())).Spec.Template.Annotations).NotTo(HaveKey(encryptionAnnotation), "what is not encrypted has none")
	})
}
