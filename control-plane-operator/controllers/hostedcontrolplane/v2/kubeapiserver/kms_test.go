// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

func vault(image string) *hyperv1.KMSPluginSpec {
	return &hyperv1.KMSPluginSpec{
		Name: "vault", Image: image, Args: []string{"--listen=unix:///var/run/kms/kms.sock"}, Credentials: &corev1.LocalObjectReference{Name: "vault-token"},
	}
}

func TestProvidersOfPlugins(t *testing.T) {
	want := []provider{{Kind: kms, Name: "vault"}, {Kind: kms, Name: "hsm"}, box("a"), plain}
	raw, err := renderProviders(want)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(raw)).To(And(ContainSubstring("apiVersion: v2"), ContainSubstring("endpoint: unix:///var/run/kms/vault/kms.sock"), ContainSubstring("timeout: 3s")))
	got, err := parseProviders(raw)
	g.Expect(err).NotTo(HaveOccurred())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNeededPlugins(t *testing.T) {
	former := plugins{"vault": *vault("a.example/vault:1"), "hsm": {Name: "hsm"}}
	for _, tt := range []struct {
		name      string
		providers []provider
		wanted    *hyperv1.KMSPluginSpec
		want      plugins
		says      string
	}{
		{name: "no plugin encrypts any more, it should need none", providers: []provider{box("a")}, want: plugins{}},
		{name: "the cluster names another image, it should use that image", providers: []provider{{Kind: kms, Name: "vault"}}, wanted: vault("a.example/vault:2"),
			want: plugins{"vault": *vault("a.example/vault:2")}},
		{name: "the cluster moves to another key, it should keep the plugin as it was", providers: []provider{box("a"), {Kind: kms, Name: "vault"}},
			want: plugins{"vault": *vault("a.example/vault:1")}},
		{name: "the plugin is unknown, it should say which field must name it", providers: []provider{{Kind: kms, Name: "lost"}}, says: "name it in secretEncryption.kms.plugin"},
	} {
		t.Run("When "+tt.name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := former.needed(tt.providers, tt.wanted)
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
			stored := &corev1.Secret{Data: map[string][]byte{}}
			g.Expect(got.write(stored)).To(Succeed())
			g.Expect(pluginsOf(stored)).To(Equal(got))
		})
	}
}

func TestMoveToPlugin(t *testing.T) {
	vault := provider{Kind: kms, Name: "vault"}
	g, live := NewWithT(t), stored(t, move{stage: hyperv1.EncryptionMigrationCompleted, providers: []provider{box("a")}})
	var got [][]provider
	for _, state := range append(walk(t, live, vault), walk(t, live, box("b"))...) {
		got = append(got, state.providers)
	}
	g.Expect(got).To(Equal([][]provider{
		{box("a"), vault, plain}, {vault, box("a"), plain}, {vault, box("a"), plain}, {vault, plain}, {vault, plain},
		{vault, box("b"), plain}, {box("b"), vault, plain}, {box("b"), vault, plain}, {box("b"), plain}, {box("b"), plain},
	}))
}

// TestPod checks that the plugin's sidecar has its own socket and credentials, and no files of the API server.
func TestPod(t *testing.T) {
	g := NewWithT(t)
	live := stored(t, move{stage: hyperv1.EncryptionMigrationCompleted, providers: []provider{{Kind: kms, Name: "vault"}}})
	live.Namespace, live.Name = "clusters-demo", EncryptionSecret
	g.Expect(plugins{"vault": *vault("a.example/vault:1")}.write(live)).To(Succeed())
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Namespace = "clusters-demo"
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path}}}
	}
	pod := &corev1.PodSpec{Containers: []corev1.Container{{
		Name: "kube-apiserver", StartupProbe: probe("/livez"), ReadinessProbe: probe("/readyz"), LivenessProbe: probe("/livez?exclude=etcd"),
		VolumeMounts: []corev1.VolumeMount{{Name: "service-account-key"}},
	}}}
	g.Expect(runPlugins(t.Context(), &component.Scope{Client: hostedClient(live), HCP: hcp}, pod)).To(Succeed())

	g.Expect(pod.InitContainers).To(HaveLen(1))
	sidecar, server := pod.InitContainers[0], pod.Containers[0]
	g.Expect(sidecar.RestartPolicy).To(HaveValue(Equal(corev1.ContainerRestartPolicyAlways)), "it ends after the API server")
	g.Expect(sidecar.VolumeMounts).To(Equal([]corev1.VolumeMount{
		{Name: "kms-vault", MountPath: "/var/run/kms"}, {Name: "credentials-kms-vault", MountPath: "/etc/kms", ReadOnly: true},
	}))
	g.Expect(server.VolumeMounts).To(HaveLen(2), "it does not see the credentials")
	g.Expect(server.VolumeMounts[1]).To(Equal(corev1.VolumeMount{Name: "kms-vault", MountPath: "/var/run/kms/vault", ReadOnly: true}))
	g.Expect([]string{server.StartupProbe.HTTPGet.Path, server.ReadinessProbe.HTTPGet.Path, server.LivenessProbe.HTTPGet.Path}).To(Equal(
		[]string{"/readyz", "/readyz?exclude=kms-providers", "/livez?exclude=etcd"}))
	g.Expect(HasPlugins(pod)).To(BeTrue())
}

func TestCredentialsOfTheControlPlane(t *testing.T) {
	secret := func(name string, owners ...metav1.OwnerReference) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, OwnerReferences: owners}}
	}
	scope := &component.Scope{Client: hostedClient(secret("vault-token"),
		secret("root-ca", metav1.OwnerReference{Name: "demo"}), secret("sa-signing-key")), HCP: &hyperv1.HostedControlPlane{}}
	scope.HCP.Namespace = "clusters-demo"
	for name, says := range map[string]string{
		"": "", "vault-token": "", "not-there-yet": "", "root-ca": "give yours another name", "sa-signing-key": "give yours another name",
	} {
		t.Run("When a plugin names the Secret "+name+" it should only accept a Secret of the user", func(t *testing.T) {
			err := checkCredentials(t.Context(), scope, hyperv1.KMSPluginSpec{Credentials: &corev1.LocalObjectReference{Name: name}})
			if says == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
			} else {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
			}
		})
	}
}

func TestPluginFault(t *testing.T) {
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "not found"}}
	}
	for _, tt := range []struct {
		name, container string
		state           corev1.ContainerState
		want            string
	}{
		{"its image is missing", "kms-vault", waiting("ErrImagePull"), "plugin vault cannot run: ErrImagePull: not found"},
		{"it ended", "kms-vault", corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2}}, "plugin vault ended with exit code 2"},
		{"it runs", "kms-vault", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, ""},
		{"it has not started yet", "kms-vault", waiting("PodInitializing"), ""},
		{"another container waits", "wait-for-etcd", waiting("ErrImagePull"), ""},
	} {
		t.Run("When "+tt.name+" it should return the fault, or nothing", func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: tt.container, State: tt.state}}}}
			NewWithT(t).Expect(PluginFault(pod)).To(Equal(tt.want))
		})
	}
}
