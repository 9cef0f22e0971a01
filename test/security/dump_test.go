// SPDX-License-Identifier: Apache-2.0

package security

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/dump"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

func TestDump(t *testing.T) {
	config := testenv.Start(t, "hypershift")
	kubeconfig := testenv.Kubeconfig(t, config)
	c, err := client.New(config, client.Options{Scheme: fixture.Scheme()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	hc := fixture.HostedCluster("clusters")
	meta := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: "settings"}
	}
	// The guest is the same API server: the test checks which of its namespaces are read.
	fixture.Create(t, c, hc,
		&corev1.ConfigMap{ObjectMeta: meta("customer"), Data: map[string]string{"password": loot}},
		&corev1.Secret{ObjectMeta: meta("kube-public"), Data: map[string][]byte{"password": []byte(loot)}},
		&corev1.ConfigMap{ObjectMeta: meta("kube-public"), Data: map[string]string{
			"platform": "kept", "proxy": "http://user:" + loot + "@proxy.example:3128"}},
	)
	serve(t, c, hc, kubeconfig)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	NewWithT(t).Expect(os.WriteFile(file, kubeconfig, 0o600)).To(Succeed())

	for name, tt := range map[string]struct {
		flags []string
		holds bool
	}{
		"When a guest cluster is dumped, the dump should contain nothing of its users":          {},
		"When all guest namespaces are requested, the dump should contain them without Secrets": {[]string{"--dump-all-guest-namespaces"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			folder := t.TempDir()
			cmd := dump.NewCommand()
			cmd.SetArgs(append([]string{"--kubeconfig", file, "--name", hc.Name, "--artifact-dir", folder, "--archive-dump=false", "--dump-guest-cluster"}, tt.flags...))
			g.Expect(cmd.ExecuteContext(t.Context())).To(Succeed())
			guest := read(t, filepath.Join(folder, "hypershift-dump", "hostedcluster-"+hc.Name))
			g.Expect(guest).To(ContainSubstring("platform: kept"))
			g.Expect(guest).To(ContainSubstring("proxy: http://redacted@proxy.example:3128"))
			g.Expect(guest).NotTo(ContainSubstring("user:"+loot), "the password of a proxy")
			g.Expect(strings.Count(guest, loot) > 0).To(Equal(tt.holds))
			g.Expect(guest).NotTo(ContainSubstring("czNjcmV0"), "the value of a Secret")
		})
	}
}

// serve creates the hosted namespace of a cluster with its admin kubeconfig.
func serve(t *testing.T, c client.Client, hc *hyperv1.HostedCluster, kubeconfig []byte) {
	t.Helper()
	hcp := &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Hosted(hc.Namespace), Name: hc.Name},
		Spec: hyperv1.HostedControlPlaneSpec{
			ReleaseImage: hc.Spec.Release.Image, PullSecret: hc.Spec.PullSecret, SSHKey: hc.Spec.SSHKey,
			IssuerURL: "https://kubernetes.default.svc",
			InfraID:   "demo-x7k2p", Platform: hc.Spec.Platform, Networking: hc.Spec.Networking, Etcd: hc.Spec.Etcd,
			Services: hc.Spec.Services,
		},
	}
	fixture.Create(t, c, hcp)
	hcp.Status.KubeConfig = &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"}
	hcp.Status.Conditions = []metav1.Condition{}
	NewWithT(t).Expect(c.Status().Update(t.Context(), hcp)).To(Succeed())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: "admin-kubeconfig"},
		Data: map[string][]byte{"kubeconfig": kubeconfig}}
	NewWithT(t).Expect(controllerutil.SetControllerReference(hcp, secret, c.Scheme())).To(Succeed())
	fixture.Create(t, c, secret)
}

// read returns the text of all files below a folder.
func read(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
