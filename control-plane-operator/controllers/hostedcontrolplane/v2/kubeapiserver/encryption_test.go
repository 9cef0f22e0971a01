// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
)

// plane is a control plane whose API servers the test rolls out.
type plane struct {
	t     *testing.T
	g     Gomega
	scope *component.Scope
}

func newPlane(t *testing.T, objects ...client.Object) *plane {
	t.Helper()
	hcp := clusterWith(encryptedWith("a-key"))
	return &plane{t: t, g: NewWithT(t), scope: scopeOf(hcp, append(objects, keySecret("a-key"), keySecret("b-key"))...)}
}

// deployed returns the Deployment of API servers that have rolled out.
func deployed(edit ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: Name, Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
	}
	for _, change := range edit {
		change(d)
	}
	return d
}

// encrypting adds an encryption configuration to the pods of a Deployment.
func encrypting(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "logs"}, {Name: encryptionVolume}}
}

func (p *plane) live() *corev1.Secret {
	p.t.Helper()
	live := &corev1.Secret{}
	err := p.scope.Client.Get(p.t.Context(), client.ObjectKey{Namespace: fixture.Namespace, Name: EncryptionSecret}, live)
	p.g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return live
}

// step takes and stores the next step, as the component does. It returns the stage and the keys that can read, the
// writing one first.
func (p *plane) step() string {
	p.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: EncryptionSecret}}
	p.g.Expect(adaptEncryption(p.t.Context(), p.scope, secret)).To(Succeed())
	live := p.live()
	if live.Name == "" {
		p.g.Expect(p.scope.Client.Create(p.t.Context(), secret)).To(Succeed())
		return p.says()
	}
	live.Data = secret.Data
	maps.Copy(live.Annotations, secret.Annotations)
	p.g.Expect(p.scope.Client.Update(p.t.Context(), live)).To(Succeed())
	return p.says()
}

func (p *plane) says() string {
	p.t.Helper()
	live := p.live()
	providers, err := parseProviders(live.Data[encryptionKey])
	p.g.Expect(err).NotTo(HaveOccurred())
	names := map[string]string{p.key("a-key").Name: "a", p.key("b-key").Name: "b"}
	words := []string{live.Annotations[EncryptionStage]}
	for _, provider := range providers {
		words = append(words, strings.Trim(string(provider.Kind)+" "+names[provider.Name], " "))
	}
	return strings.Join(words, ", ")
}

func (p *plane) key(name string) provider {
	p.t.Helper()
	key, err := readKey(p.t.Context(), p.scope.Client, fixture.Namespace, name)
	if client.IgnoreNotFound(err) != nil {
		p.t.Fatal(err)
	}
	return key
}

// pod creates a pod of the API server for a configuration.
func (p *plane) pod(name, hash string, edit ...func(*corev1.Pod)) {
	p.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: fixture.Namespace, Name: name, Labels: map[string]string{"app": Name}, Annotations: map[string]string{encryptionAnnotation: hash},
	}}
	for _, change := range edit {
		change(pod)
	}
	p.g.Expect(p.scope.Client.Create(p.t.Context(), pod)).To(Succeed())
}

func (p *plane) remove(name string) {
	p.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name}}
	p.g.Expect(p.scope.Client.Delete(p.t.Context(), pod)).To(Succeed())
}

func (p *plane) asks(key string) { encryptedWith(key)(p.scope.HCP) }

func TestAdaptEncryption(t *testing.T) {
	t.Run("When a control plane is new, it should encrypt from the first Secret on", func(t *testing.T) {
		p := newPlane(t)
		for range 2 {
			p.g.Expect(p.step()).To(Equal("Completed, secretbox a, identity"))
		}
	})
	t.Run("When only the Pods of a control plane are left, it should still start with ReadOnlyDeploy", func(t *testing.T) {
		p := newPlane(t)
		p.pod("kube-apiserver-1", "")
		p.g.Expect(p.step()).To(Equal("ReadOnlyDeploy, identity, secretbox a"))
	})
	t.Run("When only completed or unrelated Pods are left, it should treat the control plane as new", func(t *testing.T) {
		p := newPlane(t)
		p.pod("done", "", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
		p.pod("failed", "", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
		p.pod("of-another", "", func(pod *corev1.Pod) { pod.Labels["app"] = "etcd" })
		p.pod("elsewhere", "", func(pod *corev1.Pod) { pod.Namespace = "clusters-other" })
		p.g.Expect(p.step()).To(Equal("Completed, secretbox a, identity"))
	})
	t.Run("When a running cluster gets a key, each step should wait until all API servers run the previous one", func(t *testing.T) {
		p := newPlane(t, deployed())
		p.pod("plain", "")
		p.g.Expect(p.step()).To(Equal("ReadOnlyDeploy, identity, secretbox a"))
		p.g.Expect(p.step()).To(Equal("ReadOnlyDeploy, identity, secretbox a"), "the pod was made for none")
		p.pod("reads", encryptionHash(p.live()))
		p.g.Expect(p.step()).To(HavePrefix("ReadOnlyDeploy"), "the former one still answers")
		p.remove("plain")
		p.g.Expect(p.step()).To(Equal("WritePromote, secretbox a, identity"))
		p.pod("writes", encryptionHash(p.live()))
		p.g.Expect(p.step()).To(HavePrefix("WritePromote"))
		p.remove("reads")
		p.g.Expect(p.step()).To(Equal("Migrating, secretbox a, identity"))
		p.g.Expect(p.step()).To(HavePrefix("Migrating"), "nobody said that all is written anew")
		p.migrated("0")
		p.g.Expect(p.step()).To(HavePrefix("Migrating"), "an earlier move was")
		p.migrated(p.live().Annotations[EncryptionMove])
		p.g.Expect(p.step()).To(Equal("Completed, secretbox a, identity"))
	})
	t.Run("When the user deletes the old key during a migration, it should still decrypt with it", func(t *testing.T) {
		p := newPlane(t)
		p.step()
		p.asks("b-key")
		p.g.Expect(p.step()).To(Equal("ReadOnlyDeploy, secretbox a, secretbox b, identity"))
		former := p.key("a-key")
		p.g.Expect(p.scope.Client.Delete(t.Context(), keySecret("a-key"))).To(Succeed())
		p.step()
		providers, err := parseProviders(p.live().Data[encryptionKey])
		p.g.Expect(err).NotTo(HaveOccurred())
		former.Kind = secretbox
		p.g.Expect(providers[0]).To(Equal(former))
	})
	t.Run("When the encryption configuration is lost, it should decrypt with every form of the current key", func(t *testing.T) {
		p := newPlane(t, deployed(encrypting))
		p.g.Expect(p.step()).To(Equal("WritePromote, secretbox a, aescbc a, identity"))
	})
	t.Run("When a backup key is set, it should decrypt with it as secretbox and as AES-CBC", func(t *testing.T) {
		p := newPlane(t)
		p.scope.HCP.Spec.SecretEncryption.AESCBC.BackupKey = &corev1.LocalObjectReference{Name: "b-key"}
		p.g.Expect(p.step()).To(Equal("Completed, secretbox a, secretbox b, aescbc b, identity"))
	})
	t.Run("When the backup key is also the active key, it should list the key once", func(t *testing.T) {
		p := newPlane(t)
		p.scope.HCP.Spec.SecretEncryption.AESCBC.BackupKey = &corev1.LocalObjectReference{Name: "a-key"}
		p.g.Expect(p.step()).To(Equal("Completed, secretbox a, identity"))
	})
	t.Run("When a plugin encrypts, it should store the plugin's spec for when the cluster no longer names it", func(t *testing.T) {
		p := newPlane(t)
		p.scope.HCP.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.KMSPlugin, Plugin: vault("v:1")}}
		p.g.Expect(p.step()).To(Equal("Completed, kms, identity"))
		p.asks("a-key")
		p.g.Expect(p.step()).To(Equal("ReadOnlyDeploy, kms, secretbox a, identity"))
		known, err := pluginsOf(p.live())
		p.g.Expect(err).NotTo(HaveOccurred())
		p.g.Expect(known).To(Equal(plugins{"vault": *vault("v:1")}))
	})
}

func (p *plane) migrated(number string) {
	p.t.Helper()
	live := p.live()
	live.Annotations[EncryptionMigrated] = number
	p.g.Expect(p.scope.Client.Update(p.t.Context(), live)).To(Succeed())
}

// TestSettled checks that no step follows before the Deployment has rolled out. Until then, the configuration of its
// next pod is unknown.
func TestSettled(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*appsv1.Deployment)
		want bool
	}{
		"has rolled out":                {func(*appsv1.Deployment) {}, true},
		"has an unobserved change":      {func(d *appsv1.Deployment) { d.Generation = 3 }, false},
		"has one pod too many":          {func(d *appsv1.Deployment) { d.Status.Replicas = 2 }, false},
		"has no pod of its template":    {func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }, false},
		"has a pod that does not serve": {func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }, false},
		"does not set its replicas":     {func(d *appsv1.Deployment) { d.Spec.Replicas = nil }, true},
		"is scaled to zero for an inspection": {func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status = ptr.To[int32](0), appsv1.DeploymentStatus{ObservedGeneration: 2}
		}, false},
	} {
		t.Run("When the Deployment "+name+" it should report whether the next step is allowed", func(t *testing.T) {
			g := NewWithT(t)
			f, err := observeFleet(t.Context(), scopeOf(clusterWith(), deployed(tc.edit)))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f.settled).To(Equal(tc.want))
			g.Expect(f.exists).To(BeTrue())
			g.Expect(f.encrypts).To(BeFalse())
		})
	}
}

func TestWrongKeys(t *testing.T) {
	sized := func(n int) *corev1.Secret {
		secret := keySecret("short-key")
		secret.Data["key"] = make([]byte, n)
		return secret
	}
	backup := func(name string) func(*hyperv1.HostedControlPlane) {
		return func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.SecretEncryption.AESCBC.BackupKey = &corev1.LocalObjectReference{Name: name}
		}
	}
	corrupt := func(key, text string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: EncryptionSecret}, Data: map[string][]byte{key: []byte(text)}}
	}
	for _, tc := range []struct {
		name    string
		edit    func(*hyperv1.HostedControlPlane)
		objects []client.Object
		want    string
	}{
		{"does not exist", encryptedWith("lost-key"), nil, "reading encryption key Secret lost-key: "},
		{"is too short", encryptedWith("short-key"), []client.Object{sized(31)}, `Secret short-key: key "key" must hold 32 bytes, it holds 31`},
		{"is too long", encryptedWith("short-key"), []client.Object{sized(33)}, "it holds 33"},
		{"is under another key of its Secret", encryptedWith("short-key"), []client.Object{sized(0)}, "it holds 0"},
		{"for backup does not exist", backup("lost-key"), nil, "reading encryption key Secret lost-key: "},
		{"for backup is too short", backup("short-key"), []client.Object{sized(16)}, "it holds 16"},
		{"is in an invalid configuration", func(*hyperv1.HostedControlPlane) {}, []client.Object{corrupt(encryptionKey, "a: b\n")},
			"reading the encryption configuration in Secret kas-secret-encryption-config"},
		{"is missing in the configuration", func(*hyperv1.HostedControlPlane) {}, []client.Object{corrupt(encryptionKey, "resources: [{resources: [secrets]}]\n")},
			"names no key"},
		{"is stored with plugins that cannot be read", func(*hyperv1.HostedControlPlane) {}, []client.Object{corrupt(pluginsKey, "{")},
			"reading the plugins in Secret kas-secret-encryption-config"},
		{"belongs to an unsupported key service", func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.AWS}}
		}, nil, `secretEncryption of type "kms" needs a key service`},
	} {
		t.Run("When the key "+tc.name+" it should return an error and keep the configuration", func(t *testing.T) {
			p := newPlane(t, tc.objects...)
			tc.edit(p.scope.HCP)
			written := &corev1.Secret{}
			p.g.Expect(adaptEncryption(t.Context(), p.scope, written)).To(MatchError(ContainSubstring(tc.want)))
			p.g.Expect(written.Data).To(BeEmpty())
		})
	}
}
